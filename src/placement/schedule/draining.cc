#include "placement/schedule/draining.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "placement/schedule/load.h"
#include "placement/schedule/reservation.h"

namespace drover::placement::schedule {
namespace {

using Runners = std::vector<const RunningJob*>;

/// So long a node may be kept for one job although ever more of it stands idle.
constexpr std::chrono::milliseconds kPatience = std::chrono::hours(1);
/// That the job waits counts as much as if this part of what it wants stood idle. Little: it is one job, and
/// what stands idle could serve many.
constexpr double kOwnLoss = 0.01;
constexpr std::chrono::milliseconds kNewWork = std::chrono::minutes(1);

/// In milliseconds.
double expected_rest(const RunningJob& running, TimePoint now) {
  const auto age = std::max(std::chrono::milliseconds(0), now - running.started_at) + kNewWork;
  const auto end = end_of(running, now);
  return static_cast<double>((end ? std::min(age, *end - now) : age).count());
}

Load wanted_by(const Request& request) {
  const auto milli = request.share.memory_bytes == 0 ? request.share.milli : 0;
  return {request.group.empty() ? std::int64_t{request.gpu_count()} * milli : 0, request.milli_cpus,
          static_cast<std::int64_t>(request.memory_bytes)};
}

Load held_on(const RunningJob& running, const std::string& node) {
  Load held{};
  for (std::size_t rank = 0; rank < running.decisions.size(); ++rank) {
    if (running.decisions[rank].node != node) continue;
    for (const auto& grant : running.decisions[rank].gpus) held[0] += grant.milli;
    held[1] += running.job.gang.members[rank].milli_cpus;
    held[2] += static_cast<std::int64_t>(running.job.gang.members[rank].memory_bytes);
  }
  return held;
}

struct Drain {
  std::string node;
  Runners going;
  bool takes_long = false;
  double cost = 0;  ///< GPU time that stands idle
};

bool enough(const Load& free, const Load& wanted) {
  return std::ranges::equal(free, wanted, [](auto has, auto wants) { return has >= wants; });
}

/// When the last of them has ended, if how long each goes on is exponentially distributed. Exact where they
/// are expected to go on equally long; else a little too long.
double expected_longest(std::vector<double> rests) {
  std::ranges::sort(rests, std::greater());
  double longest = 0;
  for (std::size_t i = 0; i < rests.size(); ++i) longest += rests[i] / static_cast<double>(i + 1);
  return longest;
}

/// Without jobs when even all are not enough. What a short one costs is all that will stand idle: the longer
/// it is under way, the less is still to come, and so it is carried through. A long one must not grow ever
/// more costly: it is what stands idle already that counts.
Drain drain(const std::string& node, const Runners& youngest_first, const Free& free_now, const Load& wanted,
            TimePoint now) {
  Load free{free_now.gpu_milli, free_now.milli_cpus, static_cast<std::int64_t>(free_now.memory_bytes)};
  Drain result{node, {}};
  auto idle = wanted[0];
  double used = 0;
  double last = 0;
  std::vector<double> rests;
  for (const auto* running : youngest_first) {
    if (enough(free, wanted)) break;
    const auto held = held_on(*running, node);
    free += held;
    rests.push_back(expected_rest(*running, now));
    last = std::max(last, rests.back());
    used += rests.back() * static_cast<double>(std::min(held[0], idle));
    idle -= std::min(held[0], idle);
    result.going.push_back(running);
  }
  if (!enough(free, wanted)) result.going.clear();
  const auto longest = expected_longest(std::move(rests));
  const auto own = kOwnLoss * static_cast<double>(wanted[0]) + 1;
  result.takes_long = longest > static_cast<double>(kPatience.count());
  result.cost = result.takes_long ? last * (static_cast<double>(idle) + own)
                                  : longest * (static_cast<double>(wanted[0]) + own) - used;
  return result;
}

}  // namespace

std::vector<const RunningJob*> cheapest_to_wait_for(const Cluster& world, const Gang& gang,
                                                    const Runners& running, TimePoint now) {
  std::map<std::string, Runners> by_node;
  for (const auto* each : running)
    for (const auto& decision : each->decisions)
      if (auto& list = by_node[decision.node]; list.empty() || list.back() != each) list.push_back(each);
  Load wanted{};
  for (const auto& member : gang.members) wanted = std::max(wanted, wanted_by(member));
  std::vector<Drain> drains;
  for (auto& [node, list] : by_node) {
    std::ranges::sort(list, [](const auto* a, const auto* b) {
      return std::tie(b->started_at, b->job.id) < std::tie(a->started_at, a->job.id);
    });
    if (auto found = drain(node, list, world.free(node), wanted, now); !found.going.empty())
      drains.push_back(std::move(found));
  }
  std::ranges::sort(drains, [](const Drain& a, const Drain& b) {
    return std::tie(a.takes_long, a.cost, a.node) < std::tie(b.takes_long, b.cost, b.node);
  });

  Runners result;
  std::set<const RunningJob*> listed;
  const auto list = [&](const RunningJob* each) {
    if (listed.insert(each).second) result.push_back(each);
  };
  for (const auto& each : drains)
    for (const auto* going : each.going) list(going);
  for (const auto* each : running) list(each);
  return result;
}

}  // namespace drover::placement::schedule
