#include "objects.h"

#include <fmt/format.h>

#include "kube/gpu_topology.h"

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr int kNvlinks = 12;

std::string topology_of(const std::string& node, const NodeShape& shape) {
  gpu::Inventory inventory{.driver_version = "535.104.05"};
  for (int i = 0; i < shape.gpus; ++i)
    inventory.devices.push_back({.uuid = fmt::format("{}-{}", node, i), .index = i, .model = shape.model});
  const auto count = static_cast<std::size_t>(shape.gpus);
  inventory.links.assign(count, std::vector<gpu::Link>(count, {kNvlinks, gpu::PcieLevel::kAcross}));
  return kube::write_topology(inventory);
}

json resources_of(std::int64_t milli_cpus, std::int64_t memory_mib) {
  return {{"cpu", fmt::format("{}m", milli_cpus)}, {"memory", fmt::format("{}Mi", memory_mib)}};
}

}  // namespace

std::string node_name(int number) {
  return fmt::format("node-{:05}", number);
}

json node_object(const std::string& name, const NodeShape& shape) {
  auto resources = resources_of(shape.milli_cpus, shape.memory_mib);
  resources["pods"] = "256";
  json metadata{{"name", name},
                {"labels", {{"kubernetes.io/hostname", name}, {kRack, fmt::format("rack-{}", shape.rack)}}}};
  if (shape.by_limits && shape.gpus > 0) resources[kGpu] = std::to_string(shape.gpus);
  if (shape.gpus > 0) metadata["annotations"] = {{kube::kTopologyAnnotation, topology_of(name, shape)}};
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", std::move(metadata)},
          {"status", {{"capacity", resources}, {"allocatable", resources}}}};
}

json slice_object(const std::string& node) {
  json devices = json::array();
  for (int i = 0; i < kGpusOfNode; ++i)
    devices.push_back({{"name", fmt::format("gpu-{}", i)},
                       {"attributes",
                        {{"uuid", {{"string", fmt::format("{}-{}", node, i)}}},
                         {"type", {{"string", "gpu"}}},
                         {"index", {{"int", i}}},
                         {"productName", {{"string", "NVIDIA A100"}}},
                         {"board", {{"string", fmt::format("{}-board-{}", node, i / kGpusOfBoard)}}}}},
                       {"capacity", {{"memory", {{"value", "80Gi"}}}}}});
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", {{"name", node + "-gpus"}}},
          {"spec",
           {{"driver", kDriver},
            {"nodeName", node},
            {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", std::move(devices)}}}};
}

json class_object(const std::string& resource) {
  json spec{{"selectors",
             json::array({{{"cel", {{"expression", fmt::format("device.driver == '{}'", kDriver)}}}}})}};
  if (!resource.empty()) spec["extendedResourceName"] = resource;
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "DeviceClass"},
          {"metadata", {{"name", kDriver}}},
          {"spec", std::move(spec)}};
}

std::string template_name(int devices) {
  return fmt::format("gpus-{}", devices);
}

json template_object(const std::string& name_space, int devices) {
  const json request{
      {"name", "gpus"},
      {"exactly", {{"deviceClassName", kDriver}, {"allocationMode", "ExactCount"}, {"count", devices}}}};
  const json constraint{{"requests", {"gpus"}}, {"matchAttribute", fmt::format("{}/board", kDriver)}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaimTemplate"},
          {"metadata", {{"name", template_name(devices)}, {"namespace", name_space}}},
          {"spec",
           {{"spec",
             {{"devices",
               {{"requests", json::array({request})}, {"constraints", json::array({constraint})}}}}}}}};
}

json pod_object(const std::string& name_space, const std::string& name, const PodWish& shape) {
  auto requests = resources_of(shape.milli_cpus, shape.memory_mib);
  json container{{"name", "main"}, {"image", "registry.example.com/train"}};
  container["resources"]["requests"] = std::move(requests);
  if (shape.gpus > 0) container["resources"]["limits"] = {{kGpu, std::to_string(shape.gpus)}};
  json spec{{"schedulerName", shape.scheduler}, {"terminationGracePeriodSeconds", 0}};
  if (!shape.node.empty()) spec["nodeName"] = shape.node;
  if (!shape.group.empty()) spec["schedulingGroup"] = {{"podGroupName", shape.group}};
  if (shape.claimed > 0) {
    spec["resourceClaims"] =
        json::array({{{"name", "gpus"}, {"resourceClaimTemplateName", template_name(shape.claimed)}}});
    container["resources"]["claims"] = json::array({{{"name", "gpus"}}});
  }
  spec["containers"] = json::array({std::move(container)});
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", name_space}, {"labels", {{"app", "train"}}}}},
          {"spec", std::move(spec)}};
}

json group_object(const std::string& name_space, const std::string& name, int size,
                  const std::string& topology_key) {
  json spec{{"schedulingPolicy", {{"gang", {{"minCount", size}}}}}};
  if (!topology_key.empty())
    spec["schedulingConstraints"]["topology"] = json::array({{{"key", topology_key}}});
  return {{"apiVersion", "scheduling.k8s.io/v1alpha2"},
          {"kind", "PodGroup"},
          {"metadata", {{"name", name}, {"namespace", name_space}}},
          {"spec", std::move(spec)}};
}

}  // namespace drover::bench
