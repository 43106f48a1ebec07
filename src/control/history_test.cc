// Whatever happens, in whatever order and however often: what holds of every state. DROVER_PROPERTY_STEPS
// sets how many events there are in all, about.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/property_steps.h"
#include "control/journal.h"
#include "control/sharing.h"
#include "control/testing/journal.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine

constexpr int kGpus = 4;
constexpr int kMostEvents = 60;  ///< of one history, less one

/// From the whole range from the first try on, as inRange() alone is not.
int pick(int begin, int end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(begin, end));
}

/// One GPU as the records have it.
struct Holding {
  int milli = 0;
  std::uint64_t memory_bytes = 0;
};

/// Sums over the running tasks; a group's GPUs count once.
std::map<std::string, Holding> holdings(const State& state) {
  std::map<std::string, Holding> holdings;
  std::set<std::string> groups;
  for (const auto& [id, record] : state.tasks) {
    if (!owns_resources(record.state)) continue;
    const auto group = request_of(record.task).group;
    if (!group.empty() && !groups.insert(group).second) continue;
    for (const auto& grant : record.gpus) {
      holdings[grant.uuid].milli += grant.milli;
      holdings[grant.uuid].memory_bytes += grant.memory_bytes;
    }
  }
  return holdings;
}

std::string random_user() {
  return *rc::gen::element<std::string>("root", "alice", "bob");
}

void dress(workload::Task& task, const std::string& user, int priority) {
  task.owner_name = user;
  task.owner = user == "root" ? 0 : user == "alice" ? 1000 : 1001;
  task.priority = priority;
}

workload::Task random_task(const std::string& id) {
  auto result = task(id, pick(0, kGpus + 2));
  dress(result, random_user(), pick(-2, 4));
  if (pick(0, 3) == 0) result.resources.share.milli = pick(1, 1001);
  if (pick(0, 6) == 0) {
    result.resources.share = {};
    result.resources.group = "g";
    if (!result.resources.gpus.empty()) result.resources.gpus[0].count = 1;
  }
  if (pick(0, 3) == 0) result.timeout = std::chrono::seconds(pick(1, 100));
  // Two templates that are kept apart, for many tasks.
  if (pick(0, 3) == 0) result.environment = {{"FILL", std::string(5000, pick(0, 2) == 0 ? 'x' : 'y')}};
  return result;
}

event::Submitted random_submission(int fresh) {
  const auto id = "t" + std::to_string(fresh);
  if (pick(0, 3) > 0) return {{random_task(id)}};
  auto members = gang(id, pick(1, 4), pick(0, 3));
  const auto user = random_user();
  const int priority = pick(-2, 3);
  for (auto& member : members) dress(member, user, priority);
  return {members};
}

event::FrameworkLaunched random_launch(int fresh) {
  event::FrameworkLaunched launched;
  for (auto& task : random_submission(fresh).tasks) {
    const auto name = task.id;
    task.origin = {workload::OriginKind::kFramework, "F", name, ""};
    task.gang.reset();
    launched.launches.push_back({name, std::move(task)});
  }
  return launched;
}

event::RulesChanged random_rules() {
  placement::Rules rules;
  if (*rc::gen::arbitrary<bool>())
    rules.queues["default"] = {"default", {pick(1000, 5000), {}, {}}, {}, 1, {}};
  for (const char* user : {"alice", "bob"}) {
    if (*rc::gen::arbitrary<bool>()) continue;
    const placement::Subject subject{placement::SubjectKind::kUser, user};
    rules.quotas[subject] = {subject, {pick(500, 4000), {}, {}}, pick(0, 4)};
  }
  return {rules};
}

std::size_t kept_templates(const std::map<std::string, std::string>& journal) {
  return static_cast<std::size_t>(std::ranges::count_if(
      journal, [](const auto& entry) { return entry.first.starts_with("/template:"); }));
}

