// How LocalEngine makes room when the disk of the state folder has too little: what nobody uses goes, and
// then ended tasks are forgotten.

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "control/retention.h"
#include "engine/local.h"

namespace drover::engine {
namespace {

/// What is removed comes free a little later. A look takes no more than a part of the time.
constexpr std::chrono::seconds kRoomAgain{15};
constexpr int kPartOfTimeForRoom = 8;
/// So much of what is to be free is made free beyond it, so that not every file of a task costs another one.
constexpr std::uint64_t kBeyond = 8;

}  // namespace

bool LocalEngine::room_is_short() const {
  return ports_.free_space && ports_.free_space() < ports_.room_to_keep;
}

Error LocalEngine::short_room() const {
  return {
      ErrorKind::kExhausted,
      fmt::format("The disk of the state folder has {} free, and {} should be: images that nobody uses are "
                  "removed, and then the oldest ended tasks are forgotten, with their sandboxes",
                  format_bytes(ports_.free_space()), format_bytes(ports_.room_to_keep)),
      "free some space: drover image prune, drover rm; or ask for less with drover serve --room-to-keep", ""};
}

std::uint64_t LocalEngine::missing_room() const {
  const auto goal = ports_.room_to_keep + ports_.room_to_keep / kBeyond;
  return goal - std::min(goal, ports_.free_space());
}

void LocalEngine::make_room() {
  if (!ports_.task_space || looks_for_room_ || !room_is_short()) return;
  if (steady() < make_room_at_) return ports_.wake_at(make_room_at_);
  looks_for_room_ = true;
  auto tasks = processes_of_tasks();
  add_ended(tasks);
  ports_.pool(0, [this, tasks = std::move(tasks), named = named_images(), began = steady()] {
    if (ports_.free_unused) ports_.free_unused(missing_room(), named);
    ports_.post([this, found = ports_.task_space(tasks), began] {
      looks_for_room_ = false;
      const auto taken = std::max<std::chrono::milliseconds>(steady() - began, {});
      make_room_at_ = steady() + std::max<std::chrono::milliseconds>(kRoomAgain, kPartOfTimeForRoom * taken);
      ports_.wake_at(make_room_at_);
      forget_for_room(found);
    });
  });
}

void LocalEngine::forget_for_room(const std::map<std::string, Result<std::uint64_t>>& found) {
  auto bytes = ended_bytes_;
  for (const auto& [id, size] : found) {
    if (!size) continue;
    bytes[id] = *size;
    if (const auto* record = state_.find(id); record != nullptr && control::is_final(record->state))
      ended_bytes_[id] = *size;
  }
  const auto free = ports_.free_space();
  if (!room_is_short()) return;
  for (const auto& id : control::tasks_to_forget(state_, bytes, missing_room(), steady())) {
    const auto& task = state_.tasks.at(id).task;
    const auto words = fmt::format("it is forgotten, with the {} of its sandbox: the disk has {} free",
                                   format_bytes(bytes.at(id)), format_bytes(free));
    ports_.log(fmt::format("Task '{}' of '{}': {}", id, task.owner_name, words));
    feed_.add({0, ports_.now(), "task_forgotten", id, task.owner, fmt::format("{}: {}", task.name, words)});
    // When it cannot be kept, the next look sees the same.
    (void)process(control::event::RemoveRequested{id});
  }
}

}  // namespace drover::engine
