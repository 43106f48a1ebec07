#pragma once

// A cluster with a queue, for tests: jobs are submitted, plans are carried out, jobs end.

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "placement/schedule.h"
#include "placement/testing/clusters.h"

namespace drover::placement::testing {

inline const TimePoint kStart = TimePoint(std::chrono::milliseconds(1'700'000'000'000));

inline Job job(const std::string& id, const Request& request, int priority = 0) {
  return {.id = id, .gang = {{request}}, .user = "ann", .name_space = "lab", .priority = priority};
}

inline Job gang(const std::string& id, int members, const Request& request, int priority = 0) {
  auto result = job(id, request, priority);
  result.gang.members.assign(static_cast<std::size_t>(members), request);
  return result;
}

/// Changed in one expression: with(job("a", gpus(1)), [](Job& j) { j.queue = "vision"; }).
template <typename Change>
Job with(Job changed, Change change) {
  change(changed);
  return changed;
}

inline Job in(const std::string& queue, Job changed) {
  changed.queue = queue;
  return changed;
}
inline Job of(const std::string& user, Job changed) {
  changed.user = user;
  return changed;
}
inline Job within(std::chrono::milliseconds limit, Job changed) {
  changed.time_limit = limit;
  return changed;
}

inline Queue queue(const std::string& path) {
  Queue result;
  result.path = path;
  return result;
}
inline Queue limited(const std::string& path, std::int64_t gpus) {
  auto result = queue(path);
  result.limit.gpu_milli = gpus * 1000;
  return result;
}
inline Queue guaranteed(const std::string& path, std::int64_t gpus) {
  auto result = queue(path);
  result.guarantee.gpu_milli = gpus * 1000;
  return result;
}

struct Workplace {
  Cluster cluster;
  Rules rules;
  std::vector<Job> waiting;
  std::map<std::string, RunningJob> running;
  std::vector<DisruptionBudget> budgets;
  TimePoint now = kStart;
  std::uint64_t arrivals = 0;

  /// That many nodes "n0", "n1" … with that many GPUs each.
  Workplace(int nodes, int gpus_each) : cluster(cluster_of(nodes, gpus_each)) {}

  void add(const Queue& queue) { rules.queues[queue.path] = queue; }

  void submit(Job submitted) {
    submitted.sequence = ++arrivals;
    waiting.push_back(std::move(submitted));
  }

  Plan make_plan() {
    std::vector<RunningJob> list;
    for (const auto& [id, each] : running) list.push_back(each);
    std::vector<Decision> told;
    auto made = plan(cluster, rules, waiting, list, now, budgets, [&](const Start& start) {
      told.insert(told.end(), start.decisions.begin(), start.decisions.end());
    });
    std::vector<Decision> starts;
    for (const auto& start : made.starts)
      starts.insert(starts.end(), start.decisions.begin(), start.decisions.end());
    if (told != starts) throw std::logic_error("starts were told otherwise than they are planned");
    return made;
  }

  /// Plans, starts what is to start, and asks victims to end.
  Plan step() {
    auto result = make_plan();
    for (const auto& start : result.starts) {
      const auto found = std::ranges::find(waiting, start.job, &Job::id);
      for (std::size_t rank = 0; rank < start.decisions.size(); ++rank) {
        const auto status =
            cluster.allocate(allocation_id(*found, rank), found->gang.members[rank], start.decisions[rank]);
        if (!status) throw std::logic_error(start.job + ": " + status.error().message);
      }
      running[start.job] = {*found, start.decisions, now};
      waiting.erase(found);
    }
    for (const auto& preemption : result.preemptions)
      for (const auto& victim : preemption.victims) running.at(victim).ending = true;
    return result;
  }

  void end(const std::string& id) {
    const auto& ended = running.at(id);
    for (std::size_t rank = 0; rank < ended.decisions.size(); ++rank)
      cluster.release(allocation_id(ended.job, rank));
    running.erase(id);
  }

  /// Submitted and started at once.
  void run(Job submitted) {
    const auto id = submitted.id;
    submit(std::move(submitted));
    step();
    if (!running.contains(id)) throw std::logic_error(id + " does not start");
  }

  bool runs(const std::string& id) const { return running.contains(id); }
};

inline std::vector<std::string> started(const Plan& plan) {
  std::vector<std::string> ids;
  for (const auto& start : plan.starts) ids.push_back(start.job);
  return ids;
}

/// All that is said about why it waits, in one line.
inline std::string why(const Plan& plan, const std::string& job) {
  std::string result;
  for (const auto& line : describe(plan.waiting.at(job))) result += (result.empty() ? "" : "; ") + line;
  return result;
}

}  // namespace drover::placement::testing
