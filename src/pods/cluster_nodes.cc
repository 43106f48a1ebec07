#include "pods/cluster_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/client/object.h"
#include "kube/gpu_topology.h"
#include "kube/scheduler/node.h"
#include "kube/scheduler/resources.h"
#include "placement/wiring.h"
#include "pods/pod_place.h"

namespace drover::pods {
namespace {

std::string annotation_of(const nlohmann::json& node, std::string_view name) {
  const auto annotations = node.value("/metadata/annotations"_json_pointer, nlohmann::json::object());
  const auto found = annotations.find(name);
  return found != annotations.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Result<placement::Node> placement_node(const nlohmann::json& node, const std::string& gpu_resource) {
  DROVER_TRY(const auto seen, kube::scheduler::read_node(node));
  placement::Node made{.name = seen.name};
  made.milli_cpus = seen.allocatable.cpu;
  made.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(seen.allocatable.memory, 0));
  const auto offered = seen.allocatable.others.find(gpu_resource);
  auto count = offered == seen.allocatable.others.end() ? 0 : offered->second;
  if (const auto text = annotation_of(node, kube::kTopologyAnnotation); !text.empty()) {
    DROVER_TRY(made.inventory, kube::read_topology(text));
    for (auto& device : made.inventory.devices) {
      if (kube::is_about_use(device.unhealthy)) std::swap(device.unhealthy, device.cordoned);
      // Which ones those are that it does not offer, nobody says.
      if (gpu::why_withheld(device).empty() && count-- <= 0) device.cordoned = "its node does not offer it";
    }
  } else {
    for (int i = 0; i < std::clamp<std::int64_t>(count, 0, placement::kMaxDevices); ++i)
      made.inventory.devices.push_back({.uuid = fmt::format("{}#{}", seen.name, i), .index = i});
    made.inventory.links.assign(made.inventory.devices.size(),
                                std::vector<gpu::Link>(made.inventory.devices.size()));
  }
  if (seen.unschedulable) made.cordoned = "it takes no new pods";
  for (const auto& [name, value] : seen.labels) made.attributes[name] = {value};
  made.attributes["hostname"] = {made.attributes.contains(kHostName) ? made.attributes[kHostName].front()
                                                                     : seen.name};
  return made;
}

Result<PodUse> read_use(const nlohmann::json& pod, const std::string& gpu_resource) {
  kube::scheduler::FieldReader reader;
  PodUse use;
  const auto phase = reader.text(reader.object(pod, "status"), "phase");
  if (phase == "Succeeded" || phase == "Failed") return use;
  use.node = reader.text(reader.object(pod, "spec"), "nodeName");
  const auto requests = kube::scheduler::read_requests(reader, pod, nullptr);
  DROVER_CHECK_OK(reader.status(kube::key_of(pod)));
  const auto at_least_none = [](std::int64_t amount) { return std::max<std::int64_t>(amount, 0); };
  const auto gpus = requests.others.find(gpu_resource);
  use.amounts.milli_cpus = at_least_none(requests.cpu);
  use.amounts.memory_bytes = static_cast<std::uint64_t>(at_least_none(requests.memory));
  if (gpus != requests.others.end())
    use.amounts.gpus = static_cast<int>(std::clamp<std::int64_t>(gpus->second, 0, placement::kMaxDevices));
  return use;
}

}  // namespace drover::pods
