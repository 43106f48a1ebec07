#include "engine/idle_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace drover::engine {
namespace {

// A tenth of what may pass, within these.
constexpr std::chrono::milliseconds kSoonest = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kLatest = std::chrono::seconds(30);

}  // namespace

std::map<std::string, IdleGpus::Job> IdleGpus::jobs() const {
  std::map<std::string, Job> jobs;
  for (const auto& id : state_.active) {
    const auto& record = state_.tasks.at(id);
    const auto& limit = record.task.batch.idle_timeout;
    if (!limit || record.state != control::TaskState::kRunning) continue;
    if (record.task.resources.gpus.empty()) continue;
    // The driver tells of what the server of MPS does, and not for whom.
    if (record.task.resources.by_mps()) continue;
    auto& job = jobs[record.task.gang ? record.task.gang->id : id];
    job.tasks.push_back(id);
    job.may_be_idle = *limit;
  }
  return jobs;
}

void IdleGpus::inspect() {
  if (!probe_) return;
  const auto watched = jobs();
  std::erase_if(seen_, [&](const auto& job) { return !watched.contains(job.first); });
  if (watched.empty() || probing_) return;
  const auto now = loop_.steady();
  if (now < next_) return loop_.wake_at(next_);
  auto soon = kLatest;
  std::set<std::string> asked, gpus;
  for (const auto& [id, job] : watched) {
    seen_.try_emplace(id, Seen{now});
    soon = std::min(soon, std::max(kSoonest, job.may_be_idle / 10));
    asked.insert(job.tasks.begin(), job.tasks.end());
    for (const auto& task : job.tasks)
      for (const auto& grant : state_.tasks.at(task).gpus) gpus.insert(grant.uuid);
  }
  next_ = now + soon;
  std::vector<gpu::Device> devices;
  for (const auto& device : state_.machine().inventory.devices)
    if (gpus.contains(device.uuid)) devices.push_back(device);
  // Others may have a share of the same GPUs.
  auto tasks = processes_.of_tasks();
  std::erase_if(tasks, [&](const auto& task) {
    return !asked.contains(task.id) &&
           std::ranges::none_of(task.gpus, [&](const auto& gpu) { return gpus.contains(gpu); });
  });
  probing_ = true;
  loop_.pool(0, [this, devices = std::move(devices), tasks = std::move(tasks)] {
    loop_.post([this, busy = probe_(devices, tasks)] { found(busy); });
  });
}

void IdleGpus::warn(const Job& job, Seen& seen, TimePoint now) {
  if (std::exchange(seen.warned, true)) return;
  const auto words = [](auto time) { return format_duration(std::chrono::ceil<std::chrono::seconds>(time)); };
  const auto idle = now - seen.busy_at;
  for (const auto& task : job.tasks)
    happened_(control::event::Noted{
        "task_idle", task,
        fmt::format("its GPUs have done nothing for {}: it is stopped when they do nothing for {} more",
                    words(idle), words(job.may_be_idle - idle))});
}

void IdleGpus::found(const std::set<std::string>& busy) {
  probing_ = false;
  const auto now = loop_.steady();
  for (const auto& [id, job] : jobs()) {
    const auto found = seen_.find(id);
    if (found == seen_.end()) continue;
    auto& seen = found->second;
    if (std::ranges::any_of(job.tasks, [&](const auto& task) { return busy.contains(task); }))
      seen = {now};
    else if (now - seen.busy_at >= job.may_be_idle)
      for (const auto& task : job.tasks) happened_(control::event::Idled{task});
    else if (2 * (now - seen.busy_at) >= job.may_be_idle)
      warn(job, seen, now);
  }
  loop_.wake_at(next_);
}

}  // namespace drover::engine
