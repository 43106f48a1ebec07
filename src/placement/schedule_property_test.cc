// What must hold whatever is asked for: random clusters, rules and histories. DROVER_PROPERTY_STEPS says how
// many plans are made in all (default 4,000).

#include <gtest/gtest.h>

#include <set>

#include "placement/testing/properties.h"
#include "placement/testing/workplace.h"

namespace drover::placement {
namespace {

using namespace std::chrono_literals;
using namespace placement::testing;

const std::vector<std::string> kQueues = {"default", "a", "a/x", "a/y", "b", "b/z"};
const std::vector<std::string> kUsers = {"ann", "bob", "cat"};

Rules any_rules(Dice& dice) {
  Rules rules;
  if (dice.one_in(3)) return rules;
  for (const auto& path : kQueues) {
    if (dice.one_in(2)) continue;
    auto each = queue(path);
    each.weight = dice.in(1, 3);
    if (dice.one_in(2)) each.limit.gpu_milli = dice.in(4, 12) * 1000;
    if (dice.one_in(4)) each.limit.milli_cpus = dice.in(40, 120) * 1000;
    if (path != "a" && dice.one_in(2)) each.guarantee.gpu_milli = dice.in(0, 4) * 1000;
    rules.queues[path] = each;
  }
  if (dice.one_in(2))
    rules.quotas[{SubjectKind::kUser, "bob"}] = {{SubjectKind::kUser, "bob"}, {.gpu_milli = 6000}, {}};
  if (dice.one_in(3))
    rules.quotas[{SubjectKind::kNamespace, "lab"}] = {
        {SubjectKind::kNamespace, "lab"}, {.gpu_milli = 10'000}, {}};
  return validate(rules) ? rules : Rules{};
}

Request any_request(Dice& dice) {
  if (dice.one_in(4)) return cpu_only(dice.in(1, 40) * 1000);
  auto request = gpus(dice.one_in(5) ? dice.in(3, 4) : dice.in(1, 2));
  request.milli_cpus = dice.in(0, 16) * 1000;
  if (request.gpu_count() == 1 && dice.one_in(2)) {
    request.share.milli = 250 * dice.in(1, 3);
    if (dice.one_in(3))
      request.share = {.milli = 1000, .memory_bytes = static_cast<std::uint64_t>(dice.in(3, 12)) * kGiB};
  }
  if (dice.one_in(8)) request.interconnect.min_nvlinks = 1;
  return request;
}

Request with_cpus(Request request, std::int64_t milli_cpus) {
  request.milli_cpus = milli_cpus;
  return request;
}

Job any_job(Dice& dice, int number, bool with_priorities) {
  auto result = gang("j" + std::to_string(number), dice.one_in(5) ? dice.in(2, 4) : 1, any_request(dice));
  if (dice.one_in(3)) result.gang.arrangement = Arrangement::kSpread;
  if (result.gang.members.size() == 1 && dice.one_in(12)) {  // containers of a group ask for the same GPUs
    auto& request = result.gang.members[0];
    request = with_cpus(gpus(dice.in(1, 2)), request.milli_cpus);
    request.group = "g" + std::to_string(request.gpu_count());
  }
  result.queue = kQueues[static_cast<std::size_t>(dice.in(0, static_cast<int>(kQueues.size()) - 1))];
  result.user = kUsers[static_cast<std::size_t>(dice.in(0, 2))];
  if (with_priorities && dice.one_in(3)) result.priority = dice.in(-1, 3);
  if (dice.one_in(2)) result.time_limit = dice.in(1, 90) * 1min;
  return result;
}

/// What a queue with its children, a user or a namespace holds: GPUs of a group once.
struct Held {
  std::int64_t gpu_milli = 0;
  std::int64_t milli_cpus = 0;
};

class ScheduleHistory {
 public:
  explicit ScheduleHistory(std::uint64_t seed)
      : dice_(seed), work_(dice_.in(1, 4), 4), priorities_(dice_.one_in(2)) {
    work_.rules = any_rules(dice_);
    if (dice_.one_in(2)) work_.cluster.set_node(node("odd", {.count = 2, .nvlinks = 2}));
  }

  void step(std::uint64_t choice) {
    Dice dice(choice);
    switch (dice.in(0, 5)) {
      case 0:
        if (!work_.running.empty()) end_one(dice);
        break;
      case 1:
        pass_time(dice.in(1, 40) * 1min);
        break;
      case 2:
        end_victims();
        break;
      default:
        submit(any_job(dice, number_++, priorities_));
    }
    check_and_go_on(dice);
  }

  /// Nobody comes any more: everybody starts in the end.
  void drain() {
    Dice dice(number_);
    for (int rounds = 0; !work_.waiting.empty(); ++rounds) {
      if (rounds > 50 * (number_ + 10)) RC_FAIL("some job never starts: " + work_.waiting.front().id);
      end_victims();
      if (!work_.running.empty() && dice.one_in(2)) end_one(dice);
      check_and_go_on(dice);
    }
  }

  /// So many were made and checked, each twice.
  int plans() const { return plans_; }

 private:
  void submit(Job job) {
    if (possible(work_.cluster, work_.rules, job)) work_.submit(std::move(job));
  }

  void end_one(Dice& dice) {
    auto at = work_.running.begin();
    std::advance(at, dice.in(0, static_cast<int>(work_.running.size()) - 1));
    if (!at->second.ending) work_.end(std::string(at->first));
  }

  void end_victims() {
    std::vector<Job> victims;
    for (const auto& [id, running] : work_.running)
      if (running.ending) victims.push_back(running.job);
    for (auto& victim : victims) {
      work_.end(victim.id);
      work_.waiting.push_back(victim);  // with its old place in the order of arrival
    }
  }

  void pass_time(std::chrono::milliseconds time) {
    work_.now += time;
    std::vector<std::string> over;
    for (const auto& [id, running] : work_.running)
      if (running.job.time_limit && running.started_at + *running.job.time_limit <= work_.now &&
          !running.ending)
        over.push_back(id);
    for (const auto& id : over) work_.end(id);
  }

  std::vector<std::int64_t> free() const {
    std::vector<std::int64_t> all;
    for (const auto& name : work_.cluster.nodes()) {
      const auto now = work_.cluster.free(name);
      all.insert(all.end(),
                 {now.gpus, now.gpu_milli, now.milli_cpus, static_cast<std::int64_t>(now.memory_bytes)});
    }
    return all;
  }

  void check_and_go_on(Dice& dice) {
    ++plans_;
    const auto before = free();
    const auto waiting_before = work_.waiting;
    const auto running_before = work_.running;
    const auto first = work_.make_plan();
    RC_ASSERT(free() == before);
    dice.shuffle(work_.waiting);
    const auto plan = work_.step();  // throws when anything is given twice
    check_same(first, plan);
    check_complete(plan, waiting_before);
    check_gangs(plan);
    check_victims(plan, running_before);
    check_limits();
    check_reasons(plan, waiting_before);
  }

  static void check_same(const Plan& a, const Plan& b) {
    RC_ASSERT(a.order == b.order);
    RC_ASSERT(a.waiting == b.waiting);
    RC_ASSERT(started(a) == started(b));
    for (std::size_t i = 0; i < a.starts.size(); ++i)
      RC_ASSERT(a.starts[i].decisions == b.starts[i].decisions);
    RC_ASSERT(a.preemptions.size() == b.preemptions.size());
    for (std::size_t i = 0; i < a.preemptions.size(); ++i)
      RC_ASSERT(a.preemptions[i].victims == b.preemptions[i].victims);
  }

  /// Every job has its place in the order, and either starts or is told why not.
  static void check_complete(const Plan& plan, const std::vector<Job>& waiting) {
    std::set<std::string> ids;
    for (const auto& job : waiting) ids.insert(job.id);
    RC_ASSERT(std::set<std::string>(plan.order.begin(), plan.order.end()) == ids);
    RC_ASSERT(plan.order.size() == ids.size());
    for (const auto& id : started(plan)) RC_ASSERT(ids.erase(id) == 1U);
    for (const auto& [id, reasons] : plan.waiting) {
      RC_ASSERT(ids.erase(id) == 1U);
      RC_ASSERT(!reasons.list.empty() && !describe(reasons).empty());
    }
    RC_ASSERT(ids.empty());
  }

  void check_gangs(const Plan& plan) {
    for (const auto& start : plan.starts)
      RC_ASSERT(start.decisions.size() == work_.running.at(start.job).job.gang.members.size());
  }

  std::int64_t held_by(const std::string& queue) const {
    return held([&](const Job& job) { return (job.queue + "/").starts_with(queue + "/"); }).gpu_milli;
  }

  bool some_guarantee(const std::string& queue) const {
    for (auto at = std::string_view(queue); !at.empty(); at = parent_of(at))
      if (const auto rule = work_.rules.queues.find(std::string(at));
          rule != work_.rules.queues.end() && rule->second.guarantee != Limits{})
        return true;
    return false;
  }

  void check_victims(const Plan& plan, const std::map<std::string, RunningJob>& running) {
    std::set<std::string> seen;
    for (const auto& preemption : plan.preemptions) {
      const auto& by = *std::ranges::find(work_.waiting, preemption.job, &Job::id);
      RC_ASSERT(!preemption.victims.empty());
      for (const auto& id : preemption.victims) {
        RC_ASSERT(seen.insert(id).second);
        RC_ASSERT(!running.at(id).ending);
        RC_ASSERT(running.at(id).job.priority < by.priority || some_guarantee(by.queue));
      }
    }
    if (plan.preemptions.empty()) return;
    // Nobody is ended in vain, and the first does fit when they are gone.
    auto later = work_.cluster;
    for (const auto& [id, each] : work_.running)
      if (each.ending)
        for (std::size_t rank = 0; rank < each.decisions.size(); ++rank)
          later.release(allocation_id(each.job, rank));
    const auto& by = *std::ranges::find(work_.waiting, plan.preemptions[0].job, &Job::id);
    RC_ASSERT(std::holds_alternative<std::vector<Decision>>(place(later, by.gang)));
  }

  template <typename Filter>
  Held held(Filter filter) const {
    Held sum;
    std::set<std::string> groups;
    for (const auto& [id, running] : work_.running) {
      if (!filter(running.job)) continue;
      const auto amounts = amounts_of(work_.cluster, running.job.gang);
      const auto& group = running.job.gang.members[0].group;
      if (group.empty() || groups.insert(group).second) sum.gpu_milli += amounts.gpu_milli;
      sum.milli_cpus += amounts.milli_cpus;
    }
    return sum;
  }

  void check_limits() const {
    const auto within = [](const Held& held, const Limits& limit) {
      RC_ASSERT((!limit.gpu_milli || held.gpu_milli <= *limit.gpu_milli));
      RC_ASSERT((!limit.milli_cpus || held.milli_cpus <= *limit.milli_cpus));
    };
    for (const auto& [path, rule] : work_.rules.queues)
      within(held([&, &at = path](const Job& job) { return (job.queue + "/").starts_with(at + "/"); }),
             rule.limit);
    for (const auto& [subject, quota] : work_.rules.quotas)
      within(held([&, &whose = subject](const Job& job) {
               return (whose.kind == SubjectKind::kUser ? job.user : job.name_space) == whose.name;
             }),
             quota.limit);
  }

  /// The reasons are true of the cluster as the plan leaves it.
  void check_reasons(const Plan& plan, const std::vector<Job>& waiting) {
    const bool some_end =
        std::ranges::any_of(work_.running, [](const auto& each) { return each.second.ending; });
    for (const auto& job : waiting) {
      const auto found = plan.waiting.find(job.id);
      if (found == plan.waiting.end()) continue;
      bool about_nodes = false;
      bool about_limits = false;
      for (const auto& reason : found->second.list) {
        about_limits |= reason.dimension == Dimension::kQuota || reason.dimension == Dimension::kQueueLimit;
        about_nodes |= reason.dimension < Dimension::kQuota;
        if (reason.dimension == Dimension::kPreemption) RC_ASSERT(some_end);
      }
      if (about_limits) continue;
      const bool fits = std::holds_alternative<std::vector<Decision>>(place(work_.cluster, job.gang));
      if (about_nodes) RC_ASSERT(!fits);
      if (fits)
        RC_ASSERT(found->second.list[0].dimension == Dimension::kOrder ||
                  found->second.list[0].dimension == Dimension::kPreemption);
    }
  }

  Dice dice_;
  Workplace work_;
  bool priorities_;
  int number_ = 0;
  int plans_ = 0;
};

TEST(ScheduleProperty, HoldsInEveryHistory) {
  check_until(property_steps(kUsualSteps), 100, [](const std::vector<std::uint64_t>& choices) {
    if (choices.empty()) return 0;
    ScheduleHistory history(choices.front());
    for (const auto choice : choices) history.step(choice);
    history.drain();
    return history.plans();
  });
}

TEST(ScheduleProperty, WhatQueuesHoldConvergesToTheirWeights) {
  Dice dice(7);
  Workplace work(3, 8);
  const std::vector<int> weights = {1, 2, 5};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    work.add(queue("q" + std::to_string(i)));
    work.rules.queues["q" + std::to_string(i)].weight = weights[i];
  }
  std::vector<double> held(weights.size());
  constexpr int kRounds = 600;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      work.submit(in("q" + std::to_string(i), job(std::to_string(work.arrivals), gpus(1))));
    if (work.waiting.size() > 200) work.waiting.erase(work.waiting.begin(), work.waiting.begin() + 3);
    work.step();
    for (const auto& [id, running] : work.running)
      if (round >= kRounds / 3) held[static_cast<std::size_t>(running.job.queue[1] - '0')] += 1;
    auto at = work.running.begin();
    std::advance(at, dice.in(0, static_cast<int>(work.running.size()) - 1));
    work.end(std::string(at->first));
  }
  const auto all = held[0] + held[1] + held[2];
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_NEAR(held[i] / all, weights[i] / 8.0, 0.03) << "queue " << i;
}

}  // namespace
}  // namespace drover::placement
