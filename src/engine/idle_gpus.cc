#include "engine/idle_gpus.h"

#include <algorithm>
#include <optional>

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
  std::erase_if(busy_at_, [&](const auto& job) { return !watched.contains(job.first); });
  if (watched.empty() || probing_) return;
  const auto now = loop_.steady();
  if (now < next_) return loop_.wake_at(next_);
  auto soon = kLatest;
  std::set<std::string> asked, gpus;
  for (const auto& [id, job] : watched) {
    busy_at_.try_emplace(id, now);
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

void IdleGpus::found(const std::set<std::string>& busy) {
  probing_ = false;
  const auto now = loop_.steady();
  for (const auto& [id, job] : jobs()) {
    const auto seen = busy_at_.find(id);
    if (seen == busy_at_.end()) continue;
    if (std::ranges::any_of(job.tasks, [&](const auto& task) { return busy.contains(task); }))
      seen->second = now;
    else if (now - seen->second >= job.may_be_idle)
      for (const auto& task : job.tasks) idled_({task});
  }
  loop_.wake_at(next_);
}

}  // namespace drover::engine
