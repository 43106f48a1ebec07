#include "engine/disk_use.h"

#include <fmt/format.h>

namespace drover::engine {
namespace {

/// A probe takes no more than this part of the time.
constexpr int kPartOfTimeForSpace = 8;
constexpr std::chrono::seconds kSpaceUsually{5};
constexpr std::chrono::seconds kSpaceWhileTooMuch{1};
/// A task that only writes down what it does is not the one that takes too much.
constexpr std::uint64_t kLittle = 1 << 20;

}  // namespace

void DiskUse::inspect() {
  if (!probe_) return;
  std::map<uid_t, std::vector<TaskProcesses>> active;
  for (auto& task : processes_.of_tasks())
    if (const auto owner = state_.tasks.at(task.id).task.owner; owner != 0)
      active[owner].push_back(std::move(task));
  for (auto& [owner, tasks] : active) {
    const auto& user = users_[owner];
    if (user.probing) continue;
    if (loop_.steady() < user.next)
      loop_.wake_at(user.next);
    else
      inspect(owner, std::move(tasks));
  }
}

void DiskUse::inspect(uid_t owner, std::vector<TaskProcesses> tasks) {
  users_[owner].probing = true;
  ended_.add_unseen(tasks, owner);
  loop_.pool(owner, [this, owner, tasks = std::move(tasks), began = loop_.steady()] {
    loop_.post([this, owner, seen = probe_(tasks), began] { found(owner, seen, began); });
  });
}

void DiskUse::found(uid_t owner, const std::map<std::string, Result<std::uint64_t>>& found, TimePoint began) {
  auto& user = users_[owner];
  user.probing = false;
  std::vector<control::event::Overdrawn> ending;
  for (const auto& [id, bytes] : found) {
    if (!state_.tasks.contains(id)) continue;
    auto& task = user.tasks[id];
    if (bytes)
      task.bytes = *bytes;
    else if (bytes.error().kind == ErrorKind::kExhausted)
      ending.push_back({id, bytes.error().message});
    ended_.seen(id, task.bytes);
  }
  std::erase_if(user.tasks, [&](const auto& task) {
    return !state_.tasks.contains(task.first) || ended_.bytes().contains(task.first);
  });
  const auto sum = all_of(owner);
  const auto limit = state_.limits.sandbox_bytes;
  const bool too_much = limit > 0 && sum > limit;
  if (!too_much)
    for (auto& [id, task] : user.tasks) task.while_all_was_well = task.bytes;
  else if (auto most = most_grown(owner, sum))
    ending.push_back(std::move(*most));
  const auto now = loop_.steady();
  const auto taken = std::max<std::chrono::milliseconds>(now - began, {});
  user.next = now + std::max<std::chrono::milliseconds>(too_much ? kSpaceWhileTooMuch : kSpaceUsually,
                                                        kPartOfTimeForSpace * taken);
  loop_.wake_at(user.next);
  for (auto& one : ending) overdrawn_(std::move(one));
}

std::uint64_t DiskUse::all_of(uid_t owner) const {
  std::uint64_t sum = 0;
  for (const auto& [id, task] : users_.at(owner).tasks) sum += task.bytes;
  for (const auto& [id, bytes] : ended_.bytes())
    if (const auto* record = state_.find(id); record != nullptr && record->task.owner == owner) sum += bytes;
  return sum;
}

std::optional<control::event::Overdrawn> DiskUse::most_grown(uid_t owner, std::uint64_t sum) {
  auto& tasks = users_.at(owner).tasks;
  const auto grown = [&](const std::string& id) {
    return state_.tasks.at(id).task.owner == owner ? tasks[id].grown() : 0;
  };
  const auto most = std::ranges::max_element(state_.active, {}, grown);
  if (most == state_.active.end() || grown(*most) <= kLittle) return std::nullopt;
  return control::event::Overdrawn{*most,
                                   fmt::format("what '{}' keeps on the disk grew to {}, and {} are allowed",
                                               state_.tasks.at(*most).task.owner_name, format_bytes(sum),
                                               format_bytes(state_.limits.sandbox_bytes))};
}

}  // namespace drover::engine
