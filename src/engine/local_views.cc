// What LocalEngine shows: reading only.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/local.h"

namespace drover::engine {
namespace {

bool may_see(const Caller& caller, const control::TaskRecord& record) {
  return caller.is_root() || record.task.owner == caller.user.uid;
}

Failure no_such_task(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id),
              "'drover ps -a' lists your tasks");
}

}  // namespace

control::TaskRecord LocalEngine::shown(const control::TaskRecord& record, const Waiting& waiting) const {
  auto copy = record;
  const auto& id = record.task.id;
  if (const auto reasons = waiting.find(id); reasons != waiting.end())
    copy.reason = fmt::format("{}", fmt::join(reasons->second, "; "));
  if (const auto step = preparing_.find(id); step != preparing_.end()) copy.reason = step->second;
  return copy;
}

Result<control::TaskRecord> LocalEngine::task(const Caller& caller, const std::string& id) const {
  if (const auto exact = state_.tasks.find(id); exact != state_.tasks.end() && may_see(caller, exact->second))
    return shown(exact->second, control::waiting_reasons(state_));
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
  const auto& matches = by_name.empty() ? by_prefix : by_name;
  if (matches.size() == 1) return shown(*matches.front(), control::waiting_reasons(state_));
  if (matches.empty()) return no_such_task(id);
  std::vector<std::string> ids;
  for (const auto* record : matches) ids.push_back(record->task.id);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' may mean {} tasks", id, ids.size()),
              fmt::format("name one by its id: {}", fmt::join(ids, ", ")));
}

std::vector<control::TaskRecord> LocalEngine::tasks(const Caller& caller) const {
  const auto waiting = control::waiting_reasons(state_);
  std::vector<control::TaskRecord> result;
  for (const auto& [id, record] : state_.tasks)
    if (may_see(caller, record)) result.push_back(shown(record, waiting));
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return result;
}

Result<std::vector<std::string>> LocalEngine::explain(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto record, task(caller, id));
  std::vector<std::string> lines;
  if (record.state == control::TaskState::kQueued) {
    auto waiting = control::waiting_reasons(state_);
    for (auto& reason : waiting[record.task.id]) lines.push_back(std::move(reason));
    for (const auto& device : state_.node.inventory.devices)
      if (!record.task.resources.gpus.empty() && !device.unfit.empty())
        lines.push_back(
            fmt::format("GPU {} ({}) is not given to anyone: {}", device.index, device.uuid, device.unfit));
  } else if (!record.reason.empty()) {
    lines.push_back(record.reason);
  }
  if (!record.gpus.empty())
    lines.push_back(fmt::format("{} GPUs: {}", is_final(record.state) ? "it had the" : "it has the",
                                fmt::join(control::uuids_of(record), ", ")));
  if (record.exit_status && record.reason.empty())
    lines.push_back(fmt::format("exited with status {}", *record.exit_status));
  return lines;
}

Result<std::string> LocalEngine::sandbox(const Caller& caller, const std::string& id) const {
  DROVER_TRY(const auto record, task(caller, id));
  return containerizer_->sandbox(record.task.id);
}

NodeView LocalEngine::node() const {
  auto view = view_;
  const auto usage = control::usage_of(state_);
  const auto& devices = state_.node.inventory.devices;
  view.gpus_total = static_cast<int>(devices.size());
  view.gpus_free = static_cast<int>(std::count_if(devices.begin(), devices.end(), [&](const auto& device) {
    return device.unfit.empty() && !usage.gpus.contains(device.uuid);
  }));
  view.milli_cpus_total = state_.node.milli_cpus;
  view.milli_cpus_free = state_.node.milli_cpus - usage.milli_cpus;
  view.memory_bytes_total = state_.node.memory_bytes;
  view.memory_bytes_free = state_.node.memory_bytes - std::min(usage.memory_bytes, state_.node.memory_bytes);
  constexpr std::uint64_t kMiB = 1 << 20;
  view.resources =
      fmt::format("gpus(*):{}; cpus(*):{:g}; mem(*):{}; disk(*):{}; ports(*):[{}-{}]", view.gpus_total,
                  static_cast<double>(view.milli_cpus_total) / 1000, view.memory_bytes_total / kMiB,
                  view.disk_bytes / kMiB, view.port_begin, view.port_end);
  return view;
}

gpu::Inventory LocalEngine::inventory() const {
  return state_.node.inventory;
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
