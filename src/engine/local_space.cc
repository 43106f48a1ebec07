// What LocalEngine knows of the room that the tasks of each user take up on the disk.

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "engine/local.h"

namespace drover::engine {
namespace {

/// A look takes no more than this part of the time.
constexpr int kPartOfTimeForSpace = 8;
constexpr std::chrono::seconds kSpaceUsually{5};
constexpr std::chrono::seconds kSpaceWhileTooMuch{1};
/// A task that only writes down what it does is not the one that takes too much.
constexpr std::uint64_t kLittle = 1 << 20;

}  // namespace

void LocalEngine::look_at_space() {
  if (!ports_.task_space) return;
  std::map<uid_t, std::vector<TaskProcesses>> active;
  for (auto& task : processes_.of_tasks())
    if (const auto owner = state_.tasks.at(task.id).task.owner; owner != 0)
      active[owner].push_back(std::move(task));
  for (auto& [owner, tasks] : active) {
    auto& space = space_[owner];
    if (space.looking) continue;
    if (steady() < space.next)
      ports_.wake_at(space.next);
    else
      look_at_space_of(owner, std::move(tasks));
  }
}

void LocalEngine::look_at_space_of(uid_t owner, std::vector<TaskProcesses> tasks) {
  auto& space = space_[owner];
  space.looking = true;
  add_ended(tasks, owner);
  ports_.pool(owner, [this, owner, tasks = std::move(tasks), began = steady()] {
    ports_.post([this, owner, found = ports_.task_space(tasks), began] { space_found(owner, found, began); });
  });
}

void LocalEngine::add_ended(std::vector<TaskProcesses>& tasks, std::optional<uid_t> owner) {
  std::erase_if(ended_bytes_, [&](const auto& entry) { return !state_.tasks.contains(entry.first); });
  for (const auto& [at, id] : state_.ended)
    if (!ended_bytes_.contains(id) && (!owner || state_.tasks.at(id).task.owner == *owner))
      tasks.push_back({id});
}

void LocalEngine::space_found(uid_t owner, const std::map<std::string, Result<std::uint64_t>>& found,
                              TimePoint began) {
  auto& space = space_[owner];
  space.looking = false;
  std::vector<std::pair<std::string, std::string>> ending;
  for (const auto& [id, bytes] : found) {
    const auto record = state_.tasks.find(id);
    if (record == state_.tasks.end()) continue;
    auto& task = space.tasks[id];
    if (bytes)
      task.bytes = *bytes;
    else if (bytes.error().kind == ErrorKind::kExhausted)
      ending.emplace_back(id, bytes.error().message);
    if (control::is_final(record->second.state)) ended_bytes_[id] = task.bytes;
  }
  std::erase_if(space.tasks, [&](const auto& task) {
    return !state_.tasks.contains(task.first) || ended_bytes_.contains(task.first);
  });
  std::uint64_t sum = 0;
  for (const auto& [id, task] : space.tasks) sum += task.bytes;
  for (const auto& [id, bytes] : ended_bytes_)
    if (const auto* record = state_.find(id); record != nullptr && record->task.owner == owner) sum += bytes;
  const auto limit = state_.limits.sandbox_bytes;
  const bool too_much = limit > 0 && sum > limit;
  const auto grown = [&](const std::string& id) {
    const auto& task = space.tasks[id];
    return task.bytes - std::min(task.bytes, task.while_all_was_well);
  };
  if (!too_much) {
    for (auto& [id, task] : space.tasks) task.while_all_was_well = task.bytes;
  } else if (const auto most = std::ranges::max_element(
                 state_.active, {},
                 [&](const auto& id) { return state_.tasks.at(id).task.owner == owner ? grown(id) : 0; });
             most != state_.active.end() && grown(*most) > kLittle) {
    const auto& task = state_.tasks.at(*most).task;
    ending.emplace_back(*most, fmt::format("what '{}' keeps on the disk grew to {}, and {} are allowed",
                                           task.owner_name, format_bytes(sum), format_bytes(limit)));
  }
  const auto taken = std::max<std::chrono::milliseconds>(steady() - began, {});
  space.next = steady() + std::max<std::chrono::milliseconds>(too_much ? kSpaceWhileTooMuch : kSpaceUsually,
                                                              kPartOfTimeForSpace * taken);
  ports_.wake_at(space.next);
  for (auto& [id, why] : ending) happened(control::event::Overdrawn{id, std::move(why)});
}

}  // namespace drover::engine
