#pragma once

// The two pages by which the guard in a container knows its limits (guard/layout.h), as the host makes and
// reads them. They lie in the task's own folder on the host, which nobody else comes into, and are removed
// with what else the task has there. The container may write anything into its account, and cut it or make it
// longer: it is read in pieces, never mapped, and its size is put right at each look. Blocks for moments. Not
// thread safe.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"

namespace drover::share {

/// What a container may have of one GPU.
struct Limit {
  std::string gpu;  ///< UUID
  std::uint64_t bytes = 0;
  int milli = 0;  ///< thousandths of its time; 0: time is not limited, now and later

  bool operator==(const Limit&) const = default;
};

/// In the task's folder, and in it the files of the pages.
inline constexpr const char* kPagesFolder = "share";
inline constexpr const char* kLimitsPage = "limits";
inline constexpr const char* kAccountPage = "account";
/// GPUs that a page of limits can name.
inline constexpr std::size_t kMostLimits = 16;

/// Puts both pages into <task>/share: those of one of `others`, the folders of tasks that have the same
/// limits together with it, where one has such pages; else new ones. kInvalid for more than kMostLimits, or
/// what is no UUID.
Status make_pages(const Directory& task, const std::vector<Limit>& limits,
                  const std::vector<Directory>& others = {});

/// A process of the container that uses a limited GPU through the guard.
struct GuardedProcess {
  pid_t pid = 0;                       ///< in the host's numbering
  std::vector<std::uint64_t> charged;  ///< bytes, as it says itself; by the limits' order

  bool operator==(const GuardedProcess&) const = default;
};

class Pages {
 public:
  /// Those of <task>/share. kNotFound when there are none.
  static Result<Pages> open(const Directory& task);

  const std::vector<Limit>& limits() const { return limits_; }
  /// For whoever gives turns (turn_keeper.h).
  int limits_page() const { return limits_page_.get(); }
  int account() const { return account_.get(); }
  /// Whether nobody has removed them since; others may be in their place.
  bool are_there() const;
  /// From now on so much memory and time; for the same GPUs in the same order, and time stays limited or not.
  /// Programs that run are held to the memory at once; turns are given by whoever gives them.
  Status set_limits(const std::vector<Limit>& limits);

  /// Who has a slot now; tells each process by which number the driver knows it. The processes end when they
  /// like: what is told may be over.
  Result<std::vector<GuardedProcess>> look();
  /// How often the guard has refused memory since the pages were made, as the container says itself; by the
  /// limits' order. Never less than at an earlier call, and never more than a double has every number of.
  std::vector<std::uint64_t> refused();

 private:
  Status keep_size();
  Status tell_pid(std::uint32_t slot);

  UniqueFd limits_page_;
  UniqueFd account_;
  std::vector<Limit> limits_;
  std::vector<std::uint64_t> refused_;
};

}  // namespace drover::share
