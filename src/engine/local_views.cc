// What LocalEngine shows: reading only.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/ranges.h"
#include "base/units.h"
#include "container/cgroup.h"
#include "control/remedies.h"
#include "control/upgrade_block.h"
#include "engine/access.h"
#include "engine/accounting.h"
#include "engine/find_tasks.h"
#include "engine/local.h"

namespace drover::engine {
namespace {

/// "GPU 3 (GPU-1f…)", or how much of it: "0.5 of GPU 3 (GPU-1f…)".
std::vector<std::string> described(const std::vector<placement::Grant>& grants, const workload::Share& share,
                                   const gpu::Inventory& inventory) {
  std::vector<std::string> texts;
  for (const auto& grant : grants) {
    auto text = grant.uuid;
    for (const auto& device : inventory.devices)
      if (device.uuid == grant.uuid) text = fmt::format("GPU {} ({})", device.index, grant.uuid);
    if (grant.mig)
      text = fmt::format("{} of {}", grant.mig->profile, text);
    else if (share.memory_bytes > 0)
      text = fmt::format("{} of {}", format_bytes(grant.memory_bytes), text);
    else if (!share.whole())
      text = fmt::format("{:g} of {}", grant.milli / 1000.0, text);
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string describe_cpus(const control::TaskRecord& record, const std::vector<int>& usable) {
  const auto chosen = format_ranges(record.cpus);
  const auto pinned = container::cpus_to_pin(record.cpus, usable);
  if (pinned == record.cpus) return fmt::format("it is pinned to the CPUs {}", chosen);
  if (pinned.empty())
    return fmt::format("it is not pinned: the CPUs chosen for it ({}) are {}", chosen,
                       std::includes(record.cpus.begin(), record.cpus.end(), usable.begin(), usable.end())
                           ? "all that this host has"
                           : "not on this host");
  return fmt::format("it is pinned to the CPUs {}: of those chosen for it ({}) this host has no others",
                     format_ranges(pinned), chosen);
}

std::vector<std::string> why_it_waits(const control::State& state, const control::TaskRecord& record) {
  auto lines = control::waiting_reasons(state, record);
  if (record.task.origin.kind == workload::OriginKind::kService)
    if (auto block = control::upgrade_block(state, record.task.origin.name))
      lines.push_back(std::move(*block));
  if (control::attempt_of(record) > 0) lines.push_back(fmt::format("it ran before: {}", record.reason));
  for (const auto& device : state.machine().inventory.devices)
    if (const auto& why = gpu::why_withheld(device); !record.task.resources.gpus.empty() && !why.empty())
      lines.push_back(fmt::format("GPU {} ({}) is not given to anyone: {}", device.index, device.uuid, why));
  return lines;
}

std::vector<std::string> what_it_has(const control::State& state, const control::TaskRecord& record,
                                     const std::vector<int>& usable) {
  std::vector<std::string> lines;
  const auto& share = record.task.resources.share;
  const auto by_mps = record.task.resources.by_mps()
                          ? fmt::format(" by MPS, with its group '{}'", record.task.resources.group)
                          : "";
  if (!record.gpus.empty())
    lines.push_back(
        fmt::format("{} {}{}{}", is_final(record.state) ? "it had" : "it has",
                    fmt::join(described(record.gpus, share, state.machine_of(record).inventory), ", "),
                    gpu::tier_in_words(placement::tier_of(record.gpus.front(), record.tier)), by_mps));
  if (!record.cpus.empty() && owns_resources(record.state)) lines.push_back(describe_cpus(record, usable));
  return lines;
}

/// Where a task that waits stands, and what would let it start.
void add_outlook(const control::State& state, const control::TaskRecord& record, TimePoint now,
                 ExplanationView& view) {
  if (!state.positions || state.placed_by_others) return;
  const auto& job = control::job_id(record.task);
  const auto& order = state.positions->order;
  if (const auto place = std::find(order.begin(), order.end(), job); place != order.end())
    view.place = static_cast<int>(place - order.begin()) + 1;
  if (const auto reasons = state.positions->reasons.find(job); reasons != state.positions->reasons.end())
    for (const auto& remedy : reasons->second.remedies) view.remedies.push_back({remedy});
  if (control::is_held(record)) return;
  view.expected_run = state.run_times.expected(control::kind_of(record.task));
  view.expected_start = control::expected_start(state, job, now);
  if (!view.remedies.empty()) return;
  std::vector<workload::Task> tasks;
  for (const auto* member : control::members_of(record.task, state.finder())) tasks.push_back(member->task);
  view.remedies = control::remedies(state, tasks, now);
}

/// As Mesos' agents say it.
void describe(NodeView& view) {
  constexpr std::uint64_t kMiB = 1 << 20;
  view.resources =
      fmt::format("gpus(*):{}; cpus(*):{:g}; mem(*):{}; disk(*):{}; ports(*):[{}-{}]", view.gpus_total,
                  static_cast<double>(view.milli_cpus_total) / 1000, view.memory_bytes_total / kMiB,
                  view.disk_bytes / kMiB, view.port_begin, view.port_end);
}

}  // namespace

Doings LocalEngine::doings() const {
  auto doings = executor_.preparing();
  for (auto& [id, words] : lingering_.words()) doings.insert_or_assign(id, std::move(words));
  return doings;
}

control::TaskRecord LocalEngine::shown(const control::TaskRecord& record) const {
  return engine::shown(state_, record, doings());
}

Result<control::TaskRecord> LocalEngine::task(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto* record, find_task(state_, caller, id));
  return shown(*record);
}

TaskList LocalEngine::tasks(const Caller& caller) const {
  return {snapshot(), caller, doings()};
}

Later<Result<ExplanationView>> LocalEngine::explain(const Caller& caller, const std::string& id) const {
  return [state = snapshot(), does = doings(), caller, id, now = ports_.now(),
          cpus = ports_.usable_cpus]() -> Result<ExplanationView> {
    DROVER_TRY(const auto* found, find_job(*state, caller, id));
    ExplanationView view;
    view.record = engine::shown(*state, *found, does);
    if (found->state == control::TaskState::kQueued) {
      view.reasons = why_it_waits(*state, *found);
      add_outlook(*state, *found, now, view);
    } else if (!view.record.reason.empty()) {
      view.reasons.push_back(view.record.reason);
    }
    for (auto& line : what_it_has(*state, *found, cpus)) view.reasons.push_back(std::move(line));
    if (view.record.exit_status && view.record.reason.empty())
      view.reasons.push_back(fmt::format("exited with status {}", *view.record.exit_status));
    return view;
  };
}

Result<UseHistory> LocalEngine::use_history() const {
  if (!ports_.use_history) return Views::use_history();
  return ports_.use_history;
}

Result<std::string> LocalEngine::sandbox(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto* record, find_task(state_, caller, id));
  return sandbox_of(record->task.id);
}

Result<std::shared_ptr<const SandboxReader>> LocalEngine::files(const Caller& caller,
                                                                const std::string& id) const {
  DROVER_TRY(const auto* record, find_task(state_, caller, id));
  return executor_.containerizer()->files(record->task.id);
}

std::string LocalEngine::sandbox_of(const std::string& id) const {
  return executor_.containerizer()->sandbox(id);
}

void LocalEngine::add_facts(metrics::DaemonFacts& facts) const {
  facts.commits = loop_.commits().samples();
  facts.unsaved_events = loop_.unsaved();
}

namespace {

placement::Free less(placement::Free free, const placement::Free& taken) {
  const auto subtract = [](auto& from, auto amount) { from -= std::min(from, amount); };
  subtract(free.gpus, taken.gpus);
  subtract(free.milli_cpus, taken.milli_cpus);
  subtract(free.memory_bytes, taken.memory_bytes);
  return free;
}

}  // namespace

NodeView LocalEngine::node_view(const placement::Node& node) const {
  auto view = view_;
  const auto taken = taken_.find(node.name);
  const auto free =
      less(state_.cluster.free(node.name), taken == taken_.end() ? placement::Free{} : taken->second);
  view.name = node.name;
  view.cordoned = node.cordoned;
  view.keep_ended = state_.keep_ended;
  view.gpus_total = static_cast<int>(node.inventory.devices.size());
  view.gpus_free = free.gpus;
  view.milli_cpus_total = node.milli_cpus;
  view.milli_cpus_free = free.milli_cpus;
  view.memory_bytes_total = node.memory_bytes;
  view.memory_bytes_free = free.memory_bytes;
  describe(view);
  return view;
}

NodeView LocalEngine::node() const {
  auto view = node_view(state_.machine());
  if (!state_.placed_by_others) return view;
  for (const auto& name : state_.cluster.nodes()) {
    if (name == state_.node) continue;
    const auto one = node_view(*state_.cluster.node(name));
    view.gpus_total += one.gpus_total;
    view.gpus_free += one.gpus_free;
    view.milli_cpus_total += one.milli_cpus_total;
    view.milli_cpus_free += one.milli_cpus_free;
    view.memory_bytes_total += one.memory_bytes_total;
    view.memory_bytes_free += one.memory_bytes_free;
  }
  describe(view);
  return view;
}

std::vector<Views::Machine> LocalEngine::machines() const {
  if (!state_.placed_by_others) return Api::machines();
  std::vector<Machine> machines;
  for (const auto& name : state_.cluster.nodes()) {
    const auto& node = *state_.cluster.node(name);
    if (name != state_.node) machines.push_back({node_view(node), node.inventory});
  }
  return machines;
}

/// Of a cluster those of all nodes, of which nobody says how they are joined.
gpu::Inventory LocalEngine::inventory() const {
  if (!state_.placed_by_others) return state_.machine().inventory;
  gpu::Inventory all;
  for (const auto& [view, inventory] : machines()) {
    all.simulated = all.simulated || inventory.simulated;
    if (all.simulation.empty()) all.simulation = inventory.simulation;
    all.devices.insert(all.devices.end(), inventory.devices.begin(), inventory.devices.end());
  }
  all.links.assign(all.devices.size(), std::vector<gpu::Link>(all.devices.size()));
  return all;
}

Later<std::vector<Views::Holder>> LocalEngine::holders(const Caller& caller) const {
  return [state = snapshot(), caller] {
    std::vector<Holder> result;
    for (const auto& id : state->active) {
      const auto& record = state->tasks.at(id);
      const bool seen = may_see(caller, record), by_mps = record.task.resources.by_mps();
      for (const auto& grant : record.gpus)
        result.push_back({grant.uuid, seen ? id : "", record.task.user.name, grant.milli, grant.memory_bytes,
                          std::string(placement::tier_of(grant, record.tier)), grant.mig, by_mps,
                          seen && by_mps ? record.task.resources.group : ""});
    }
    return result;
  };
}

void LocalEngine::events(const Caller& caller, const EventQuery& query, EventOrder order,
                         EventPageTaker done) {
  if (order == EventOrder::kOldestFirst && feed_.has_after(query.after))
    return done(feed_.page(caller, query));
  if (const auto silent = loop_.silence()) return done(Failure(*silent));
  kept_events_.read(caller, query, order, feed_.last(), std::move(done));
}

void LocalEngine::report(const Caller& caller, const ReportQuery& query, ReportTaker done) {
  if (const auto silent = loop_.silence()) return done(Failure(*silent));
  const auto asker = caller.user.uid;
  const auto owner = caller.is_root() ? std::nullopt : std::optional(asker);
  kept_allocations_.report(query, owner, asker, accounts_of_active(state_, owner, {ports_.now(), steady()}),
                           std::move(done));
}

std::shared_ptr<void> LocalEngine::subscribe(std::function<void()> listener) {
  return feed_.subscribe(std::move(listener));
}

}  // namespace drover::engine