Event random_event(const State& state, int fresh) {
  const auto any_id = [&]() -> std::string {
    if (state.tasks.empty()) return "none";
    return std::next(state.tasks.begin(), pick(0, static_cast<int>(state.tasks.size())))->first;
  };
  // Mostly of those of whom something is to be heard.
  const auto running_id = [&]() -> std::string {
    if (state.active.empty() || pick(0, 4) == 0) return any_id();
    return *std::next(state.active.begin(), pick(0, static_cast<int>(state.active.size())));
  };
  switch (pick(0, 16)) {
    case 0:
    case 1:
    case 2:
      return random_submission(fresh);
    case 3:
      return random_launch(fresh);
    case 4:
      return event::Started{running_id(), kNow};
    case 5:
    case 6:
    case 7:
    case 8:
      return event::Ended{running_id(), exited(pick(0, 3), *rc::gen::arbitrary<bool>())};
    case 9:
      return event::StopRequested{any_id(), *rc::gen::arbitrary<bool>()};
    case 10:
      if (*rc::gen::arbitrary<bool>())
        return event::PutBack{running_id(), Error{ErrorKind::kUnavailable, "no"}};
      return event::LaunchFailed{running_id(), Error{ErrorKind::kInternal, "no"}};
    case 11:
      return random_rules();
    case 12:
      return event::Tick{};
    case 13:
      return event::ResizeRequested{running_id(), {pick(0, 1001), 0}};
    case 14:
      return event::ResizeRequested{running_id(), {1000, static_cast<std::uint64_t>(pick(1, 17)) << 30}};
    default:
      return event::NeverStarted{running_id()};
  }
}

void check_records(const Machine& machine, const Rows<TaskRecord>& before) {
  for (const auto& [id, record] : machine.state.tasks) {
    const auto count = static_cast<std::size_t>(record.task.resources.gpu_count());
    RC_ASSERT(record.gpus.size() == (owns_resources(record.state) ? count : record.gpus.size()));
    if (record.state == TaskState::kQueued) {
      RC_ASSERT(record.gpus.empty());
      RC_ASSERT(!machine.reasons(id).empty());
    }
    if (const auto old = before.find(id); old != before.end() && is_final(old->second.state))
      RC_ASSERT(record == old->second);
    if (restarts_after_preemption(record.task))
      RC_ASSERT(!is_final(record.state) || !record.preempted);
    else
      RC_ASSERT(record.preemptions == 0);
  }
}

/// A gang runs or waits whole, until one of its members ends it; then nobody of it starts any more.
void check_gangs(const State& state) {
  for (const auto& [id, record] : state.tasks) {
    if (!record.task.gang || record.task.gang->rank != 0) continue;
    const auto members = members_of(record.task, state.finder());
    const auto count = [&](auto predicate) {
      return std::count_if(members.begin(), members.end(), predicate);
    };
    const auto waiting = count([](auto* m) { return m->state == TaskState::kQueued; });
    const auto going =
        count([](auto* m) { return m->state == TaskState::kStarting || m->state == TaskState::kRunning; });
    const auto failed = count([](auto* m) { return is_final(m->state) && m->state != TaskState::kFinished; });
    RC_ASSERT(waiting == 0 || going == 0);
    RC_ASSERT(failed == 0 || (waiting == 0 && going == 0));
  }
}

/// What the cluster has of a running task, alone or as a member of its gang.
const placement::Decision* in_cluster(const State& state, const workload::Task& task) {
  const auto* alone = state.cluster.find(task.id);
  if (alone != nullptr || !task.gang) return alone;
  const auto job = job_of(members_of(task, state.finder()));
  return state.cluster.find(placement::allocation_id(job, static_cast<std::size_t>(task.gang->rank)));
}

void check_holdings(const State& state) {
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    const auto* held = in_cluster(state, record.task);
    RC_ASSERT(held != nullptr);
    RC_ASSERT(
        std::ranges::equal(held->gpus, record.gpus, {}, &placement::Grant::uuid, &placement::Grant::uuid));
  }
  std::int64_t taken = 0;
  for (const auto& [uuid, holding] : holdings(state)) {
    RC_ASSERT(holding.milli <= 1000);
    RC_ASSERT(holding.memory_bytes <= 16ULL << 30);
    taken += holding.milli;
  }
  RC_ASSERT(state.cluster.free("here").gpu_milli == kGpus * 1000 - taken);
}

bool within(const placement::Limits& limit, const placement::ResourceAmounts& used) {
  return !limit.gpu_milli || used.gpu_milli <= *limit.gpu_milli;
}

