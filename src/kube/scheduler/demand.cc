#include "kube/scheduler/demand.h"

#include <algorithm>
#include <limits>

namespace drover::kube::scheduler {

placement::Request demand_of(const PodTemplate& made_from, const std::string& gpu_resource) {
  placement::Request request;
  const auto& requests = made_from.requests;
  request.milli_cpus = requests.cpu;
  request.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(requests.memory, 0));
  request.cpu_affinity = placement::Preference::kNone;  // the kubelet pins
  const auto gpus = requests.others.find(gpu_resource);
  if (gpus != requests.others.end() && gpus->second > 0)
    request.gpus.push_back(
        {static_cast<int>(std::min<std::int64_t>(gpus->second, std::numeric_limits<int>::max())), {}});
  return request;
}

PodTemplate without_demand(const PodTemplate& made_from, const std::string& gpu_resource) {
  auto rest = made_from;
  rest.requests.cpu = 0;
  rest.requests.memory = 0;
  rest.requests.others.erase(gpu_resource);
  rest.containers.clear();
  return rest;
}

}  // namespace drover::kube::scheduler
