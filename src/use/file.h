#pragma once

// The file with the statistics of one task, in the task's folder, where no task can write (task_folder.h). It
// is written piece by piece, never mapped, and not made durable: when the machine goes down some seconds
// may be missing. Not thread safe; others may read the file while it is written.

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "use/ring.h"

namespace drover::use {

inline constexpr const char* kUseFile = "use";

class File {
 public:
  /// Of the task in this folder, made when there is none; one that is no such file begins anew.
  static Result<File> open(const Directory& task);

  const Totals& totals() const { return totals_.totals; }
  /// Adds what was seen in a second, and what the slots of ten and of sixty become by it when their time is
  /// over.
  Status add(const Slot& second);
  Status write(const Totals& totals);
  /// What has begun of ten and of sixty seconds counts, too.
  Status finish();

 private:
  explicit File(UniqueFd fd) : fd_(std::move(fd)) {}
  Status begin();
  Status fold_into(std::size_t resolution, std::uint32_t time);

  UniqueFd fd_;
  NumberedTotals totals_;
  std::uint32_t last_ = 0;  ///< second that was added
};

struct History {
  std::vector<Slot> slots;  ///< in order of time
  Totals totals;
};
/// What the file says of [from, until], by number in kResolutions. kNotFound when there is none, or another
/// file.
Result<History> read_history(const Directory& task, std::size_t resolution, std::uint32_t from,
                             std::uint32_t until);

}  // namespace drover::use
