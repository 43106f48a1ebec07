#include "container/device_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "container/own_places.h"

namespace drover::container {
namespace {

// As every engine has them (OCI runtime specification, "Default Devices").
const std::array<DevicePlan, 6> kHarmless = {{{"null", "c", 1, 3},
                                              {"zero", "c", 1, 5},
                                              {"full", "c", 1, 7},
                                              {"random", "c", 1, 8},
                                              {"urandom", "c", 1, 9},
                                              {"tty", "c", 5, 0}}};
constexpr std::array<std::pair<const char*, const char*>, 6> kLinks = {{{"fd", "/proc/self/fd"},
                                                                        {"stdin", "/proc/self/fd/0"},
                                                                        {"stdout", "/proc/self/fd/1"},
                                                                        {"stderr", "/proc/self/fd/2"},
                                                                        {"core", "/proc/kcore"},
                                                                        {"ptmx", "pts/ptmx"}}};

Failure cannot_make(const std::string& path, int error) {
  return fail_errno(fmt::format("Failed to make '/dev/{}' of the container", path), error);
}

mode_t kind_of(const DevicePlan& device) {
  return device.type == "b" ? S_IFBLK : device.type == "p" ? S_IFIFO : S_IFCHR;
}

/// One that is there stays: the first that was asked for.
Status make_node(const DevicePlan& device, const IdMap& ids, const MountPoints& points) {
  const std::filesystem::path path = "/" + device.path;
  DROVER_TRY(const auto folder, points.own(path.parent_path().string(), PlaceKind::kFolder));
  const auto name = path.filename().string();
  const auto mode = device.mode & 07777U;
  if (::mknodat(folder.get(), name.c_str(), kind_of(device) | mode, ::makedev(device.major, device.minor)) !=
      0)
    return errno == EEXIST ? Status() : cannot_make(device.path, errno);
  if (::fchownat(folder.get(), name.c_str(), ids.on_machine(device.uid), ids.on_machine(device.gid),
                 AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fchmodat(folder.get(), name.c_str(), mode, 0) != 0)  // whatever the umask is
    return cannot_make(device.path, errno);
  return {};
}

}  // namespace

Result<MountPoints> make_device_folder(const LaunchSpec& spec, const std::string& root) {
  const auto target = root + "/dev";
  auto options = fmt::format("mode=755,size=64m,uid={0},gid={0}", spec.ids.on_machine(0));
  if (!spec.root.label.empty()) options += fmt::format(",context=\"{}\"", spec.root.label);
  if (::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_STRICTATIME, options.c_str()) != 0)
    return fail_errno("Failed to mount /dev of the container", errno);
  DROVER_TRY(auto points, MountPoints::open(target, MountPoints::Root::kThrownAway, spec.ids.on_machine(0)));
  for (const std::string_view place : kOwnDevicePlaces) {
    const std::string folder(place.substr(std::string_view("/dev").size()));
    DROVER_CHECK_OK(points.own(folder, PlaceKind::kFolder).map([](auto&&) {}));
  }
  // crun lays the terminal over it, and does not make it.
  if (spec.terminal) DROVER_CHECK_OK(points.own("console", PlaceKind::kFile).map([](auto&&) {}));
  for (const auto& device : spec.devices) DROVER_CHECK_OK(make_node(device, spec.ids, points));
  for (const auto& device : kHarmless) DROVER_CHECK_OK(make_node(device, spec.ids, points));
  for (const auto& [name, behind] : kLinks)
    if (::symlink(behind, fmt::format("{}/{}", target, name).c_str()) != 0 && errno != EEXIST)
      return cannot_make(name, errno);
  return points;
}

}  // namespace drover::container
