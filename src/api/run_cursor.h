#pragma once

// Goes through the record of a task's output (container/output_record.h) beside a reader of one of its
// outputs, and says of each byte to which run it belongs. Goes forward only, so that a long way costs no more
// than the record is long. Knows nothing of what the record does not have. Not thread safe.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "api/log_reader.h"
#include "engine/outputs.h"

namespace drover::api {

/// A place in an output, in the order of both.
struct RunPlace {
  std::uint64_t number = 0;  ///< of its run; of bytes without one that of the run before; 0: before all
  std::optional<engine::OutputTime> at;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();  ///< offset in the file at which it may end
};

class RunCursor {
 public:
  explicit RunCursor(int stream) : stream_(stream) {}

  /// Of a position that does not lie before the last one.
  RunPlace find(const engine::OutputRecord& record, LogPosition position);
  /// Where in the files, of which these are the beginnings, begins what came at `since` or later; nothing
  /// when all that is known to have come is older.
  std::optional<LogPosition> find_since(const engine::OutputRecord& record,
                                        const std::vector<LogPosition>& beginnings, engine::OutputTime since);
  /// Whether there was any run in the files that were looked at.
  bool found_any() const { return before_ != 0; }

 private:
  struct Found {
    std::uint64_t number = 0;
    engine::OutputRun run;
  };

  std::optional<Found> next(const engine::OutputRecord& record);
  void enter(const engine::OutputRecord& record, std::uint64_t file);
  bool advance(const engine::OutputRecord& record, std::uint64_t file, std::uint64_t offset);

  int stream_;
  std::uint64_t next_ = 1;  ///< the run that is looked at next
  std::optional<LogPosition> last_;
  std::uint64_t before_ = 0;             ///< number of the last run that was passed
  std::optional<Found> current_;         ///< of this file; none: the position has no run
  std::optional<Found> ahead_;           ///< the one after it, of this output
  std::vector<engine::OutputRun> runs_;  ///< read before they are needed, from `first_` on
  std::uint64_t first_ = 0;
};

}  // namespace drover::api
