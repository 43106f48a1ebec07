#include "busy_tasks.h"

#include <fmt/format.h>

#include "base/files.h"
#include "gpu/work.h"
#include "task_processes.h"

namespace drover {

std::set<std::string> busy_tasks(const std::vector<gpu::Device>& devices,
                                 const std::vector<engine::TaskProcesses>& tasks, gpu::UsageSampler& usage) {
  gpu::GpuHolders holders;
  for (const auto& task : tasks)
    for (const auto& uuid : task.gpus) holders[uuid].insert(task.id);
  const auto owner_of = task_of(tasks);
  return gpu::who_works(usage.sample(devices), holders, [&](std::uint32_t pid) {
    return owner_of(read_file(fmt::format("/proc/{}/cgroup", pid)).value_or(""));
  });
}

}  // namespace drover
