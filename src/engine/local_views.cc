// What LocalEngine shows: reading only.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "container/cgroup.h"
#include "engine/access.h"
#include "engine/local.h"
#include "gpu/kernel.h"

namespace drover::engine {
namespace {

Failure no_such_task(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id),
              "'drover ps -a' lists your tasks");
}

/// "GPU-1", or with how much of it: "0.5 of GPU-1".
std::vector<std::string> described(const std::vector<placement::Grant>& grants) {
  std::vector<std::string> texts;
  for (const auto& grant : grants)
    texts.push_back(grant.milli == 1000 ? grant.uuid
                                        : fmt::format("{:g} of {}", grant.milli / 1000.0, grant.uuid));
  return texts;
}

}  // namespace

control::TaskRecord LocalEngine::shown(const control::TaskRecord& record) const {
  auto copy = record;
  if (record.state == control::TaskState::kQueued)
    copy.reason = fmt::format("{}", fmt::join(control::waiting_reasons(state_, record), "; "));
  if (const auto step = preparing_.find(record.task.id); step != preparing_.end()) copy.reason = step->second;
  return copy;
}

std::vector<const control::TaskRecord*> LocalEngine::matches(const Caller& caller,
                                                             const std::string& id) const {
  if (const auto exact = state_.tasks.find(id); exact != state_.tasks.end() && may_see(caller, exact->second))
    return {&exact->second};
  std::vector<const control::TaskRecord*> by_prefix, by_name;
  for (const auto& [full, record] : state_.tasks) {
    if (!may_see(caller, record)) continue;
    if (!id.empty() && full.starts_with(id)) by_prefix.push_back(&record);
    if (record.task.name == id) by_name.push_back(&record);
  }
  // A name is mostly meant for what is going on now.
  if (by_name.size() > 1 &&
      std::any_of(by_name.begin(), by_name.end(), [](auto* r) { return !is_final(r->state); }))
    std::erase_if(by_name, [](const auto* record) { return is_final(record->state); });
  return by_name.empty() ? by_prefix : by_name;
}

Result<const control::TaskRecord*> LocalEngine::find_one(const Caller& caller, const std::string& id) const {
  const auto found = matches(caller, id);
  if (found.size() == 1) return found.front();
  if (found.empty()) return no_such_task(id);
  std::vector<std::string> ids;
  for (const auto* record : found) ids.push_back(record->task.id);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' may mean {} tasks", id, ids.size()),
              fmt::format("name one by its id: {}", fmt::join(ids, ", ")));
}

Result<const control::TaskRecord*> LocalEngine::find_job(const Caller& caller, const std::string& id) const {
  const auto found = matches(caller, id);
  const auto of_one_gang = [&](const control::TaskRecord* record) {
    return record->task.gang && control::job_id(record->task) == control::job_id(found.front()->task);
  };
  if (found.size() > 1 && std::all_of(found.begin(), found.end(), of_one_gang)) return found.front();
  return find_one(caller, id);
}

Result<control::TaskRecord> LocalEngine::task(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto* record, find_one(caller, id));
  return shown(*record);
}

std::vector<control::TaskRecord> LocalEngine::tasks(const Caller& caller) const {
  std::vector<control::TaskRecord> result;
  for (const auto& [id, record] : state_.tasks)
    if (may_see(caller, record)) result.push_back(shown(record));
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return result;
}

std::string LocalEngine::describe_cpus(const control::TaskRecord& record) const {
  const auto chosen = gpu::format_cpu_list(record.cpus);
  const auto pinned = container::cpus_to_pin(record.cpus, ports_.usable_cpus);
  if (pinned == record.cpus) return fmt::format("it is pinned to the CPUs {}", chosen);
  if (pinned.empty())
    return fmt::format("it is not pinned: the CPUs chosen for it ({}) are {}", chosen,
                       std::includes(record.cpus.begin(), record.cpus.end(), ports_.usable_cpus.begin(),
                                     ports_.usable_cpus.end())
                           ? "all that this host has"
                           : "not on this host");
  return fmt::format("it is pinned to the CPUs {}: of those chosen for it ({}) this host has no others",
                     gpu::format_cpu_list(pinned), chosen);
}

Result<std::vector<std::string>> LocalEngine::explain(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto* found, find_one(caller, id));
  const auto record = shown(*found);
  std::vector<std::string> lines;
  if (record.state == control::TaskState::kQueued) {
    lines = control::waiting_reasons(state_, record);
    if (record.preemptions > 0) lines.push_back(fmt::format("it ran before: {}", found->reason));
    for (const auto& device : state_.machine().inventory.devices)
      if (!record.task.resources.gpus.empty() && !device.unfit.empty())
        lines.push_back(
            fmt::format("GPU {} ({}) is not given to anyone: {}", device.index, device.uuid, device.unfit));
  } else if (!record.reason.empty()) {
    lines.push_back(record.reason);
  }
  if (!record.gpus.empty()) {
    const auto& share = record.task.resources.share;
    lines.push_back(fmt::format("{} {}: {}", is_final(record.state) ? "it had" : "it has",
                                share.whole() ? "the GPUs" : "shares (not enforced) of the GPUs",
                                fmt::join(described(record.gpus), ", ")));
  }
  if (const auto& gang = record.task.gang)
    lines.push_back(
        fmt::format("it is rank {} of the {} members of the gang {}", gang->rank, gang->size, gang->id));
  if (!record.cpus.empty() && owns_resources(record.state)) lines.push_back(describe_cpus(record));
  if (record.exit_status && record.reason.empty())
    lines.push_back(fmt::format("exited with status {}", *record.exit_status));
  return lines;
}

Result<std::string> LocalEngine::sandbox(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto* record, find_one(caller, id));
  return containerizer_->sandbox(record->task.id);
}

NodeView LocalEngine::node() const {
  auto view = view_;
  const auto& machine = state_.machine();
  const auto free = state_.cluster.free(state_.node);
  view.gpus_total = static_cast<int>(machine.inventory.devices.size());
  view.gpus_free = free.gpus;
  view.milli_cpus_total = machine.milli_cpus;
  view.milli_cpus_free = free.milli_cpus;
  view.memory_bytes_total = machine.memory_bytes;
  view.memory_bytes_free = free.memory_bytes;
  constexpr std::uint64_t kMiB = 1 << 20;
  view.resources =
      fmt::format("gpus(*):{}; cpus(*):{:g}; mem(*):{}; disk(*):{}; ports(*):[{}-{}]", view.gpus_total,
                  static_cast<double>(view.milli_cpus_total) / 1000, view.memory_bytes_total / kMiB,
                  view.disk_bytes / kMiB, view.port_begin, view.port_end);
  return view;
}

gpu::Inventory LocalEngine::inventory() const {
  return state_.machine().inventory;
}

std::vector<Daemon::Holder> LocalEngine::holders(const Caller& caller) const {
  std::vector<Holder> result;
  for (const auto& id : state_.active) {
    const auto& record = state_.tasks.at(id);
    for (const auto& grant : record.gpus)
      result.push_back({grant.uuid, may_see(caller, record) ? id : "", record.task.user.name, grant.milli,
                        grant.memory_bytes});
  }
  return result;
}

std::vector<EventView> LocalEngine::events(const Caller& caller, std::uint64_t after) const {
  return feed_.after(caller, after);
}

std::shared_ptr<void> LocalEngine::subscribe(std::function<void()> listener) {
  return feed_.subscribe(std::move(listener));
}

}  // namespace drover::engine
