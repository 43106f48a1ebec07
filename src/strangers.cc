#include "strangers.h"

#include <sys/sysmacros.h>

#include "gpu/strangers.h"
#include "task_processes.h"

namespace drover {

std::map<std::string, std::string> strangers_on(const std::vector<gpu::Device>& devices,
                                                const std::vector<engine::TaskProcesses>& tasks,
                                                const StrangerSources& sources) {
  const auto usage = sources.usage.sample(devices);
  std::vector<gpu::GuardedGpu> gpus;
  for (const auto& device : devices) {
    // Who has another part of it has nothing of what is given.
    if (device.mig == gpu::MigMode::kEnabled) continue;
    gpu::GuardedGpu gpu{.uuid = device.uuid};
    if (const auto nodes = sources.hardware.nodes_of({device}))
      gpu.device = ::makedev(nodes->front().major, nodes->front().minor);
    if (const auto told = usage.find(device.uuid); told != usage.end())
      for (const auto& process : told->second.processes) gpu.computing.insert(process.pid);
    for (const auto& task : tasks)
      if (task.gpus.contains(device.uuid)) gpu.tasks.insert(task.id);
    gpus.push_back(std::move(gpu));
  }
  return gpu::find_strangers(
      gpus, {{sources.excused.begin(), sources.excused.end()}, sources.shares.processes()}, task_of(tasks));
}

}  // namespace drover
