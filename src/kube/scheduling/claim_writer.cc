#include "kube/scheduling/claim_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

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

Status write_once(Api& api, const PodName& pod, const ClaimDecision& decision) {
  DROVER_TRY(auto claim, api.get(path_of(decision)));
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
  return api.replace(path, claim).map([](auto&&) {});
}

Status clear_once(Api& api, const PodName& pod, const ClaimDecision& decision) {
  DROVER_TRY(auto claim, api.get(path_of(decision)));
  if (text_at(claim, "/metadata/uid") != decision.uid || !is_reserved_for(claim, pod)) return {};
  auto& users = claim["status"]["reservedFor"];
  users.erase(std::remove_if(users.begin(), users.end(),
                             [&](const json& user) { return text_at(user, "/uid") == pod.uid; }),
              users.end());
  if (users.empty() && decision.allocation) claim["status"].erase("allocation");
  auto path = path_of(decision);
  path.subresource = "status";
  return api.replace(path, claim).map([](auto&&) {});
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

}  // namespace

Status write_claim(Api& api, const PodName& pod, const ClaimDecision& decision) {
  return repeated([&] { return write_once(api, pod, decision); });
}

Status clear_claim(Api& api, const PodName& pod, const ClaimDecision& decision) {
  const auto done = repeated([&] { return clear_once(api, pod, decision); });
  return !done && done.error().kind == ErrorKind::kNotFound ? Status() : done;
}

}  // namespace drover::kube
