#include "placement/schedule/reservation.h"

#include <algorithm>

#include "placement/schedule/draining.h"
#include "placement/schedule/eviction.h"
#include "placement/schedule/room.h"

namespace drover::placement::schedule {
namespace {

using Runners = std::vector<const RunningJob*>;

/// From the one that has run longest.
Runners by_age(Runners runners) {
  std::ranges::sort(runners, [](const auto* a, const auto* b) {
    return std::tie(a->started_at, a->job.id) < std::tie(b->started_at, b->job.id);
  });
  return runners;
}

/// Those of whom it is known or thought when they end, by that.
Runners by_end(const Runners& runners, TimePoint now) {
  std::vector<std::pair<TimePoint, const RunningJob*>> ends;
  for (const auto* running : runners)
    if (const auto at = end_of(*running, now)) ends.emplace_back(*at, running);
  std::ranges::sort(ends, [](const auto& a, const auto& b) {
    return a.first < b.first || (a.first == b.first && a.second->job.id < b.second->job.id);
  });
  Runners result;
  for (const auto& [at, running] : ends) result.push_back(running);
  return result;
}

/// A world in which the first so many of a list have ended.
class Timeline {
 public:
  Timeline(Cluster& world, const Runners& runners) : world_(world), runners_(runners) {}

  std::optional<std::vector<Decision>> place_after(std::size_t count, const Gang& gang) {
    go_to(count);
    return try_place(world_, gang);
  }

  void go_to(std::size_t count) {
    for (; ended_ < count; ++ended_) give_back(world_, runners_[ended_]->job);
    for (; ended_ > count; --ended_) take(world_, runners_[ended_ - 1]->job, runners_[ended_ - 1]->decisions);
  }

 private:
  Cluster& world_;
  const Runners& runners_;
  std::size_t ended_ = 0;
};

/// Where the gang fits when as few as can be have ended, in the order of the list; they have, in the world,
/// then. When it never fits, the world is as before.
std::optional<Reservation> first_fit(Cluster& world, const Gang& gang, const Runners& runners) {
  Timeline timeline(world, runners);
  // Mostly few are enough, and the list is long.
  std::size_t too_few = 0;
  std::size_t enough = 0;
  auto placed = timeline.place_after(enough, gang);
  while (!placed && enough < runners.size()) {
    too_few = enough;
    enough = std::clamp<std::size_t>(2 * enough, 1, runners.size());
    placed = timeline.place_after(enough, gang);
  }
  if (!placed) {
    timeline.go_to(0);
    return std::nullopt;
  }
  while (too_few + 1 < enough) {
    const auto middle = (too_few + enough) / 2;
    if (auto found = timeline.place_after(middle, gang)) {
      placed = std::move(found);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  timeline.go_to(enough);
  return Reservation{std::move(*placed),
                     std::nullopt,
                     {runners.begin(), runners.begin() + static_cast<std::ptrdiff_t>(enough)}};
}

/// Who of those who have gone does not fit beside the gang: asked from the last of them, who goes least
/// likely.
Runners in_the_way(Cluster& world, const Gang& gang, const std::vector<Decision>& decisions,
                   const Runners& gone) {
  const Job placed{.id = "\x01reserved", .gang = gang};
  take(world, placed, decisions);
  Runners result;
  for (auto at = gone.rbegin(); at != gone.rend(); ++at) {
    const auto& [job, theirs, started, ending] = **at;
    bool fits = true;
    for (std::size_t rank = 0; rank < theirs.size() && fits; ++rank)
      fits = world.allocate(allocation_id(job, rank), job.gang.members[rank], theirs[rank]).has_value();
    if (fits) continue;
    give_back(world, job);
    result.push_back(*at);
  }
  give_back(world, placed);
  return result;
}

/// Whether the end of the job is thought rather than known.
bool is_guess(const Job& job) {
  return job.expected && (!job.time_limit || *job.expected < *job.time_limit);
}

/// With a time, when there is one for all of them.
std::optional<Reservation> timed(Cluster& world, const ReservationQuery& query, const Runners& runners) {
  const auto list = by_end(runners, query.now);
  auto result = first_fit(world, query.gang, list);
  if (!result) return std::nullopt;
  result->at = result->gone.empty() ? query.now : end_of(*result->gone.back(), query.now);
  for (auto i = result->gone.size(); i < list.size() && end_of(*list[i], query.now) == result->at; ++i)
    result->gone.push_back(list[i]);
  result->estimated = std::ranges::any_of(result->gone, [](const auto* gone) { return is_guess(gone->job); });
  return result;
}

/// Without a time; only those have gone who are in the way.
std::optional<Reservation> untimed(Cluster& world, const ReservationQuery& query, const Runners& list) {
  auto result = first_fit(world, query.gang, list);
  if (result) result->gone = in_the_way(world, query.gang, result->decisions, result->gone);
  return result;
}

std::optional<Reservation> first_of(Cluster& world, const ReservationQuery& query) {
  auto all = query.before;
  all.insert(all.end(), query.behind.begin(), query.behind.end());
  if (auto found = timed(world, query, all)) return found;
  if (auto found = untimed(world, query, cheapest_to_wait_for(world, query.gang, query.before, query.now)))
    return found;
  return untimed(world, query, by_age(all));
}

}  // namespace

std::optional<TimePoint> end_of(const RunningJob& running, TimePoint now) {
  const auto length = length_of(running.job);
  if (!length) return std::nullopt;
  constexpr std::chrono::milliseconds kForEver = std::chrono::years(1000);
  return std::max(now, running.started_at + std::min(*length, kForEver));
}

std::optional<Reservation> earliest_start(Cluster& world, const ReservationQuery& query) {
  for (const auto* running : query.preemptable) give_back(world, running->job);
  auto result = first_of(world, query);
  if (!result) return std::nullopt;
  const auto preempted = in_the_way(world, query.gang, result->decisions, query.preemptable);
  result->gone.insert(result->gone.end(), preempted.begin(), preempted.end());
  return result;
}

}  // namespace drover::placement::schedule
