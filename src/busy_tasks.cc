#include "busy_tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "task_processes.h"

namespace drover {
namespace {

bool works(const gpu::Reading& percent) {
  return percent.value_or(0) > 0;
}

/// Whether it is told of every process what it did.
bool tells_of_all(const gpu::GpuUsage& usage) {
  return std::ranges::all_of(usage.processes,
                             [](const auto& process) { return process.sm_percent.has_value(); });
}

}  // namespace

std::set<std::string> busy_tasks(const std::vector<gpu::Device>& devices,
                                 const std::vector<engine::TaskProcesses>& tasks, gpu::UsageSampler& usage) {
  std::set<std::string> busy;
  const auto owner_of = task_of(tasks);
  for (const auto& [uuid, now] : usage.sample(devices)) {
    std::set<std::string> holders;
    for (const auto& task : tasks)
      if (task.gpus.contains(uuid)) holders.insert(task.id);
    const bool told = now.answers && (holders.size() == 1 ? now.gpu_percent.has_value() : tells_of_all(now));
    if (!told || (holders.size() == 1 && works(now.gpu_percent))) busy.merge(holders);
    for (const auto& process : now.processes)
      if (works(process.sm_percent) || works(process.encoder_percent) || works(process.decoder_percent))
        busy.insert(owner_of(read_file(fmt::format("/proc/{}/cgroup", process.pid)).value_or("")));
  }
  return busy;
}

}  // namespace drover
