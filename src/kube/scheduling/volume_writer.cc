#include "kube/scheduling/volume_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace drover::kube {
namespace {

using nlohmann::json;
using scheduler::VolumeDecision;

constexpr const char* kSelectedNode = "volume.kubernetes.io/selected-node";
constexpr const char* kSelectedNodePath = "/metadata/annotations/volume.kubernetes.io~1selected-node";
constexpr const char* kBoundByController = "pv.kubernetes.io/bound-by-controller";

/// Refused when the object has changed since.
Status patch_if_same(Api& api, const ObjectPath& path, const json& object, json patch) {
  patch["metadata"]["resourceVersion"] = text_at(object, "/metadata/resourceVersion");
  return api.write(path, PatchType::kMerge, patch);
}

Status have_made(Api& api, const VolumeDecision& decision, const std::string& node) {
  const ObjectPath path{kVolumeClaims, decision.name_space, decision.claim};
  DROVER_TRY(const auto claim, api.get(path));
  const auto selected = text_at(claim, kSelectedNodePath);
  if (text_at(claim, "/metadata/uid") != decision.claim_uid || (!selected.empty() && selected != node))
    return fail(
        ErrorKind::kConflict,
        fmt::format("the PersistentVolumeClaim '{}' is another, or gets a volume elsewhere", decision.claim));
  if (!selected.empty() || !text_at(claim, "/spec/volumeName").empty()) return {};
  return patch_if_same(api, path, claim, {{"metadata", {{"annotations", {{kSelectedNode, node}}}}}});
}

Status bind_volume(Api& api, const VolumeDecision& decision) {
  const ObjectPath path{kVolumes, "", decision.volume};
  DROVER_TRY(const auto volume, api.get(path));
  const auto owner = volume.at("spec").value("claimRef", json());
  const bool by_name = owner.is_object() && text_at(owner, "/namespace") == decision.name_space &&
                       text_at(owner, "/name") == decision.claim;
  const auto uid = text_at(owner, "/uid");
  if (owner.is_object() && (!by_name || (!uid.empty() && uid != decision.claim_uid)))
    return fail(ErrorKind::kConflict, fmt::format("the PersistentVolume '{}' is another's", decision.volume));
  if (!uid.empty()) return {};
  json patch{{"spec",
              {{"claimRef",
                {{"apiVersion", "v1"},
                 {"kind", "PersistentVolumeClaim"},
                 {"namespace", decision.name_space},
                 {"name", decision.claim},
                 {"uid", decision.claim_uid}}}}}};
  // One that was meant for the claim by hand stays so when the claim goes.
  if (!by_name) patch["metadata"] = {{"annotations", {{kBoundByController, "yes"}}}};
  return patch_if_same(api, path, volume, std::move(patch));
}

}  // namespace

Status give_volumes(Api& api, const scheduler::VolumeWrite& what) {
  for (const auto& decision : what.volumes) {
    const auto done =
        decision.volume.empty() ? have_made(api, decision, what.node) : bind_volume(api, decision);
    if (done) continue;
    take_volumes_back(api, what);
    return done;
  }
  return {};
}

void take_volumes_back(Api& api, const scheduler::VolumeWrite& what) {
  for (const auto& decision : what.volumes) {
    if (!decision.volume.empty()) continue;
    const ObjectPath path{kVolumeClaims, decision.name_space, decision.claim};
    const auto claim = api.get(path);
    if (!claim || text_at(*claim, "/metadata/uid") != decision.claim_uid ||
        text_at(*claim, kSelectedNodePath) != what.node || !text_at(*claim, "/spec/volumeName").empty())
      continue;
    // When it cannot be, its provisioner goes on, and the pod is planned for that node again.
    (void)patch_if_same(api, path, *claim, {{"metadata", {{"annotations", {{kSelectedNode, nullptr}}}}}});
  }
}

}  // namespace drover::kube
