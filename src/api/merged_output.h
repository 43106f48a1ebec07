#pragma once

// Reads one or both outputs of a task from a position onwards, while they grow: both in the order in which
// they were written, as far as that is known (run_cursor.h). What nobody knows the order of comes one output
// after the other. The record is never believed in what there is to read, only in what comes first: each byte
// of the files is read once. Blocks; used by one thread at a time.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/log_reader.h"
#include "api/run_cursor.h"
#include "base/result.h"
#include "base/units.h"

namespace drover::api {

/// A piece of one output; empty when there is nothing more now.
struct OutputPiece {
  std::size_t stream = 0;  ///< which of the outputs that are read
  std::string_view bytes;  ///< valid until the next call
  std::optional<engine::OutputTime> at;
};

class MergedOutput {
 public:
  /// `timed`: the times of pieces are wanted.
  MergedOutput(const std::string& sandbox, const std::vector<std::string>& streams, const User& reader,
               bool timed);

  /// What comes next, and take() goes past it, or past the beginning of it.
  Result<OutputPiece> peek();
  void take(const OutputPiece& piece, std::size_t bytes);

  /// Skips what came before. kUnsupported when something was written and nothing is known of when.
  Status seek_since(TimePoint since);
  /// Skips all but the last so many lines, counted over all outputs that are read.
  Status seek_tail(std::int64_t lines);
  /// Reads what there is now, and no more.
  Status stop_at_end();
  /// "stdout=INODE:OFFSET;stderr=INODE:OFFSET": stays true when files are rotated.
  std::string position() const;
  /// Goes to where an earlier reader was.
  void seek(const std::string& position);

  std::size_t size() const { return sources_.size(); }
  const std::string& name(std::size_t stream) const { return sources_[stream].reader.name(); }
  /// Whether a line begins at the position.
  bool at_line_start(std::size_t stream) { return sources_[stream].reader.at_line_start(); }

 private:
  struct Source {
    LogReader reader;
    RunCursor cursor;
    /// All of runs before this one has been read, when the reader has nothing more.
    std::uint64_t settled = 0;
  };
  using Positions = std::vector<LogPosition>;

  Result<bool> look(Source& source);
  Result<bool> look_at_all();
  Positions positions() const;
  void go_to(const Positions& positions);
  Result<std::int64_t> pass_lines(std::int64_t most);

  bool ordered_;  ///< the record is needed
  engine::OutputRecord record_;
  std::vector<Source> sources_;
};

}  // namespace drover::api
