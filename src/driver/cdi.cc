#include "driver/cdi.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver/files.h"

namespace drover::driver {
namespace {

// Host paths of device nodes came with 0.5.0: nothing here needs a later one.
constexpr const char* kCdiVersion = "0.5.0";
constexpr const char* kKind = "nvidia.com/gpu";

using Json = nlohmann::ordered_json;

Json device_node(const gpu::DeviceNode& node, const std::string& folder) {
  const auto host_path = folder + node.path.substr(node.path.rfind('/'));
  return {{"path", node.path},   {"hostPath", host_path}, {"type", "c"},          {"major", node.major},
          {"minor", node.minor}, {"permissions", "rw"},   {"fileMode", node.mode}};
}

Json device_nodes(const std::vector<gpu::DeviceNode>& nodes, const std::string& folder) {
  auto list = Json::array();
  for (const auto& node : nodes) list.push_back(device_node(node, folder));
  return list;
}

Json device(const std::string& name, const Json& nodes) {
  return {{"name", name}, {"containerEdits", {{"deviceNodes", nodes}}}};
}

/// What every container gets, whichever GPUs it has.
Json common_edits(const CdiInput& input) {
  const std::string folder = kContainerFolder;
  Json edits{{"deviceNodes", device_nodes(input.control_nodes, input.device_folder)}};
  // CDI can set variables but not extend them, so PATH is left to the image.
  edits["env"] = {fmt::format("LD_LIBRARY_PATH=/usr/local/cuda/compat:{0}/lib:{0}/lib64", folder)};
  edits["mounts"] = {{{"hostPath", input.volume},
                      {"containerPath", folder},
                      {"options", {"ro", "nosuid", "nodev", "rbind", "rprivate"}}}};
  return edits;
}

}  // namespace

Result<std::string> cdi_specification(const CdiInput& input) {
  std::vector<gpu::DeviceNode> all;
  auto devices = Json::array();
  for (const auto& gpu : input.inventory.devices) {
    const auto path = fmt::format("/dev/nvidia{}", gpu.minor.value_or(-1));
    const auto node = std::ranges::find(input.gpu_nodes, path, &gpu::DeviceNode::path);
    if (!gpu.unfit.empty() || node == input.gpu_nodes.end()) continue;
    all.push_back(*node);
    const auto nodes = device_nodes({*node}, input.device_folder);
    devices.push_back(device(std::to_string(gpu.index), nodes));
    devices.push_back(device(gpu.uuid, nodes));
  }
  if (all.empty())
    return fail(ErrorKind::kNotFound, "there is no GPU that a CDI specification could offer",
                "'drover gpus' lists what was found, and 'drover doctor' what is missing");
  devices.push_back(device("all", device_nodes(all, input.device_folder)));
  const Json specification{{"cdiVersion", kCdiVersion},
                           {"kind", kKind},
                           {"devices", devices},
                           {"containerEdits", common_edits(input)}};
  return specification.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace drover::driver
