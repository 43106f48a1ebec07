#pragma once

// Reads one output of a task (`stdout` or `stderr` in its sandbox) from a position onwards, while it grows
// and while it is rotated: `stdout` becomes `stdout.1`, that becomes `stdout.2`, and so on; the oldest goes.
// Nothing is lost or read twice unless a file is dropped before it was read. Blocks; used by one thread at a
// time.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sandbox.h"

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
  LogReader(std::string folder, std::string name, User reader);

  /// Goes on from a position that an earlier reader had reached; from the oldest byte when that is gone.
  void seek(LogPosition position);
  /// Goes to the last `lines` lines, or to as many of them as lie within kMostTail bytes: the task may have
  /// made the files as large as it likes.
  Status seek_tail(std::int64_t lines);
  static constexpr std::uint64_t kMostTail = 64ULL << 20;
  /// The next piece; "" when there is nothing more now.
  Result<std::string> read();
  /// The same piece, which take() then goes past, or past the beginning of it. Valid until then.
  Result<std::string_view> peek();
  void take(std::size_t bytes);
  /// What peek() has seen before and nobody has taken.
  std::string_view seen() const { return std::string_view(piece_).substr(taken_); }
  /// How many bytes there are to read now.
  Result<std::uint64_t> pending() const;
  /// Reads what there is now, and no more.
  Status stop_at_end();
  /// Whether the byte before the position ended a line, or there is none in that file.
  bool at_line_start();
  /// Where all files of the output begin that there are now, oldest first.
  std::vector<LogPosition> beginnings() const;
  /// Behind the last byte that there is now.
  LogPosition end() const;

  LogPosition position() const { return position_; }
  const std::string& name() const { return name_; }

 private:
  /// All files of the output, newest first.
  std::vector<SandboxFile> generations() const;
  /// Which of `files` the position is in; files.size() when it is in none of them.
  std::size_t find_position(const std::vector<SandboxFile>& files) const;
  /// Opens the file that the position is in, or else the oldest.
  bool find_file();
  /// Goes to the file that came after the one that is open, if there is one.
  bool next_file();
  Result<std::string> read_piece();

  std::string folder_;
  std::string name_;
  User reader_;
  LogPosition position_;
  std::optional<SandboxFile> file_;
  std::string piece_;  ///< from the position on, but for what was taken of it
  std::size_t taken_ = 0;
  std::optional<std::uint64_t> left_;  ///< no more than that is read
};

}  // namespace drover::api
