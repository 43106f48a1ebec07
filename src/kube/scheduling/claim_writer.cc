#include "kube/scheduling/claim_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/decode.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using scheduler::ClaimDecision;
using scheduler::PodName;

constexpr const char* kProtection = "resource.kubernetes.io/delete-protection";
constexpr int kTries = 4;  ///< others write the claim too

ObjectPath path_of(const ClaimDecision& decision) {
  return {kResourceClaims, decision.name_space, decision.name};
}

Failure conflict(const ClaimDecision& decision, std::string_view what) {
  return fail(ErrorKind::kConflict,
              fmt::format("the claim {}/{} {}", decision.name_space, decision.name, what));
}

bool is_reserved_for(const json& claim, const PodName& pod) {
  const auto users = claim.value(json::json_pointer("/status/reservedFor"), json::array());
  return std::ranges::any_of(users, [&](const json& user) { return text_at(user, "/uid") == pod.uid; });
}

/// Without it the controller that ends claims would not take their devices back.
Result<json> protect(Api& api, const ClaimDecision& decision, json claim) {
  auto& finalizers = claim["metadata"]["finalizers"];
  if (!finalizers.is_array()) finalizers = json::array();
  if (std::ranges::find(finalizers, json(kProtection)) != finalizers.end()) return claim;
  finalizers.push_back(kProtection);
  return api.replace(path_of(decision), claim);
}

Status write_into(Api& api, const PodName& pod, const ClaimDecision& decision, json claim) {
  if (text_at(claim, "/metadata/uid") != decision.uid) return conflict(decision, "is another one by now");
  if (!text_at(claim, "/metadata/deletionTimestamp").empty()) return conflict(decision, "is being deleted");
  const bool allocated = claim.contains(json::json_pointer("/status/allocation"));
  if (allocated && is_reserved_for(claim, pod)) return {};
  if (allocated && decision.allocation) return conflict(decision, "has devices by now");
  if (!allocated && !decision.allocation) return conflict(decision, "has its devices no more");
  if (decision.allocation) {
    DROVER_TRY(claim, protect(api, decision, std::move(claim)));
    claim["status"]["allocation"] = to_json(*decision.allocation, "");
  }
  claim["status"]["reservedFor"].push_back({{"resource", "pods"}, {"name", pod.name}, {"uid", pod.uid}});
  auto path = path_of(decision);
  path.subresource = "status";
  return api.write(path, claim);
}

Status write_once(Api& api, const PodName& pod, const ClaimDecision& decision) {
  DROVER_TRY(auto claim, api.get(path_of(decision)));
  return write_into(api, pod, decision, std::move(claim));
}

/// As it was told of: when it is another by now, that is a conflict.
Status write_as_read(Api& api, const PodName& pod, const ClaimDecision& decision) {
  DROVER_TRY(auto claim, parse_json(*decision.as_read, "a claim as it was read"));
  return write_into(api, pod, decision, std::move(claim));
}

Status tell_pod(Api& api, const PodName& pod, const ClaimDecision& decision) {
  ObjectPath path{kPods, pod.name_space, pod.name};
  path.subresource = "status";
  const json patch{
      {"metadata", {{"uid", pod.uid}}},
      {"status", {{"extendedResourceClaimStatus", claim_status(*decision.made, decision.name)}}}};
  return api.write(path, PatchType::kMerge, patch);
}

/// The finalizer first: the controller that ends claims leaves it while a pod that waits stands in them.
Status delete_once(Api& api, const ObjectPath& path, const std::string& uid) {
  DROVER_TRY(auto claim, api.get(path));
  if (text_at(claim, "/metadata/uid") != uid) return {};
  auto& finalizers = claim["metadata"]["finalizers"];
  if (finalizers.is_array() && std::erase(finalizers.get_ref<json::array_t&>(), json(kProtection)) > 0)
    DROVER_CHECK_OK(api.write(path, claim));
  return api.remove(path, uid);
}

/// The pod is a user of the claim no more; `and_devices`: without users it gives them back.
Status clear_once(Api& api, const PodName& pod, ObjectPath path, const std::string& uid, bool and_devices) {
  DROVER_TRY(auto claim, api.get(path));
  if (text_at(claim, "/metadata/uid") != uid || !is_reserved_for(claim, pod)) return {};
  auto& users = claim["status"]["reservedFor"];
  users.erase(std::remove_if(users.begin(), users.end(),
                             [&](const json& user) { return text_at(user, "/uid") == pod.uid; }),
              users.end());
  if (users.empty() && and_devices) claim["status"].erase("allocation");
  path.subresource = "status";
  return api.write(path, claim);
}

/// Again when it was written by another between being read and written.
Status repeated(const std::function<Status()>& once) {
  Status done;
  for (int i = 0; i < kTries; ++i) {
    done = once();
    if (done || done.error().kind != ErrorKind::kConflict) return done;
  }
  return done;
}

Status unless_gone(Status done) {
  return !done && done.error().kind == ErrorKind::kNotFound ? Status() : done;
}

Status clear_users(Api& api, const PodName& pod, const ObjectPath& path, const std::string& uid,
                   bool and_devices) {
  return unless_gone(repeated([&] { return clear_once(api, pod, path, uid, and_devices); }));
}

Status delete_claim(Api& api, const ObjectPath& path, const std::string& uid) {
  return unless_gone(repeated([&] { return delete_once(api, path, uid); }));
}

}  // namespace

Status write_claim(Api& api, const PodName& pod, ClaimDecision& decision) {
  const auto write = [&] { return write_once(api, pod, decision); };
  if (!decision.made) {
    if (!decision.as_read) return repeated(write);
    const auto done = write_as_read(api, pod, decision);
    return !done && done.error().kind == ErrorKind::kConflict ? repeated(write) : done;
  }
  DROVER_TRY(auto claim, api.create({kResourceClaims, pod.name_space},
                                    to_json(*decision.made, pod.name_space, pod.name, pod.uid)));
  decision.uid = text_at(claim, "/metadata/uid");
  decision.name = text_at(claim, "/metadata/name");
  auto done = write_into(api, pod, decision, std::move(claim));
  if (!done && done.error().kind == ErrorKind::kConflict) done = repeated(write);
  DROVER_CHECK_OK(done);
  return tell_pod(api, pod, decision);
}

Status clear_claim(Api& api, const PodName& pod, const ClaimDecision& decision) {
  if (!decision.made)
    return clear_users(api, pod, path_of(decision), decision.uid, decision.allocation.has_value());
  if (decision.name.empty()) return {};
  return delete_claim(api, path_of(decision), decision.uid);
}

Status undo_left_claim(Api& api, const scheduler::LeftClaim& left) {
  const auto pod = api.get({kPods, left.pod.name_space, left.pod.name});
  if (!pod) return unless_gone(Failure(pod.error()));  // with it the claim goes
  if (text_at(*pod, "/metadata/uid") != left.pod.uid || !text_at(*pod, "/spec/nodeName").empty()) return {};
  const ObjectPath path{kResourceClaims, left.pod.name_space, left.claim};
  if (left.made) return delete_claim(api, path, left.uid);
  return clear_users(api, left.pod, path, left.uid, true);
}

}  // namespace drover::kube
