#include "gpu/mig_nodes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <map>
#include <optional>
#include <sstream>

#include "base/files.h"

namespace drover::gpu {
namespace {

constexpr const char* kFolder = "nvidia-caps";
constexpr mode_t kCapabilityMode = 0444;
// What the driver has of each GPU, used or not.
constexpr int kGpuInstances = 15;
constexpr int kComputeInstances = 8;
constexpr std::uint64_t kLongestMinors = 4ULL << 20;

std::map<std::string, unsigned> read_minors(const std::string& text) {
  std::map<std::string, unsigned> minors;
  std::istringstream lines(text);
  std::string name;
  for (unsigned minor = 0; lines >> name >> minor;) minors.emplace(name, minor);
  return minors;
}

/// Of the nodes that are there from the start, or of the driver.
Result<unsigned> capability_major(const MigNodePlaces& places) {
  struct stat info{};
  if (::stat(fmt::format("{}/{}/nvidia-cap1", places.devices, kFolder).c_str(), &info) == 0 &&
      S_ISCHR(info.st_mode))
    return ::major(info.st_rdev);
  DROVER_TRY(const auto text, read_file(places.drivers));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (unsigned major = 0; words >> major >> name && name == kFolder) return major;
  }
  return fail(ErrorKind::kNotFound, "NVIDIA's driver tells no number of its capability devices",
              "it has them when it is loaded on a machine with GPUs that can do MIG");
}

Status make_missing(const std::string& path, const std::string& name, dev_t number) {
  DROVER_TRY(const auto folder, Directory::create(path));
  struct stat info{};
  if (::fstatat(folder.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISCHR(info.st_mode) && info.st_rdev == number) return {};
    DROVER_CHECK_OK(folder.remove_tree(name));
  }
  const bool made = ::mknodat(folder.fd(), name.c_str(), S_IFCHR | kCapabilityMode, number) == 0;
  if (!made && errno != EEXIST && errno != EROFS)  // a driver root that is only read has the numbers too
    return fail_errno(fmt::format("Failed to make the device file '{}/{}'", folder.path(), name), errno);
  return {};
}

}  // namespace

Result<std::vector<DeviceNode>> mig_device_nodes(const MigNodePlaces& places, int minor,
                                                 const MigInstanceFacts& instance) {
  DROVER_TRY(const auto text, read_file(places.minors, kLongestMinors));
  DROVER_TRY(const auto major, capability_major(places));
  const auto minors = read_minors(text);
  const auto gpu_instance = fmt::format("gpu{}/gi{}", minor, instance.gpu_instance);
  std::vector<DeviceNode> nodes;
  for (const auto& name : {fmt::format("{}/access", gpu_instance),
                           fmt::format("{}/ci{}/access", gpu_instance, instance.compute_instance)}) {
    const auto found = minors.find(name);
    if (found == minors.end())
      return fail(ErrorKind::kNotFound, fmt::format("'{}' does not have '{}'", places.minors, name));
    const auto node = fmt::format("nvidia-cap{}", found->second);
    const auto made =
        make_missing(fmt::format("{}/{}", places.devices, kFolder), node, ::makedev(major, found->second));
    // Who may make none here, as in a pod of its own, has the numbers all the same.
    if (!made && made.error().kind != ErrorKind::kPermissionDenied) return Failure(made.error());
    nodes.push_back({fmt::format("/dev/{}/{}", kFolder, node), major, found->second, kCapabilityMode});
  }
  return nodes;
}

std::string mig_minors_text(const std::vector<int>& minors) {
  constexpr int kFirst = 3;  // after "config" and "monitor"
  std::string text = "config 1\nmonitor 2\n";
  for (const int gpu : minors) {
    auto number = kFirst + gpu * kGpuInstances * (1 + kComputeInstances);
    for (int instance = 0; instance < kGpuInstances; ++instance) {
      text += fmt::format("gpu{}/gi{}/access {}\n", gpu, instance, number++);
      for (int compute = 0; compute < kComputeInstances; ++compute)
        text += fmt::format("gpu{}/gi{}/ci{}/access {}\n", gpu, instance, compute, number++);
    }
  }
  return text;
}

}  // namespace drover::gpu
