#include "placement/schedule/reservation.h"

#include <algorithm>

#include "placement/schedule/eviction.h"
#include "placement/schedule/room.h"

namespace drover::placement::schedule {
namespace {

struct Ending {
  TimePoint at{};
  const RunningJob* running = nullptr;
};

/// Those with a time limit, by when it ends them.
std::vector<Ending> endings_of(const ReservationQuery& query) {
  std::vector<Ending> endings;
  for (const auto* running : query.running)
    if (const auto at = end_of(*running, query.now)) endings.push_back({*at, running});
  std::ranges::sort(endings, {}, [](const Ending& ending) {
    return std::pair(ending.at, std::string_view(ending.running->job.id));
  });
  return endings;
}

/// A world in which the first so many of the endings have ended.
class Timeline {
 public:
  Timeline(Cluster& world, const std::vector<Ending>& endings) : world_(world), endings_(endings) {}

  std::optional<std::vector<Decision>> place_after(std::size_t count, const Gang& gang) {
    for (; ended_ < count; ++ended_) give_back(world_, endings_[ended_].running->job);
    for (; ended_ > count; --ended_)
      take(world_, endings_[ended_ - 1].running->job, endings_[ended_ - 1].running->decisions);
    return try_place(world_, gang);
  }

 private:
  Cluster& world_;
  const std::vector<Ending>& endings_;
  std::size_t ended_ = 0;
};

/// Who of them does not fit beside the gang, where it was placed without them.
std::vector<const RunningJob*> in_the_way(Cluster& world, const Gang& gang,
                                          const std::vector<Decision>& decisions,
                                          const std::vector<const RunningJob*>& gone) {
  const Job placed{.id = "\x01reserved", .gang = gang};
  take(world, placed, decisions);
  std::vector<const RunningJob*> result;
  for (const auto* running : gone) {
    bool fits = true;
    for (std::size_t rank = 0; rank < running->decisions.size() && fits; ++rank)
      fits = world
                 .allocate(allocation_id(running->job, rank), running->job.gang.members[rank],
                           running->decisions[rank])
                 .has_value();
    if (fits) continue;
    give_back(world, running->job);
    result.push_back(running);
  }
  return result;
}

std::optional<Reservation> by_time_limits(Cluster& world, const ReservationQuery& query) {
  const auto endings = endings_of(query);
  if (endings.empty()) return std::nullopt;
  Timeline timeline(world, endings);
  auto placed = timeline.place_after(endings.size(), query.gang);
  if (!placed) {
    timeline.place_after(0, query.gang);
    return std::nullopt;
  }
  std::size_t too_few = 0;
  std::size_t enough = endings.size();
  while (too_few + 1 < enough) {
    const auto middle = (too_few + enough) / 2;
    if (auto found = timeline.place_after(middle, query.gang)) {
      placed = std::move(found);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  Reservation result{std::move(*placed), endings[enough - 1].at, {}};
  timeline.place_after(enough, query.gang);
  for (const auto& ending : endings)
    if (ending.at <= *result.at) result.gone.push_back(ending.running);
  return result;
}

std::optional<Reservation> by_fewest(Cluster& world, const ReservationQuery& query) {
  const auto always = [](const Subset&) { return true; };
  auto eviction = fewest_evictions(world, {query.gang, query.running, always, always});
  if (!eviction) return std::nullopt;
  Reservation result{std::move(eviction->decisions), std::nullopt, {}};
  for (const auto position : eviction->gone) {
    give_back(world, query.running[position]->job);
    result.gone.push_back(query.running[position]);
  }
  return result;
}

}  // namespace

std::optional<TimePoint> end_of(const RunningJob& running, TimePoint now) {
  if (!running.job.time_limit) return std::nullopt;
  return std::max(now, running.started_at + *running.job.time_limit);
}

std::optional<Reservation> earliest_start(Cluster& world, const ReservationQuery& query) {
  for (const auto* running : query.preemptable) give_back(world, running->job);
  auto result = by_time_limits(world, query);
  if (!result) result = by_fewest(world, query);
  if (!result) return std::nullopt;
  const auto preempted = in_the_way(world, query.gang, result->decisions, query.preemptable);
  result->gone.insert(result->gone.end(), preempted.begin(), preempted.end());
  return result;
}

}  // namespace drover::placement::schedule