/// What newly takes GPUs stays within the limits; what ran before they came goes on. Whoever joins the GPUs
/// of a group takes none.
void check_limits(const State& state, const Rows<TaskRecord>& before) {
  for (const auto& id : state.active) {
    const auto& task = state.tasks.at(id).task;
    const auto old = before.find(id);
    const bool ran = old != before.end() && owns_resources(old->second.state);
    if (ran || task.resources.gpus.empty() || !task.resources.group.empty()) continue;
    const placement::Subject user{placement::SubjectKind::kUser, task.owner_name};
    if (const auto quota = state.rules.quotas.find(user); quota != state.rules.quotas.end())
      RC_ASSERT(within(quota->second.limit, used_by(state, user)));
    if (const auto queue = state.rules.queues.find(task.queue); queue != state.rules.queues.end())
      RC_ASSERT(within(queue->second.limit, used_in(state, task.queue)));
  }
}

void check_history() {
  Machine machine(kGpus);
  std::map<std::string, std::string> journal;
  const int steps = pick(1, kMostEvents);
  bool preempted = false, evicted = false, shared = false, whole_gang = false;
  for (int step = 0; step < steps; ++step) {
    const auto before = machine.state.tasks;
    const auto now = kNow + std::chrono::seconds(step);
    const Event event =
        step == 0 ? Event(event::FrameworkSubscribed{"F", {}}) : random_event(machine.state, step);
    const auto outcome = decide(machine.state, event, now);
    if (!outcome) continue;
    const auto changes = changes_of(*outcome);
    for (const auto& [key, text] : changes.put) journal[key] = text;
    for (const auto& key : changes.removed) journal.erase(key);
    apply(machine.state, *outcome);

    for (const auto& record : outcome->changed) {
      preempted |= record.state == TaskState::kQueued && record.preemptions > 0;
      evicted |= is_final(record.state) && record.preempted;
      shared |= !record.gpus.empty() && record.gpus[0].milli < 1000;
      whole_gang |= owns_resources(record.state) && record.task.gang && record.task.gang->size > 1;
    }
    check_records(machine, before);
    check_gangs(machine.state);
    check_holdings(machine.state);
    check_limits(machine.state, before);

    if (pick(0, 4) > 0) continue;
    auto read = testing::decode_journal(journal);
    RC_ASSERT(read.has_value());
    const auto restored = restore(*read, machine.state.machine());
    RC_ASSERT(restored.tasks == machine.state.tasks);
    RC_ASSERT(restored.framework_tasks == machine.state.framework_tasks);
    RC_ASSERT(restored.template_uses == machine.state.template_uses);
    RC_ASSERT(kept_templates(journal) == machine.state.template_uses.size());
    RC_ASSERT(restored.rules == machine.state.rules);
    RC_ASSERT(restored.queue == machine.state.queue);
    RC_ASSERT(restored.active == machine.state.active);
    RC_ASSERT(restored.usages == machine.state.usages);
    RC_ASSERT(restored.definitions == machine.state.definitions);
    RC_ASSERT(restored.cluster.free("here").gpu_milli == machine.state.cluster.free("here").gpu_milli);
    if (pick(0, 2) == 0) machine.state = restored;
  }
  RC_CLASSIFY(preempted, "somebody was preempted");
  RC_CLASSIFY(evicted, "a framework lost a task to somebody");
  RC_CLASSIFY(shared, "somebody had a share");
  RC_CLASSIFY(whole_gang, "a gang ran");
}

// No part of a GPU has two owners, no task leaves its end again, gangs are whole, limits
// hold, and the state that a restart reads from the journal is the state that was.
TEST(History, PropertyNothingTwiceAndARestartRecoversExactly) {
  auto params = rc::detail::configuration().testParams;
  constexpr int kUsualEvents = kMostEvents / 2;
  params.maxSuccess = property_steps(params.maxSuccess * kUsualEvents) / kUsualEvents;
  const auto result = rc::detail::checkTestable(check_history, rc::detail::TestMetadata{}, params);
  rc::detail::printResultMessage(result, std::cerr);
  ASSERT_TRUE(result.is<rc::detail::SuccessResult>());
}

}  // namespace
}  // namespace drover::control
