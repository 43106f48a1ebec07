#include "kube/kubelet/pod_resources.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "kube/rpc/channel.h"
#include "protocol/pod_resources.grpc.pb.h"

namespace drover::kube {
namespace {

ContainerUse use_of(const v1::PodResources& pod, const v1::ContainerResources& container) {
  ContainerUse use{pod.namespace_(), pod.name(), container.name(), {}, {}};
  for (const auto& devices : container.devices())
    use.devices.push_back(
        {devices.resource_name(), {devices.device_ids().begin(), devices.device_ids().end()}});
  for (const auto& resource : container.dynamic_resources())
    for (const auto& device : resource.claim_resources())
      use.claims.push_back({resource.claim_name(), device.driver_name(), device.pool_name(),
                            device.device_name(), device.share_id()});
  return use;
}

}  // namespace

Result<PodResources> list_pod_resources(const std::string& socket, std::chrono::milliseconds patience) {
  grpc::ClientContext context;
  give_up_after(context, patience);
  v1::ListPodResourcesResponse answer;
  const auto status = v1::PodResourcesLister::NewStub(connect_to(socket))->List(&context, {}, &answer);
  if (!status.ok())
    return fail(
        ErrorKind::kUnavailable,
        fmt::format("the kubelet does not tell the pods' devices at '{}': {}", socket, why_failed(status)),
        "look whether the kubelet runs, or name its folder with --kubelet-root");
  PodResources resources;
  for (const auto& pod : answer.pod_resources()) {
    resources.pods.insert({pod.namespace_(), pod.name()});
    for (const auto& container : pod.containers())
      if (auto use = use_of(pod, container); !use.devices.empty() || !use.claims.empty())
        resources.containers.push_back(std::move(use));
  }
  return resources;
}

}  // namespace drover::kube
