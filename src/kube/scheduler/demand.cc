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

Status add_what_it_says(const Pod& pod, const std::string& gpu_resource, Demand& demand) {
  auto& request = demand.request;
  const auto& text = pod.made_from->gpu_request;
  if (request.gpus.empty() && !pod.claims.empty())
    return add_gpu_request(text, std::nullopt, demand.of_claims.emplace());
  if (request.gpus.empty())
    return fail(ErrorKind::kInvalid, fmt::format("The annotation '{}' is of GPUs that are asked for by '{}', "
                                                 "and the pod's limits ask for none",
                                                 kGpuRequestAnnotation, gpu_resource));
  if (!pod.claims.empty())
    return fail(ErrorKind::kInvalid,
                fmt::format("The pod has GPUs by limits and claims, and the annotation '{}' does not say of "
                            "which it is",
                            kGpuRequestAnnotation));
  return add_gpu_request(text, request.gpu_count(), request);
}

}  // namespace

Demand demand_of(const Pod& pod, const std::string& gpu_resource) {
  Demand demand;
  auto& request = demand.request;
  const auto& requests = pod.made_from->requests;
  request.milli_cpus = requests.cpu;
  request.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(requests.memory, 0));
  request.cpu_affinity = placement::Preference::kNone;  // the kubelet pins
  if (const int gpus = gpus_of(*pod.made_from, gpu_resource); gpus > 0) request.gpus.push_back({gpus, {}});
  if (pod.made_from->gpu_request.empty()) return demand;
  if (const auto added = add_what_it_says(pod, gpu_resource, demand); !added)
    demand.mistake = to_string(added.error());
  return demand;
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
