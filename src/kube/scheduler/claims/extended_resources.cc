#include "kube/scheduler/claims/extended_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

/// Of the container with that number; nullopt when it asks for nothing of the kind.
std::optional<std::string> request_name(std::size_t index, const ContainerResources& container,
                                        const std::string& resource) {
  if (!container.amounts.contains(resource)) return std::nullopt;
  const auto place = std::ranges::find(container.names, resource) - container.names.begin();
  return fmt::format("container-{}-request-{}", index, place);
}

struct Made {
  std::optional<DeviceRequest> request;  ///< nullopt: what there is already does
  std::vector<RequestMapping> mappings;
};

/// For one container and resource. It may use what later containers are given, before it asks for more.
Made request_of(const std::vector<ContainerResources>& containers, std::size_t index,
                const std::string& resource, const std::string& device_class,
                const std::map<std::size_t, DeviceRequest>& reusable) {
  Made made;
  const auto& container = containers[index];
  const auto wanted = container.amounts.find(resource);
  if (wanted == container.amounts.end()) return made;
  std::int64_t given = 0;
  for (auto it = reusable.lower_bound(index); it != reusable.end() && given < wanted->second; ++it) {
    given += it->second.wishes.front().count;
    made.mappings.push_back({container.name, resource, it->second.name});
  }
  if (given >= wanted->second) return made;
  DeviceRequest request{*request_name(index, container, resource), {{}}};
  request.wishes.front().device_class = device_class;
  request.wishes.front().count = wanted->second - given;
  made.mappings.push_back({container.name, resource, request.name});
  made.request = std::move(request);
  return made;
}

void append(std::vector<RequestMapping>& all, std::vector<RequestMapping> more) {
  std::ranges::move(more, std::back_inserter(all));
}

/// Containers that pass come one after the other: the largest request is for all of them.
void add_resource(ExtendedResourceClaim& claim, const std::vector<ContainerResources>& containers,
                  const std::string& resource, const std::string& device_class) {
  std::map<std::size_t, DeviceRequest> staying;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (containers[i].passes) continue;
    auto made = request_of(containers, i, resource, device_class, {});
    if (made.request) staying.emplace(i, std::move(*made.request));
    append(claim.mappings, std::move(made.mappings));
  }
  std::optional<DeviceRequest> largest;
  std::set<std::string> passing_names;
  std::vector<RequestMapping> passing;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (!containers[i].passes) continue;
    auto made = request_of(containers, i, resource, device_class, staying);
    append(passing, std::move(made.mappings));
    if (!made.request) continue;
    passing_names.insert(made.request->name);
    if (!largest || largest->wishes.front().count < made.request->wishes.front().count)
      largest = std::move(made.request);
  }
  for (auto& mapping : passing)
    if (passing_names.contains(mapping.request)) mapping.request = largest->name;
  append(claim.mappings, std::move(passing));
  if (largest) claim.spec.requests.push_back(std::move(*largest));
  for (auto& [index, request] : staying) claim.spec.requests.push_back(std::move(request));
}

}  // namespace

ResourceNames resources_by_claim(const Resources& requests, const Node& node, const DevicePools& pools) {
  ResourceNames names;
  for (const auto& [name, amount] : requests.others) {
    const auto offered = node.allocatable.others.find(name);
    if (amount != 0 && (offered == node.allocatable.others.end() || offered->second == 0) &&
        pools.class_for_resource(name) != nullptr)
      names.insert(name);
  }
  return names;
}

bool gives(const ClaimSpec& spec, const std::vector<ContainerResources>& containers,
           const std::string& resource) {
  for (std::size_t i = 0; i < containers.size(); ++i)
    if (const auto name = request_name(i, containers[i], resource))
      if (std::ranges::find(spec.requests, *name, &DeviceRequest::name) != spec.requests.end()) return true;
  return false;
}

ExtendedResourceClaim extended_resource_claim(const std::vector<ContainerResources>& containers,
                                              const ResourceNames& resources, const DevicePools& pools) {
  ExtendedResourceClaim claim;
  for (const auto& resource : resources)
    if (const auto* const device_class = pools.class_for_resource(resource))
      add_resource(claim, containers, resource, device_class->name);
  std::ranges::sort(claim.spec.requests, {}, &DeviceRequest::name);
  return claim;
}

json to_json(const ExtendedResourceClaim& claim, const std::string& name_space, const std::string& pod_name,
             const std::string& pod_uid) {
  json requests = json::array();
  for (const auto& request : claim.spec.requests)
    requests.push_back({{"name", request.name},
                        {"exactly",
                         {{"deviceClassName", request.wishes.front().device_class},
                          {"allocationMode", "ExactCount"},
                          {"count", request.wishes.front().count}}}});
  const json owner{
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod_name}, {"uid", pod_uid}, {"controller", true}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata",
           {{"namespace", name_space},
            {"generateName", pod_name + "-extended-resources-"},
            {"annotations", {{"resource.kubernetes.io/extended-resource-claim", "true"}}},
            {"finalizers", {"resource.kubernetes.io/delete-protection"}},
            {"ownerReferences", json::array({owner})}}},
          {"spec", {{"devices", {{"requests", std::move(requests)}}}}}};
}

json claim_status(const ExtendedResourceClaim& claim, const std::string& claim_name) {
  json mappings = json::array();
  for (const auto& [container, resource, request] : claim.mappings)
    mappings.push_back({{"containerName", container}, {"resourceName", resource}, {"requestName", request}});
  return {{"resourceClaimName", claim_name}, {"requestMappings", std::move(mappings)}};
}

}  // namespace drover::kube::scheduler
