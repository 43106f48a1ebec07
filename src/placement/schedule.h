#pragma once

// What starts now, what is ended for it, and why the rest waits: one pure function over the whole queue.
//
// Order: priority; then dominant-resource fairness, from the root of the queues down, by weight, and between
// the users of one queue; of one user's, the job that came first, and then those that run
// shortest (length_of()); then order of arrival. A job is all or nothing. The first job that could run but
// for what others hold gets a reservation; whoever comes later starts only if that does not delay it
// (backfill): on what it does not need, or when it ends, by its time limit or as is expected, before the
// reservation can begin.
// Limits and quotas are hard; a job that only they hold back reserves nothing. Lower priority is preempted,
// and what a queue lent is reclaimed, only if that lets the job run at once: going beyond disruption budgets
// as little as can be, then with the fewest victims.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "placement/gang.h"
#include "placement/queues.h"

namespace drover::placement {

/// One container, or a gang.
struct Job {
  std::string id;
  Gang gang;
  std::string user;
  std::string name_space;
  std::string queue{kDefaultQueue};
  int priority = 0;                                     ///< higher goes first
  std::uint64_t sequence = 0;                           ///< order of arrival; unique
  std::optional<std::chrono::milliseconds> time_limit;  ///< it is stopped then
  std::optional<std::chrono::milliseconds> expected;    ///< how long it is thought to run (run_times.h)
};

/// After how long it has ended, as far as that is known or thought.
std::optional<std::chrono::milliseconds> length_of(const Job& job);

struct RunningJob {
  Job job;
  std::vector<Decision> decisions;  ///< by rank; the cluster has them under allocation_id()
  TimePoint started_at{};
  bool ending = false;  ///< it was asked to end: its room comes free soon, and it is no victim any more
};

/// So many containers may be ended for others. It gives way where a job can start in no other way.
struct DisruptionBudget {
  int allowed = 0;
  std::map<std::string, int> containers = {};  ///< that it protects, by the running jobs that they are of
};

/// Under which id the cluster holds a member: the job's id for a job of one, else "<job>/<rank>".
std::string allocation_id(const Job& job, std::size_t rank);

struct Start {
  std::string job;
  std::vector<Decision> decisions;  ///< by rank
};

/// `victims` are to be ended; the job starts in a later plan, when they are gone, and what they leave is kept
/// for it.
struct Preemption {
  std::string job;
  std::vector<std::string> victims;
};

struct Plan {
  std::vector<Start> starts;  ///< in order: each fits after those before it
  std::vector<Preemption> preemptions;
  std::map<std::string, Reasons> waiting;  ///< every job that does not start; never empty ones
  std::vector<std::string> order;          ///< all waiting jobs, as they stand in the queue now
};

/// Hears of each start as soon as it is decided: what comes after it in the plan does not change it. The
/// cluster and what runs must stay as they are until the plan is made.
using OnStart = std::function<void(const Start& start)>;

/// `cluster` holds exactly the running jobs, and is as before when this returns. `waiting` in any order.
Plan plan(Cluster& cluster, const Rules& rules, const std::vector<Job>& waiting,
          const std::vector<RunningJob>& running, TimePoint now,
          const std::vector<DisruptionBudget>& budgets = {}, const OnStart& on_start = {});

/// An error when the job can never run: not on the empty cluster, or not within the limits of its queue and
/// the quotas of its user and namespace.
Status possible(const Cluster& cluster, const Rules& rules, const Job& job);

/// What a request counts as in limits and quotas.
ResourceAmounts amounts_of(const Cluster& cluster, const Gang& gang);

}  // namespace drover::placement
