#include "driver/cdi.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "driver/hook/hook.h"

namespace drover::driver {
namespace {

// Of the vendor's nodes: those of GPUs and of the control device.
constexpr unsigned kNvidiaMajor = 195;
/// Where containers have their nodes.
constexpr std::string_view kDev = "/dev";

cdi::Hook hook(const std::string& program, const std::string& name, const std::string& option,
               std::vector<std::string> values) {
  cdi::Hook made{"createContainer", program, {"drover", kCdiHookCommand, name}, {}, std::nullopt};
  for (auto& value : values) {
    made.arguments.push_back(option);
    made.arguments.push_back(std::move(value));
  }
  // Never the container's own environment, which names libraries to be loaded into every program.
  made.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  return made;
}

}  // namespace

cdi::Edits edits_of_nodes(const std::vector<gpu::DeviceNode>& nodes, const std::string& folder) {
  cdi::Edits edits;
  for (const auto& node : nodes) {
    cdi::DeviceNode made;
    made.path = node.path;
    if (!folder.empty() && folder != "/dev") made.host_path = folder + node.path.substr(kDev.size());
    made.type = "c";
    made.major = node.major;
    made.minor = node.minor;
    made.file_mode = node.mode;
    made.permissions = "rw";
    made.uid = made.gid = 0;
    edits.device_nodes.push_back(std::move(made));
  }
  return edits;
}

cdi::Edits edits_of_files(const HostFiles& files, const std::string& program) {
  cdi::Edits edits;
  for (const auto& file : files.files) {
    const auto* access = file.writable ? "rw" : "ro";
    cdi::Mount mount{file.source, file.destination, "", {access, "nosuid", "nodev", "rbind", "rprivate"}};
    if (file.socket || file.writable) mount.options.push_back("noexec");
    edits.mounts.push_back(std::move(mount));
  }
  std::vector<std::string> links;
  for (const auto& link : files.links) links.push_back(link.target + "::" + link.path);
  if (!links.empty()) edits.hooks.push_back(hook(program, "create-symlinks", "--link", std::move(links)));
  if (!files.libraries.empty())
    edits.hooks.push_back(hook(program, "update-ldcache", "--library", files.libraries));
  return edits;
}

std::vector<cdi::Mount> mounts_of_guard(const cdi::Edits& files, const Guard& guard) {
  const auto behind = fmt::format("{}/{}", kContainerFolder, kBehindGuard);
  std::vector<cdi::Mount> mounts;
  std::ranges::copy_if(files.mounts, std::back_inserter(mounts), [&](const cdi::Mount& mount) {
    return mount.container_path.starts_with(behind) ||
           std::ranges::find(guard, mount.host_path, &GuardLibrary::source) != guard.end();
  });
  return mounts;
}

cdi::Hook guard_hook(const std::vector<cdi::Mount>& mounts, const std::string& program) {
  std::vector<std::string> checked;
  for (const auto& mount : mounts) checked.push_back(mount.host_path + "::" + mount.container_path);
  return hook(program, "check-guard", "--mount", std::move(checked));
}

Result<cdi::Specification> cdi_specification(const CdiInput& input) {
  cdi::Specification specification;
  specification.kind = kCdiKind;
  std::vector<gpu::DeviceNode> all;
  const auto add = [&](std::string name, const std::vector<gpu::DeviceNode>& nodes) {
    specification.devices.push_back({std::move(name), {}, edits_of_nodes(nodes, input.device_folder)});
  };
  for (const auto& gpu : input.inventory.devices) {
    const auto path = fmt::format("/dev/nvidia{}", gpu.minor.value_or(-1));
    const auto node = std::ranges::find(input.gpu_nodes, path, &gpu::DeviceNode::path);
    if (!gpu.unhealthy.empty() || node == input.gpu_nodes.end()) continue;
    all.push_back(*node);
    add(std::to_string(gpu.index), {*node});
    add(gpu.uuid, {*node});
  }
  if (all.empty())
    return fail(ErrorKind::kNotFound, "there is no GPU that a CDI specification could offer",
                "'drover gpus' lists what was found, and 'drover doctor' what is missing");
  add("all", all);
  // The vendor's own hook for engines without CDI does nothing then.
  specification.edits.environment = {"NVIDIA_VISIBLE_DEVICES=void"};
  specification.edits.append(edits_of_nodes(input.control_nodes, input.device_folder));
  specification.edits.append(edits_of_files(input.files, input.program));
  specification.version = cdi::required_version(specification);
  return specification;
}

std::string gpu_node_in(const cdi::Edits& edits, const std::vector<gpu::DeviceNode>& nodes) {
  for (const auto& node : edits.device_nodes) {
    const bool known = std::ranges::any_of(nodes, [&](const gpu::DeviceNode& gpu) {
      return node.major == gpu.major && node.minor == gpu.minor;
    });
    if (known || node.major == kNvidiaMajor) return node.path;
  }
  return "";
}

}  // namespace drover::driver
