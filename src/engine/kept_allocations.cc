#include "engine/kept_allocations.h"

#include <algorithm>
#include <utility>

namespace drover::engine {
namespace {

/// Takes about a millisecond to read.
constexpr std::size_t kAllocationsAtOnce = 1000;
constexpr std::int64_t kMostTrimmedAtOnce = 250;
constexpr std::ptrdiff_t kMostReportsOfUser = 2;

}  // namespace

void KeptAllocations::report(const ReportQuery& query, std::optional<uid_t> owner, uid_t asker,
                             const std::vector<store::Allocation>& active, ReportTaker done) {
  const auto is_his = [asker](const auto& reading) { return reading->asker == asker; };
  if (std::ranges::count_if(waiting_, is_his) >= kMostReportsOfUser)
    return done(fail(ErrorKind::kUnavailable, "Your last reports are still being made", "ask again later"));
  const auto reading = std::make_shared<Reading>(
      Reading{.owner = owner, .asker = asker, .sums = ReportSums(query), .done = std::move(done)});
  for (const auto& one : active) reading->sums.add(one);
  waiting_.push_back(reading);
  read_next();
}

void KeptAllocations::read_next() {
  if (reading_ || waiting_.empty()) return;
  reading_ = true;
  read_on(waiting_.front());
}

void KeptAllocations::read_on(const std::shared_ptr<Reading>& reading) {
  loop_.on_journal([this, reading](store::Journal& journal) -> Work {
    const auto visited = journal.visit_allocations(
        reading->reached, kAllocationsAtOnce, [&](const store::Allocation& allocation) {
          reading->reached = allocation.number;
          if (!reading->owner || allocation.owner == *reading->owner) reading->sums.add(allocation);
        });
    return [this, reading, visited] {
      if (visited && *visited == kAllocationsAtOnce) return read_on(reading);
      reading_ = false;
      std::erase(waiting_, reading);
      if (const auto done = std::exchange(reading->done, {}))
        done(visited ? Result<Report>(std::move(reading->sums).finish()) : Failure(visited.error()));
      read_next();
    };
  });
}

void KeptAllocations::refuse(const Error& error) {
  const auto waiting = waiting_;
  if (!reading_) waiting_.clear();
  for (const auto& reading : waiting)
    if (const auto done = std::exchange(reading->done, {})) done(Failure(error));
  // The one that is being read stays in front until the disk answers.
  if (reading_) waiting_.resize(1);
}

void KeptAllocations::tidy() {
  if (std::exchange(trimming_, true)) return;
  loop_.on_journal([this, before = ports_.steady() - limits_.longest](store::Journal& journal) -> Work {
    return [this, trimmed = journal.trim_allocations(before, limits_.most, kMostTrimmedAtOnce)] {
      trimming_ = false;
      trouble_.report(trimmed.map([](auto) {}));
      if (trimmed && *trimmed >= kMostTrimmedAtOnce) ports_.post([this] { tidy(); });
    };
  });
}

}  // namespace drover::engine
