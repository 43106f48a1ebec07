#include "ceiling.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "kube/client/binding.h"
#include "kube/scheduling/claim_writer.h"
#include "objects.h"
#include "writers.h"

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr const char* kProtection = "resource.kubernetes.io/delete-protection";
constexpr const char* kRequestOfLimits = "container-0-request-0";

/// All that is written for one pod.
struct Writes {
  kube::Binding binding;
  json claim = {};  ///< as it stands there, or is to be made; null: none
  json status = {};
};

json status_of(const std::string& node, int first, int count, const std::string& request,
               const kube::Binding& binding) {
  json results = json::array();
  for (int i = first; i < first + count; ++i)
    results.push_back(
        {{"request", request}, {"driver", kDriver}, {"pool", node}, {"device", fmt::format("gpu-{}", i)}});
  const json term{
      {"matchFields", json::array({{{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}}})}};
  return {
      {"allocation",
       {{"devices", {{"results", std::move(results)}}},
        {"nodeSelector", {{"nodeSelectorTerms", json::array({term})}}}}},
      {"reservedFor", json::array({{{"resource", "pods"}, {"name", binding.pod}, {"uid", binding.uid}}})}};
}

/// A claim for a pod's limits, as kube-scheduler makes it.
json claim_for_limits(const kube::Binding& binding, int count) {
  const json owner{{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"name", binding.pod},
                   {"uid", binding.uid},
                   {"controller", true}};
  const json request{
      {"name", kRequestOfLimits},
      {"exactly", {{"deviceClassName", kDriver}, {"allocationMode", "ExactCount"}, {"count", count}}}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata",
           {{"namespace", binding.name_space},
            {"generateName", binding.pod + "-extended-resources-"},
            {"annotations", {{"resource.kubernetes.io/extended-resource-claim", "true"}}},
            {"finalizers", {kProtection}},
            {"ownerReferences", json::array({owner})}}},
          {"spec", {{"devices", {{"requests", json::array({request})}}}}}};
}

Status write_claim(kube::Api& api, const Writes& writes, Ask ask) {
  const bool made = ask == Ask::kLimitsByClaims;
  auto claim = writes.claim;
  if (!made) claim["metadata"]["finalizers"] = {kProtection};
  const kube::ObjectPath collection{kube::kResourceClaims, writes.binding.name_space};
  auto path = collection;
  path.name = kube::text_at(claim, "/metadata/name");
  DROVER_TRY(claim, made ? api.create(collection, claim) : api.replace(path, claim));
  path.name = kube::text_at(claim, "/metadata/name");
  path.subresource = "status";
  claim["status"] = writes.status;
  DROVER_CHECK_OK(api.replace(path, claim).map([](auto&&) {}));
  if (!made) return {};
  const json mapping{{"containerName", "main"}, {"resourceName", kGpu}, {"requestName", kRequestOfLimits}};
  const json told{{"status",
                   {{"extendedResourceClaimStatus",
                     {{"resourceClaimName", path.name}, {"requestMappings", json::array({mapping})}}}}}};
  return api
      .patch({kube::kPods, writes.binding.name_space, writes.binding.pod, "status"}, kube::PatchType::kMerge,
             told)
      .map([](auto&&) {});
}

/// The pods one after the other, so many on each node as have room by `gpus`.
Result<std::vector<Writes>> decide(kube::Api& api, const Ceiling& ceiling) {
  const kube::Selection waiting{
      .resource = kube::kPods,
      .name_space = ceiling.name_space,
      .field_selector = fmt::format("spec.schedulerName={},spec.nodeName=", ceiling.scheduler)};
  DROVER_TRY(const auto pods, api.list(waiting));
  std::map<std::string, kube::Object> claims;
  if (ceiling.ask == Ask::kClaims) {
    DROVER_TRY(const auto all,
               api.list({.resource = kube::kResourceClaims, .name_space = ceiling.name_space}));
    for (const auto& claim : all.items) claims.emplace(kube::text_at(*claim, "/metadata/name"), claim);
  }
  std::vector<Writes> decided;
  const int per_node = kGpusOfNode / ceiling.gpus;
  for (const auto& pod : pods.items) {
    const auto number = static_cast<int>(decided.size());
    auto& writes = decided.emplace_back();
    writes.binding = {.name_space = ceiling.name_space,
                      .pod = kube::text_at(*pod, "/metadata/name"),
                      .uid = kube::text_at(*pod, "/metadata/uid"),
                      .node = node_name(number / per_node)};
    const auto& node = writes.binding.node;
    const int first = number % per_node * ceiling.gpus;
    if (ceiling.ask == Ask::kClaims) {
      const auto found =
          claims.find(kube::text_at(*pod, "/status/resourceClaimStatuses/0/resourceClaimName"));
      if (found == claims.end())
        return fail(ErrorKind::kNotFound, fmt::format("the claim of {} is not there", writes.binding.pod));
      writes.claim = *found->second;
      const auto count = writes.claim.value(json::json_pointer("/spec/devices/requests/0/exactly/count"), 1);
      writes.status = status_of(node, first, count, "gpus", writes.binding);
    } else if (ceiling.ask == Ask::kLimitsByClaims) {
      writes.claim = claim_for_limits(writes.binding, ceiling.gpus);
      writes.status = status_of(node, first, ceiling.gpus, kRequestOfLimits, writes.binding);
    }
  }
  return decided;
}

}  // namespace

Result<WallTime> bind_all(kube::Api& api, const Ceiling& ceiling) {
  DROVER_TRY(const auto decided, decide(api, ceiling));
  const auto connect = [&](std::size_t) {
    return api.list({.resource = kube::kNodes, .field_selector = "metadata.name=x"}).map([](auto&&) {});
  };
  DROVER_CHECK_OK(in_parallel(ceiling.writers, 4 * ceiling.writers, connect));
  const auto begin = std::chrono::system_clock::now();
  DROVER_CHECK_OK(in_parallel(ceiling.writers, decided.size(), [&](std::size_t i) -> Status {
    const auto& writes = decided[i];
    if (!writes.claim.is_null()) DROVER_CHECK_OK(write_claim(api, writes, ceiling.ask));
    return kube::bind(api, writes.binding);
  }));
  return begin;
}

}  // namespace drover::bench
