#pragma once

// The account of a time: who had how much of the GPUs, how long work waited, and how it ended. Pure.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "store/allocation.h"

namespace drover::engine {

enum class ReportBy { kUser, kQueue, kGpu };

struct ReportQuery {
  TimePoint since{}, until{};  ///< from the first to before the last
  ReportBy by = ReportBy::kUser;
};

/// How long tasks waited until they ran for the first time; all 0 when none did.
struct Waits {
  std::int64_t count = 0;
  std::chrono::milliseconds mean{0}, median{0}, longest{0};
};

struct ReportRow {
  std::string key;             ///< the user, the queue or the GPU's UUID; "" of the whole
  double held = 0;             ///< seconds of whole GPUs: half a GPU for an hour is 1800
  std::optional<double> used;  ///< of these, where it was measured; none when nowhere
  std::int64_t running = 0;    ///< attempts that were under way at the end of the time
  /// Attempts that ended within the time, by how: "finished", "failed", "killed", "lost", "preempted".
  std::map<std::string, std::int64_t> ended;
  std::map<std::string, std::int64_t>
      failures;  ///< those that failed or were lost, by cause: "out_of_memory"
  Waits waits;   ///< of tasks that ran first within the time
};

struct Report {
  ReportQuery query;
  std::vector<ReportRow> rows;  ///< by key
  ReportRow total;              ///< each attempt once, also where several rows have it
};

/// Sums up. Takes allocations in any order; those that are under way have no ending.
class ReportSums {
 public:
  explicit ReportSums(ReportQuery query) : query_(query) {}

  void add(const store::Allocation& allocation);
  Report finish() &&;

 private:
  struct Sums {
    ReportRow row;
    std::vector<std::chrono::milliseconds> waits;
  };

  /// `gpus`: of the `all` that it had.
  void add_to(Sums& sums, const store::Allocation& allocation, double gpus, double all) const;
  static ReportRow row_of(Sums sums, std::string key);

  ReportQuery query_;
  std::map<std::string, Sums> sums_;
  Sums total_;
};

}  // namespace drover::engine
