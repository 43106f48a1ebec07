#include "pods/gpu_claim.h"

#include <fmt/format.h>

#include "base/ids.h"
#include "kube/dra/claim.h"
#include "kube/scheduler/gpu_request.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using workload::Resources;

constexpr const char* kClaimEntry = "gpus";  ///< under which the pod and its container name the claim
constexpr std::size_t kGroupDigits = 32;

/// A GPU that is only given as a whole is not given for a share: that would take more than was asked for.
constexpr const char* kIsShared = "device.allowMultipleAllocations == true";

constexpr const char* kRequest = "/spec/devices/requests/0/exactly";

json said(const json& object, const char* where, const std::string& field) {
  return object.value(json::json_pointer(where) / field, json());
}

}  // namespace

bool needs_claim(const Resources& wanted) {
  return wanted.gpu_count() > 0 && (!wanted.share.whole() || !wanted.group.empty());
}

json claim_spec(const Resources& wanted) {
  json exactly = {
      {"deviceClassName", kGpuClass}, {"allocationMode", "ExactCount"}, {"count", wanted.gpu_count()}};
  json devices = json::object();
  if (const auto& share = wanted.share; !share.whole()) {
    exactly["selectors"] = json::array({{{"cel", {{"expression", kIsShared}}}}});
    exactly["capacity"]["requests"] = share.memory_bytes > 0
                                          ? json{{"memory", std::to_string(share.memory_bytes)}}
                                          : json{{"share", std::to_string(share.milli)}};
    if (wanted.gpu_count() > 1)
      devices["constraints"] = json::array({{{"distinctAttribute", fmt::format("{}/uuid", kGpuClass)}}});
  }
  devices["requests"] = json::array({{{"name", kClaimEntry}, {"exactly", std::move(exactly)}}});
  return {{"devices", std::move(devices)}};
}

std::string claim_name(const workload::Task& task, const std::string& journal, const std::string& pod) {
  const auto& wanted = task.resources;
  if (wanted.group.empty()) return pod;
  // Who asks for other GPUs is in another group of that name.
  const auto all = fmt::format("{}\n{}\n{}\n{}", journal, wanted.group, claim_spec(wanted).dump(),
                               kube::scheduler::write_gpu_request(wanted));
  return fmt::format("group-{}", sha256_hex(all).substr(0, kGroupDigits));
}

void refer_to_claim(const workload::Task& task, const std::string& journal, json& metadata, json& spec,
                    json& container) {
  const auto name = claim_name(task, journal, metadata.at("name").get<std::string>());
  metadata["annotations"][kClaimAnnotation] = claim_spec(task.resources).dump();
  spec["resourceClaims"] = json::array({{{"name", kClaimEntry}, {"resourceClaimName", name}}});
  container["resources"]["claims"] = json::array({{{"name", kClaimEntry}}});
}

json write_claim(const json& pod) {
  const auto view = read_pod(pod);
  if (view.claim.empty()) return nullptr;
  const auto& annotations = pod.at("metadata").at("annotations");
  auto spec = json::parse(annotations.at(kClaimAnnotation).get<std::string>(), nullptr, false);
  if (!spec.is_object()) return nullptr;
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata",
           {{"name", view.claim},
            {"namespace", view.name_space},
            {"labels", {{"app.kubernetes.io/managed-by", "drover"}, {kJournalLabel, view.journal}}},
            {"annotations", {{kube::dra::kSoleAnnotation, "true"}}},
            {"ownerReferences", json::array({owner_of_claim(pod)})}}},
          {"spec", std::move(spec)}};
}

json owner_of_claim(const json& pod) {
  const auto view = read_pod(pod);
  json owner = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", view.name}, {"uid", view.uid}};
  // What is one pod's alone is the scheduler's to count with that pod.
  if (view.claim == view.name) owner["controller"] = true;
  return owner;
}

bool asks_for_the_same(const json& claim, const json& written) {
  constexpr const char* kLabels = "/metadata/labels";
  return said(claim, kLabels, kJournalLabel) == said(written, kLabels, kJournalLabel) &&
         said(claim, kRequest, "count") == said(written, kRequest, "count") &&
         asks_for_shares(claim) == asks_for_shares(written);
}

bool asks_for_shares(const json& claim) {
  return !said(claim, kRequest, "capacity").is_null();
}

bool lacks_claim(const PodView& view) {
  return view.actual == Actual::kUnplaced && !view.claim.empty() &&
         view.why.find(fmt::format("\"{}\" not found", view.claim)) != std::string::npos;
}

}  // namespace drover::pods
