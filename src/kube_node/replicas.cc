#include "kube_node/replicas.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/units.h"
#include "workload/resource_fields.h"

namespace drover {
namespace {

constexpr unsigned kBitsOfMib = 20;

share::Limit limit_of(const kube::ReplicaShare& share) {
  return {share.uuid, share.memory_mib.value_or(0) << kBitsOfMib, share.milli};
}

}  // namespace

KubeReplicas::KubeReplicas(const cli::KubeNodeOptions& options, KubeGpus& gpus,
                           KubeArrangements& arrangements, const std::atomic<kube::CdiSupport>& cdi,
                           std::function<void(const std::string&)> warn)
    : gpus_(gpus),
      arrangements_(arrangements),
      cdi_(cdi),
      warn_(std::move(warn)),
      share_by_(workload::parse_share_by(options.share_by).value_or(workload::ShareBy::kAuto)),
      pages_({folder(options.state), options.cdi_folder, [this] { return gpus_.edits(true); }}) {}

Status KubeReplicas::share(const kube::ReplicaShare& share, const std::string& id,
                           kube::ContainerGrant* grant) {
  if (share.way == kube::ShareWay::kMps) {
    DROVER_TRY(const auto places, arrangements_.share(share));
    if (grant != nullptr) kube::add_mps(places, *grant);
    return {};
  }
  if (grant == nullptr) return pages_.start(id);
  return share_by_ == workload::ShareBy::kNone ? Status() : guard(share, id, *grant);
}

Status KubeReplicas::guard(const kube::ReplicaShare& share, const std::string& id,
                           kube::ContainerGrant& grant) {
  const auto edits = edits_for(share);
  if (edits) {
    DROVER_TRY(const auto made, pages_.make(id, limit_of(share), *edits, Clock::now()));
    kube::add_guard(share.uuid, made.name, grant);
    return {};
  }
  if (share_by_ == workload::ShareBy::kLimits)
    return Failure(context(edits.error(), fmt::format("nobody can be held to the replica {}", id)));
  warn_(fmt::format("the replica {} is counted, and nothing enforces it: {}", id, edits.error().message));
  return {};
}

Result<kube::GpuEdits> KubeReplicas::edits_for(const kube::ReplicaShare& share) const {
  if (cdi_ != kube::CdiSupport::kYes)
    return fail(ErrorKind::kUnsupported, "the container runtime is not known to do CDI");
  if (!share.memory_mib) return fail(ErrorKind::kUnsupported, "it is not known how much memory the GPU has");
  if (limit_of(share).bytes < workload::kMinGuarded)
    return fail(ErrorKind::kUnsupported, fmt::format("nothing holds programs to less than {} of a GPU",
                                                     format_bytes(workload::kMinGuarded)));
  return gpus_.edits(true);
}

Status KubeReplicas::saw(const std::vector<kube::ContainerUse>& uses, Clock::time_point asked) {
  std::set<std::string> held;
  for (const auto& container : uses)
    for (const auto& use : container.devices) held.insert(use.device_ids.begin(), use.device_ids.end());
  return pages_.saw(held, asked);
}

void KubeReplicas::add_to(kube::NodeShares& shares, const kube::Pool& pool) const {
  shares.guarded = pages_.replicas();
  for (const auto& container : shares.uses)
    for (const auto& use : container.devices)
      for (const auto& id : use.device_ids) {
        const auto share = pool.share_of(use.resource, id);
        if (share && share->way == kube::ShareWay::kGuard && share->memory_mib)
          shares.unsure.push_back(
              {container.pod_namespace, container.pod, container.container, id, limit_of(*share)});
      }
}

}  // namespace drover
