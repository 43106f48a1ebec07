#include "gpu/device_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/files.h"

namespace drover::gpu {
namespace {

Result<DeviceNode> device_node(const std::string& folder, const std::string& name) {
  const auto path = folder + "/" + name;
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR)
      return fail_errno(fmt::format("Failed to look at '{}'", path), errno);
    return fail(ErrorKind::kNotFound, fmt::format("There is no device file '{}'", path),
                "load the NVIDIA driver's kernel module, or run nvidia-modprobe");
  }
  if (!S_ISCHR(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a character device", path),
                "remove it, and let the NVIDIA driver make it anew (nvidia-modprobe)");
  return DeviceNode{"/dev/" + name, ::major(info.st_rdev), ::minor(info.st_rdev)};
}

}  // namespace

std::string device_folder_of(const std::vector<std::string>& folders) {
  return *std::ranges::max_element(folders, {}, [](const std::string& folder) {
    const auto nodes = control_device_nodes(folder);
    return nodes ? nodes->size() : 0;
  });
}

Result<DeviceNode> gpu_device_node(const std::string& folder, int minor) {
  return device_node(folder, fmt::format("nvidia{}", minor));
}

Result<std::vector<DeviceNode>> control_device_nodes(const std::string& folder) {
  DROVER_TRY(auto control, device_node(folder, "nvidiactl"));
  std::vector<DeviceNode> nodes{std::move(control)};
  for (const auto* name : {"nvidia-uvm", "nvidia-uvm-tools"}) {
    auto node = device_node(folder, name);
    if (node)
      nodes.push_back(std::move(*node));
    else if (node.error().kind != ErrorKind::kNotFound)
      return Failure(std::move(node).error());
  }
  return nodes;
}

std::vector<DeviceNode> nvidia_device_nodes(const std::string& folder) {
  std::vector<DeviceNode> nodes;
  const auto add = [&](const std::filesystem::directory_entry& entry) {
    struct stat info{};
    if (::stat(entry.path().c_str(), &info) == 0 && S_ISCHR(info.st_mode))
      nodes.push_back({entry.path().string(), ::major(info.st_rdev), ::minor(info.st_rdev)});
  };
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with("nvidia")) continue;
    if (!entry.is_directory(ignored)) add(entry);
    for (const auto& inner : std::filesystem::directory_iterator(entry.path(), ignored)) add(inner);
  }
  return nodes;
}

std::vector<DeviceNode> nvidia_screen_nodes(const std::string& drm) {
  std::vector<DeviceNode> nodes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(drm, ignored)) {
    const auto folder = entry.path().string();
    if (!read_file(folder + "/device/vendor").value_or("").starts_with("0x10de")) continue;
    const auto numbers = read_file(folder + "/dev").value_or("");  // "226:128"
    DeviceNode node{"/dev/dri/" + entry.path().filename().string()};
    const auto* const end = numbers.data() + numbers.size();
    const auto major = std::from_chars(numbers.data(), end, node.major);
    if (major.ec != std::errc() || major.ptr == end) continue;
    if (std::from_chars(major.ptr + 1, end, node.minor).ec == std::errc()) nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace drover::gpu
