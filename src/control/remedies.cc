#include "control/remedies.h"

#include <algorithm>

#include "control/planning.h"
#include "placement/awaited.h"
#include "placement/weaker.h"
#include "workload/task.h"

namespace drover::control {
namespace {

using nlohmann::json;

using Start = std::optional<std::vector<placement::Decision>>;

constexpr std::size_t kMostTold = 3;
/// How many plans are made for one answer, and how many waiting tasks they may look at together.
constexpr int kMostPlans = 100;
constexpr std::size_t kMostPlanned = 2000;

/// As if they were not said.
void forget_amounts(workload::Resources& resources, Unsaid unsaid) {
  static const workload::Resources least = workload::Task().resources;
  if (unsaid.cpus) resources.milli_cpus = least.milli_cpus;
  if (unsaid.memory) resources.memory_bytes = least.memory_bytes;
}

/// The tasks as they would be if they asked for what `gang` says, under names that nobody has.
std::vector<workload::Task> asking_for(const placement::Gang& gang, std::vector<workload::Task> tasks) {
  tasks.resize(gang.members.size());
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    auto& task = tasks[rank];
    const auto group = std::move(task.resources.group);  // placement has it under its owner's name
    task.resources = gang.members[rank];
    task.resources.group = group;
    task.id += "?";
    if (!task.gang) continue;
    task.gang->id += "?";
    task.gang->size = static_cast<int>(tasks.size());
    task.gang->arrangement = gang.arrangement;
    task.id = member_id(task.gang->id, static_cast<int>(rank));
  }
  return tasks;
}

/// What the definition of the first says in `instead` and not, or otherwise, in `before`.
json changes_of(const workload::Task& before, const workload::Task& instead) {
  const auto one = workload::encode(before), other = workload::encode(instead);
  json changes = json::object();
  for (const auto& [name, value] : one.items())
    if (!other.contains(name)) changes[name] = nullptr;
  for (const auto& [name, value] : other.items())
    if (!one.contains(name) || one[name] != value) changes[name] = value;
  changes.erase("gang");
  return changes;
}

/// Which amounts are those that the tasks would have if nothing were said of them.
std::vector<Unsaid> unsaid_in(const State& state, const std::vector<workload::Task>& tasks) {
  auto shares = tasks;
  for (auto& task : shares) forget_amounts(task.resources, {true, true});
  give_gpu_shares(shares, std::vector<Unsaid>(tasks.size(), {true, true}), state.machine(), state.rules,
                  state.gpu_share);
  std::vector<Unsaid> unsaid;
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    const auto& has = tasks[rank].resources;
    const auto& share = shares[rank].resources;
    unsaid.push_back({has.milli_cpus == share.milli_cpus, has.memory_bytes == share.memory_bytes});
  }
  return unsaid;
}

bool same_gpus(const workload::Resources& one, const workload::Resources& other) {
  return one.gpu_count() == other.gpu_count() && one.share == other.share;
}

/// Tries gangs instead of tasks that wait, or that nobody has submitted yet: first alone, which is cheap,
/// then on the whole queue.
class Rehearsal {
 public:
  Rehearsal(const State& state, const std::vector<workload::Task>& tasks, TimePoint now)
      : state_(state), tasks_(tasks), unsaid_(unsaid_in(state, tasks)), now_(now), cluster_(state.cluster) {
    plans_left_ = std::min(kMostPlans, static_cast<int>(kMostPlanned / (state.queue.size() + 1)));
  }

  bool fits(const placement::Gang& gang) { return placement::try_place(cluster_, gang).has_value(); }

  Start try_instead(const placement::Gang& weaker) {
    const auto gang = with_shares(weaker);
    if (!fits(gang) || plans_left_-- <= 0) return std::nullopt;
    Draft draft(state_, now_);
    withdraw(draft);
    const auto asked = asking_for(gang, tasks_);
    for (const auto& task : asked) add(draft, task);
    auto plan = plan_of(draft);
    for (auto& start : plan.starts)
      if (start.job == job_id(asked.front())) return std::move(start.decisions);
    return std::nullopt;
  }

 private:
  /// Who asks for fewer GPUs has less that goes with them.
  placement::Gang with_shares(placement::Gang gang) const {
    auto asked = asking_for(gang, tasks_);
    std::vector<Unsaid> unsaid(asked.size());
    for (std::size_t rank = 0; rank < asked.size(); ++rank) {
      auto& resources = asked[rank].resources;
      if (!same_gpus(resources, tasks_[rank].resources)) unsaid[rank] = unsaid_[rank];
      forget_amounts(resources, unsaid[rank]);
    }
    give_gpu_shares(asked, unsaid, state_.machine(), state_.rules, state_.gpu_share);
    for (std::size_t rank = 0; rank < asked.size(); ++rank) {
      gang.members[rank].milli_cpus = asked[rank].resources.milli_cpus;
      gang.members[rank].memory_bytes = asked[rank].resources.memory_bytes;
    }
    return gang;
  }

  void withdraw(Draft& draft) const {
    for (const auto& task : tasks_)
      if (const auto* record = draft.find(task.id); record != nullptr && record->state == TaskState::kQueued)
        draft.change(task.id).state = TaskState::kKilled;
  }

  /// Unchecked: who asks for less may ask for it too.
  void add(Draft& draft, const workload::Task& task) const {
    TaskRecord record;
    record.task = task;
    record.submitted_at = now_;
    draft.add(std::move(record));
  }

  const State& state_;
  const std::vector<workload::Task>& tasks_;
  std::vector<Unsaid> unsaid_;
  TimePoint now_;
  placement::Cluster cluster_;
  int plans_left_ = 0;
};

}  // namespace

std::vector<Remedy> remedies(const State& state, const std::vector<workload::Task>& tasks, TimePoint now) {
  if (tasks.empty()) return {};
  placement::Gang gang;
  for (const auto& task : tasks) {
    gang.members.push_back(request_of(task));
    narrow(gang.members.back(), task, state.images);
  }
  if (tasks.front().gang) gang.arrangement = tasks.front().gang->arrangement;
  Rehearsal rehearsal(state, tasks, now);
  const auto found = placement::weaker_that_start(
      state.cluster, gang, [&](const placement::Gang& weaker) { return rehearsal.try_instead(weaker); },
      kMostTold);
  const auto before = asking_for(gang, tasks).front();
  std::vector<Remedy> told;
  for (const auto& [text, weaker] : found)
    told.push_back({text, changes_of(before, asking_for(weaker, tasks).front())});
  if (!told.empty() || rehearsal.fits(gang)) return told;
  if (auto wait = placement::awaited(state.cluster, gang); !wait.empty()) told.push_back({std::move(wait)});
  return told;
}

}  // namespace drover::control
