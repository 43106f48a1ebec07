#pragma once

// Reads one output of a task (`stdout` or `stderr` in its sandbox) from a position onwards, while it grows
// and while it is rotated (`stdout` becomes `stdout.1`, and a new `stdout` begins). Nothing is lost or read
// twice unless two generations go by while nobody reads. Blocks; used by one thread at a time.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/sandbox.h"
#include "base/result.h"

namespace drover::api {

/// A place in an output that stays valid across rotation: which file, by inode, and where in it.
struct LogPosition {
  std::uint64_t inode = 0;  ///< 0: before anything was written
  std::uint64_t offset = 0;

  bool operator==(const LogPosition&) const = default;
};

class LogReader {
 public:
  /// Begins at the oldest byte that is still there. `name` is "stdout" or "stderr".
  LogReader(std::string folder, std::string name, uid_t reader);

  /// Goes on from a position that an earlier reader had reached; from the oldest byte when that is gone.
  void seek(LogPosition position);
  /// Goes to the last `lines` lines.
  Status seek_tail(std::int64_t lines);
  /// The next piece; "" when there is nothing more now.
  Result<std::string> read();
  /// How many bytes there are to read now.
  std::uint64_t pending();

  LogPosition position() const { return position_; }
  const std::string& name() const { return name_; }

 private:
  std::optional<SandboxFile> open(const std::string& name) const;
  /// Opens the file that position_ is in, or the oldest.
  bool find_file();
  /// Goes to the file that came after the one that is open, if there is one.
  bool next_file();

  std::string folder_;
  std::string name_;
  uid_t reader_;
  LogPosition position_;
  std::optional<SandboxFile> file_;
};

}  // namespace drover::api
