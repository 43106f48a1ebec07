#include "kube_node/arrangements.h"

#include "kube/dra/claim_sharing.h"

namespace drover {
namespace {

const std::string kOfClaim = "claim-";
const std::string kOfLimits = "limits-";
constexpr int kMilliOfPercent = 10;

}  // namespace

Result<cdi::Edits> KubeArrangements::make(const std::string& uid, const share::Arrangement& arrangement) {
  DROVER_CHECK_OK(shares_.make(kOfClaim + uid, arrangement));
  return arrangement.mps ? kube::dra::mps_edits(shares_.places(kOfClaim + uid)) : cdi::Edits();
}

Status KubeArrangements::undo(const std::string& uid) {
  return shares_.undo(kOfClaim + uid);
}

Status KubeArrangements::keep_only(const std::set<std::string>& uids) {
  return shares_.keep_only(
      kOfClaim, [&](const std::string& owner) { return uids.contains(owner.substr(kOfClaim.size())); });
}

Result<share::MpsPlaces> KubeArrangements::share(const kube::ReplicaShare& gpu) {
  share::Arrangement wanted;
  auto& limits = wanted.mps.emplace();
  limits.gpus = {gpu.uuid};
  limits.threads = gpu.milli / kMilliOfPercent;
  if (gpu.memory_mib) limits.memory_mib[gpu.uuid] = *gpu.memory_mib;
  DROVER_CHECK_OK(shares_.make(kOfLimits + gpu.uuid, wanted));
  return shares_.places(kOfLimits + gpu.uuid);
}

Status KubeArrangements::drop_unused(const std::function<kube::Holders()>& holders) {
  // Asked once for each that has a daemon: who is given the GPU meanwhile holds it before he asks for one.
  return shares_.keep_only(kOfLimits, [&](const std::string& owner) {
    return holders().contains(owner.substr(kOfLimits.size()));
  });
}

Status KubeArrangements::make_way(const std::set<std::string>& uuids) {
  return shares_.keep_only(
      kOfLimits, [&](const std::string& owner) { return !uuids.contains(owner.substr(kOfLimits.size())); });
}

}  // namespace drover
