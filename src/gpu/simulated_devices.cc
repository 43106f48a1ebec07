#include "gpu/simulated_devices.h"

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

constexpr const char* kCapabilities = "nvidia-caps";
constexpr unsigned kControlMinor = 255;
constexpr unsigned kFirstLocalMajor = 120;  // 120 to 127 and 240 to 254 are for local use
constexpr unsigned kLastLocalMajor = 127;

std::optional<dev_t> number_of(const Directory& folder, const std::string& name) {
  struct stat info{};
  if (::fstatat(folder.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISCHR(info.st_mode))
    return std::nullopt;
  return info.st_rdev;
}

/// The major that the node has, if no driver took it since, so that it stays over restarts; else a free one.
Result<unsigned> free_major(const Directory& folder, const std::string& name,
                            const std::set<unsigned>& taken) {
  if (const auto number = number_of(folder, name); number && !taken.contains(::major(*number)))
    return ::major(*number);
  for (auto major = kFirstLocalMajor; major <= kLastLocalMajor; ++major)
    if (!taken.contains(major)) return major;
  return fail(
      ErrorKind::kExhausted, "no number is free for the simulated device files",
      fmt::format("/proc/devices shows who has the numbers {} to {}", kFirstLocalMajor, kLastLocalMajor));
}

Status make_node(const Directory& folder, const std::string& name, dev_t number) {
  constexpr mode_t kMode = 0666;
  if (number_of(folder, name) != number) {
    DROVER_CHECK_OK(folder.remove_tree(name));
    if (::mknodat(folder.fd(), name.c_str(), S_IFCHR | kMode, number) != 0) {
      auto error =
          errno_error(fmt::format("Failed to make the device file '{}/{}'", folder.path(), name), errno);
      error.hint = "a simulation needs root, and the right to make device files (CAP_MKNOD)";
      return Failure(std::move(error));
    }
  }
  if (::fchmodat(folder.fd(), name.c_str(), kMode, 0) != 0)  // whatever the umask is
    return fail_errno(fmt::format("Failed to set the mode of '{}/{}'", folder.path(), name), errno);
  return {};
}

}  // namespace

std::set<unsigned> majors_in_use(const std::string& devices) {
  std::set<unsigned> majors;
  std::istringstream lines(devices);
  bool character = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(':')) character = line.starts_with("Character");
    unsigned major = 0;
    if (character && std::istringstream(line) >> major) majors.insert(major);
  }
  return majors;
}

Status make_simulated_devices(const std::string& folder, const std::vector<int>& minors,
                              const std::set<unsigned>& in_use) {
  DROVER_TRY(const auto directory, Directory::create(folder));
  auto gpu_major = kNvidiaMajor;
  if (in_use.contains(kNvidiaMajor)) {
    DROVER_TRY(gpu_major, free_major(directory, "nvidiactl", in_use));
  }
  auto taken = in_use;
  taken.insert({gpu_major, kNvidiaMajor});
  DROVER_TRY(const auto uvm_major, free_major(directory, "nvidia-uvm", taken));

  std::map<std::string, dev_t> nodes{{"nvidiactl", ::makedev(gpu_major, kControlMinor)},
                                     {"nvidia-uvm", ::makedev(uvm_major, 0)},
                                     {"nvidia-uvm-tools", ::makedev(uvm_major, 1)}};
  for (const auto minor : minors)
    nodes.emplace(fmt::format("nvidia{}", minor), ::makedev(gpu_major, static_cast<unsigned>(minor)));
  DROVER_TRY(const auto present, directory.list());
  for (const auto& name : present)
    if (!nodes.contains(name) && name != kCapabilities) DROVER_CHECK_OK(directory.remove_tree(name));
  for (const auto& [name, number] : nodes) DROVER_CHECK_OK(make_node(directory, name, number));
  return {};
}

Status make_simulated_capabilities(const std::string& folder, std::set<unsigned> in_use) {
  DROVER_TRY(const auto devices, Directory::open(folder));
  for (const char* other : {"nvidiactl", "nvidia-uvm"})
    if (const auto number = number_of(devices, other)) in_use.insert(::major(*number));
  DROVER_TRY(const auto capabilities, devices.make_subdirectory(kCapabilities));
  const std::string first = "nvidia-cap1";
  DROVER_TRY(const auto major, free_major(capabilities, first, in_use));
  DROVER_TRY(const auto present, capabilities.list());
  for (const auto& name : present)
    if (const auto number = number_of(capabilities, name); !number || ::major(*number) != major)
      DROVER_CHECK_OK(capabilities.remove_tree(name));
  DROVER_CHECK_OK(make_node(capabilities, first, ::makedev(major, 1)));
  return make_node(capabilities, "nvidia-cap2", ::makedev(major, 2));
}

}  // namespace drover::gpu
