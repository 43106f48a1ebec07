#include "kube/scheduler/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kube/scheduler/gpu_request.h"

namespace drover::kube::scheduler {
namespace {

int gpus_of(const PodTemplate& made_from, const std::string& gpu_resource) {
  const auto& others = made_from.requests.others;
  const auto found = others.find(gpu_resource);
  if (found == others.end()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(found->second, 0, std::numeric_limits<int>::max()));
}

}  // namespace

placement::Request demand_of(const PodTemplate& made_from, const std::string& gpu_resource) {
  placement::Request request;
  const auto& requests = made_from.requests;
  request.milli_cpus = requests.cpu;
  request.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(requests.memory, 0));
  request.cpu_affinity = placement::Preference::kNone;  // the kubelet pins
  const int gpus = gpus_of(made_from, gpu_resource);
  if (gpus > 0) request.gpus.push_back({gpus, {}});
  if (!made_from.gpu_request.empty()) (void)add_gpu_request(made_from.gpu_request, gpus, request);
  return request;
}

Status check_gpu_request(const Pod& pod, const std::string& gpu_resource) {
  const auto& text = pod.made_from->gpu_request;
  if (text.empty()) return {};
  const int gpus = gpus_of(*pod.made_from, gpu_resource);
  if (gpus == 0)
    return fail(ErrorKind::kInvalid, fmt::format("The annotation '{}' is of GPUs that are asked for by '{}', "
                                                 "and the pod's limits ask for none",
                                                 kGpuRequestAnnotation, gpu_resource));
  if (!pod.claims.empty())
    return fail(ErrorKind::kInvalid,
                fmt::format("The pod has both the annotation '{}' and claims: what its GPUs are to be like "
                            "stands in one of the two",
                            kGpuRequestAnnotation));
  placement::Request unused;
  return add_gpu_request(text, gpus, unused);
}

placement::Request counted(placement::Request demand, int gpus) {
  demand.gpus.clear();
  if (gpus > 0) demand.gpus.push_back({gpus, {}});
  demand.different_models = false;
  demand.interconnect = {};
  return demand;
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
