// What LocalEngine knows of processes that have GPUs open which are not theirs.

#include <fmt/format.h>

#include <future>

#include "engine/local.h"

namespace drover::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// Looking at all processes costs: a machine with nothing strange is looked at rarely, besides each GPU that
/// is to be given, and a look takes no more than this part of the time.
constexpr std::chrono::seconds kUsually{30};
constexpr std::chrono::seconds kWhileThereAreSome{1};
constexpr int kPartOfTime = 20;
/// A task is started on the strength of a look that began no longer ago.
constexpr std::chrono::seconds kFresh{1};

}  // namespace

TaskProcesses LocalEngine::processes_of(const control::TaskRecord& record) const {
  TaskProcesses task{record.task.id};
  if (const auto first = first_processes_.find(task.id); first != first_processes_.end())
    task.first = first->second;
  for (const auto& grant : record.gpus) task.gpus.insert(grant.uuid);
  return task;
}

std::vector<TaskProcesses> LocalEngine::processes_of_tasks() const {
  std::vector<TaskProcesses> tasks;
  for (const auto& id : state_.active) tasks.push_back(processes_of(state_.tasks.at(id)));
  return tasks;
}

void LocalEngine::look_for_strangers() {
  const auto now = steady();
  if (!ports_.strangers || looking_for_strangers_) return;
  if (now < look_for_strangers_at_) {
    if (!strangers_.empty()) ports_.wake_at(look_for_strangers_at_);
    return;
  }
  looking_for_strangers_ = true;
  const auto devices = told_machine_.inventory.devices;
  ports_.pool(0, [this, devices, tasks = processes_of_tasks(), now] {
    auto found = ports_.strangers(devices, tasks);
    ports_.post([this, found = std::move(found), now]() mutable {
      looking_for_strangers_ = false;
      const auto taken = std::max<std::chrono::milliseconds>(steady() - now, {});
      strangers_found(std::move(found));
      const auto rest = strangers_.empty() ? kUsually : kWhileThereAreSome;
      look_for_strangers_at_ = steady() + std::max<std::chrono::milliseconds>(rest, kPartOfTime * taken);
      if (!strangers_.empty()) ports_.wake_at(look_for_strangers_at_);
    });
  });
}

void LocalEngine::strangers_found(std::map<std::string, std::string> found) {
  if (found == strangers_) return;
  strangers_ = std::move(found);
  offer_machine();
}

std::function<std::optional<Error>()> LocalEngine::look_before_start(
    const std::vector<gpu::Device>& devices) {
  if (!ports_.strangers || devices.empty()) return [] { return std::nullopt; };
  const auto began = Clock::now();
  const auto look = [this, devices, tasks = processes_of_tasks()] {
    return refuse_for_strangers(devices, tasks);
  };
  // Whoever comes first does it: a thread that is free by now, or the one that cannot go on without it.
  const auto first = std::async(std::launch::deferred, look).share();
  ports_.pool(0, [first] { first.wait(); });
  return [began, look, first] {
    return Clock::now() < began + kFresh ? first.get() : look();  // an image may have taken hours to come
  };
}

std::optional<Error> LocalEngine::refuse_for_strangers(const std::vector<gpu::Device>& devices,
                                                       const std::vector<TaskProcesses>& tasks) {
  auto found = ports_.strangers(devices, tasks);
  if (found.empty()) return std::nullopt;
  const auto& [uuid, why] = *found.begin();
  auto message = fmt::format("GPU {}: {}", uuid, why);
  // On the strand before the task is put back: so it is not given the same GPU again.
  ports_.post([this, found = std::move(found)]() mutable {
    auto all = strangers_;
    all.merge(found);
    strangers_found(std::move(all));
    look_for_strangers_at_ = steady() + kWhileThereAreSome;
    ports_.wake_at(look_for_strangers_at_);
  });
  return Error{ErrorKind::kUnavailable, std::move(message), "", ""};
}

}  // namespace drover::engine
