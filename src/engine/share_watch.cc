#include "engine/share_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "control/group_name.h"

namespace drover::engine {
namespace {

/// Of a group there is one name, whoever of it is there.
std::string name_of(const workload::Task& task) {
  const auto group = control::group_of(task);
  return group.empty() ? task.id : group;
}

/// None where an older daemon did not write down how much it has.
std::vector<share::Limit> limits_of(const control::TaskRecord& record) {
  std::vector<share::Limit> limits;
  if (std::ranges::find(record.gpus, 0U, &placement::Grant::memory_bytes) != record.gpus.end()) return limits;
  for (const auto& grant : record.gpus) limits.push_back({grant.uuid, grant.memory_bytes, grant.milli});
  return limits;
}

}  // namespace

bool ShareWatch::concerns(const control::Outcome& outcome) const {
  if (!port_) return false;
  return outcome.node || std::ranges::any_of(outcome.changed, [](const control::TaskRecord& record) {
           return !record.task.resources.share.whole();
         });
}

SharedGpus ShareWatch::shared_gpus() const {
  std::map<std::pair<std::string, std::string>, share::Allowance> allowances;
  std::set<std::string> gpus;
  SharedGpus shared;
  for (const auto& id : state_.active) {
    const auto& record = state_.tasks.at(id);
    if (record.task.resources.share.whole()) continue;
    for (const auto& grant : record.gpus) {
      if (grant.mig || grant.milli >= 1000 || grant.memory_bytes == 0) continue;
      gpus.insert(grant.uuid);
      const auto name = name_of(record.task);
      auto& allowance = allowances[{grant.uuid, name}];
      allowance.gpu = grant.uuid;
      allowance.name = name;
      allowance.tasks.insert(id);
      allowance.bytes = grant.memory_bytes;
      if (record.shrunk_from > grant.memory_bytes) allowance.earlier = record.shrunk_from;
      // A group is held to its share when all of it are.
      if (allowance.tier != gpu::kCounted) allowance.tier = placement::tier_of(grant, record.tier);
    }
    if (!record.gpus.empty()) shared.tasks.push_back(processes_.of(record));
    if (!record.tier.empty())
      shared.guarded.emplace(name_of(record.task), GuardedShare{id, limits_of(record)});
  }
  for (auto& [key, allowance] : allowances) shared.allowances.push_back(std::move(allowance));
  for (const auto& device : state_.machine().inventory.devices)
    if (gpus.contains(device.uuid)) shared.gpus.push_back(device);
  return shared;
}

void ShareWatch::inspect() {
  if (!port_) return;
  auto shared = shared_gpus();
  if (shared == told_) return;
  told_ = shared;
  port_(std::move(shared));
}

std::string ShareWatch::name_of_gpu(const std::string& uuid) const {
  for (const auto& device : state_.machine().inventory.devices)
    if (device.uuid == uuid) return fmt::format("GPU {}", device.index);
  return uuid;
}

/// "it held 9.3 GiB of GPU 2 and may hold 8 GiB"
std::string ShareWatch::in_words(const share::Verdict& verdict) const {
  const auto& allowance = verdict.allowance;
  const auto& group = state_.tasks.at(verdict.task).task.resources.group;
  const auto who =
      group.empty() ? "it" : fmt::format("it held most of what its group '{}' held: together they", group);
  return fmt::format("{} held {} of {} and may hold {}", who, format_bytes(verdict.held),
                     name_of_gpu(allowance.gpu), format_bytes(allowance.bytes));
}

/// What they were short of meanwhile, and no word of whose it was.
void ShareWatch::tell_neighbours(const share::Verdict& verdict) const {
  const bool is_ended = verdict.kind == share::Verdict::Kind::kEnd;
  const auto words = fmt::format("somebody else held {} of {} and may hold {}{}", format_bytes(verdict.held),
                                 name_of_gpu(verdict.allowance.gpu), format_bytes(verdict.allowance.bytes),
                                 is_ended ? ": that task is ended" : "");
  std::set<std::string> tasks;
  for (const auto& neighbour : told_.allowances)
    if (neighbour.gpu == verdict.allowance.gpu && neighbour.name != verdict.allowance.name)
      tasks.insert(neighbour.tasks.begin(), neighbour.tasks.end());
  for (const auto& task : tasks)
    if (const auto* record = state_.find(task); record != nullptr && control::owns_resources(record->state))
      happened_(control::event::Noted{"neighbour_overrun", task, words});
}

void ShareWatch::judged(const std::vector<share::Verdict>& verdicts) {
  for (const auto& verdict : verdicts) {
    const auto* record = state_.find(verdict.task);
    if (record == nullptr || !control::owns_resources(record->state)) continue;
    auto words = in_words(verdict);
    const bool is_ended_too = std::ranges::any_of(verdicts, [&](const share::Verdict& other) {
      return &other != &verdict && other.kind == share::Verdict::Kind::kEnd &&
             other.allowance == verdict.allowance;
    });
    if (!is_ended_too) tell_neighbours(verdict);
    if (verdict.kind == share::Verdict::Kind::kEnd) {
      happened_(control::event::Overran{verdict.task, std::move(words)});
      continue;
    }
    loop_.log(fmt::format("Task {} of '{}': {}", verdict.task, record->task.user.name, words));
    happened_(control::event::Noted{"share_overrun", verdict.task, std::move(words)});
  }
}

}  // namespace drover::engine
