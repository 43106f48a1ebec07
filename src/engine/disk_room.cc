#include "engine/disk_room.h"

#include <fmt/format.h>

#include "control/retention.h"

namespace drover::engine {
namespace {

/// What is left is kept for what ends tasks.
constexpr std::uint64_t kRoomForNewWork = 1 << 20;
/// What is removed comes free a little later. A probe takes no more than a part of the time.
constexpr std::chrono::seconds kRoomAgain{15};
constexpr int kPartOfTimeForRoom = 8;
/// So much of what is to be free is made free beyond it, so that not every file of a task costs another one.
constexpr std::uint64_t kBeyond = 8;

/// By any task, service or schedule.
std::set<control::ImageName> named_images(const control::State& state) {
  std::set<control::ImageName> names;
  const auto add = [&](const workload::Task& task) {
    if (auto name = control::image_name(task)) names.insert(*std::move(name));
  };
  for (const auto& [id, record] : state.tasks) add(record.task);
  for (const auto& [id, record] : state.services) add(record.target.task);
  for (const auto& [name, record] : state.schedules) add(record.schedule.task);
  return names;
}

}  // namespace

bool DiskRoom::is_full() const {
  return ports_.free_space && ports_.free_space() < kRoomForNewWork;
}

bool DiskRoom::is_short() const {
  return ports_.free_space && ports_.free_space() < ports_.room_to_keep;
}

Error DiskRoom::full() const {
  return {ErrorKind::kExhausted,
          fmt::format("The disk of the state folder is full: {} are free", format_bytes(ports_.free_space())),
          "stop what fills it, or remove ended tasks: drover rm", ""};
}

std::optional<Error> DiskRoom::problem() const {
  if (is_full()) return full();
  if (!is_short()) return std::nullopt;
  return Error{
      ErrorKind::kExhausted,
      fmt::format("The disk of the state folder has {} free, and {} should be: images that nobody uses are "
                  "removed, and then the oldest ended tasks are forgotten, with their sandboxes",
                  format_bytes(ports_.free_space()), format_bytes(ports_.room_to_keep)),
      "free some space: drover image prune, drover rm; or ask for less with drover serve --room-to-keep", ""};
}

std::uint64_t DiskRoom::missing() const {
  const auto goal = ports_.room_to_keep + ports_.room_to_keep / kBeyond;
  return goal - std::min(goal, ports_.free_space());
}

void DiskRoom::make() {
  if (!ports_.task_space || probing_ || !is_short()) return;
  if (ports_.steady() < next_) return ports_.wake_at(next_);
  probing_ = true;
  auto tasks = processes_.of_tasks();
  ended_.add_unseen(tasks);
  ports_.pool(0, [this, tasks = std::move(tasks), named = named_images(state_), began = ports_.steady()] {
    if (ports_.free_unused) ports_.free_unused(missing(), named);
    ports_.post([this, seen = ports_.task_space(tasks), began] {
      probing_ = false;
      const auto now = ports_.steady();
      const auto taken = std::max<std::chrono::milliseconds>(now - began, {});
      next_ = now + std::max<std::chrono::milliseconds>(kRoomAgain, kPartOfTimeForRoom * taken);
      ports_.wake_at(next_);
      found(seen);
    });
  });
}

void DiskRoom::found(const std::map<std::string, Result<std::uint64_t>>& found) {
  auto bytes = ended_.bytes();
  for (const auto& [id, size] : found) {
    if (!size) continue;
    bytes[id] = *size;
    ended_.seen(id, *size);
  }
  const auto free = ports_.free_space();
  if (!is_short()) return;
  for (const auto& id : control::tasks_to_forget(state_, bytes, missing(), ports_.steady())) {
    const auto& task = state_.tasks.at(id).task;
    const auto words = fmt::format("it is forgotten, with the {} of its sandbox: the disk has {} free",
                                   format_bytes(bytes.at(id)), format_bytes(free));
    ports_.log(fmt::format("Task '{}' of '{}': {}", id, task.owner_name, words));
    forget_(id, words);
  }
}

}  // namespace drover::engine
