#include "container/volume_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/acting_as.h"
#include "base/files.h"
#include "base/open_path.h"
#include "container/mount_table.h"
#include "container/volume_source.h"

namespace drover::container {
namespace {

struct Opened {
  UniqueFd fd;
  bool folder = false;
};

Failure cannot(const VolumePlan& volume, std::string_view why, int error) {
  auto failure = errno_error(fmt::format("Volume '{}' cannot be mounted: {}", volume.host_path, why), error);
  return Failure(std::move(failure));
}

/// Of a folder the user must be allowed to search it, not only to see that it is there.
Result<Opened> open_volume(const VolumePlan& volume, const User& user) {
  Opened opened;
  int error = 0;
  {
    DROVER_TRY(const auto acting, ActingAs::start(user));
    opened.fd = open_path(AT_FDCWD, volume.host_path + "/.", O_PATH | O_DIRECTORY, RESOLVE_NO_MAGICLINKS);
    opened.folder = opened.fd.valid();
    error = errno;
    if (!opened.folder && error == ENOTDIR) {
      opened.fd = open_path(AT_FDCWD, volume.host_path, O_PATH, RESOLVE_NO_MAGICLINKS);
      error = errno;
    }
  }
  if (!opened.fd.valid())
    return cannot(
        volume,
        fmt::format("user '{}' cannot reach it", user.name.empty() ? std::to_string(user.uid) : user.name),
        error);
  struct stat info{};
  if (::fstat(opened.fd.get(), &info) != 0) return cannot(volume, "it cannot be looked at", errno);
  if (!opened.folder && !S_ISREG(info.st_mode) && !S_ISSOCK(info.st_mode))
    return fail(ErrorKind::kInvalid,
                fmt::format("Volume '{}' is neither a folder nor a file", volume.host_path));
  return opened;
}

Status check_not_ours(const VolumePlan& volume, int fd, const std::vector<std::string>& hidden) {
  std::array<char, 4097> buffer{};
  const auto size = ::readlink(descriptor_path(fd).c_str(), buffer.data(), buffer.size() - 1);
  if (size < 0) return cannot(volume, "its real path cannot be found", errno);
  const std::string real(buffer.data(), static_cast<std::size_t>(size));
  DROVER_TRY(const auto mounts, read_file("/proc/self/mountinfo").map(parse_mount_table));
  for (const auto& place : hidden)
    if (shows(mounts, real, place))
      return fail(ErrorKind::kPermissionDenied,
                  fmt::format("Volume '{}' cannot be mounted: Drover keeps its own files in '{}'",
                              volume.host_path, place),
                  "name a folder beside it");
  return {};
}

}  // namespace

Result<VolumeTree> open_volume_tree(const VolumePlan& volume, const User& user,
                                    const std::vector<std::string>& hidden, const UserNamespace* ids) {
  DROVER_TRY(const auto opened, open_volume(volume, user));
  DROVER_CHECK_OK(check_not_ours(volume, opened.fd.get(), hidden));
  if (!volume.kernel) DROVER_CHECK_OK(check_source(volume, opened.fd.get()));
  auto tree =
      copy_of_mount(opened.fd.get(), true,
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (volume.read_only ? MOUNT_ATTR_RDONLY : 0U), ids);
  if (!tree)
    return fail(tree.error().kind,
                fmt::format("Volume '{}' cannot be mounted: {}", volume.host_path, tree.error().message));
  return VolumeTree{std::move(*tree), opened.folder ? PlaceKind::kFolder : PlaceKind::kFile};
}

bool can_map(const LaunchSpec& spec, const UserNamespace& ids) {
  return std::ranges::all_of(spec.volumes, [&](const VolumePlan& volume) {
    const auto open = [&](const UserNamespace* with) {
      return open_volume_tree(volume, spec.volume_user, spec.root.hidden, with).has_value();
    };
    return open(&ids) || !open(nullptr);
  });
}

Status mount_volumes(const LaunchSpec& spec, const MountPoints& points, const UserNamespace* ids) {
  for (const auto& volume : spec.volumes) {
    DROVER_TRY(const auto source, open_volume_tree(volume, spec.volume_user, spec.root.hidden, ids));
    const bool make = !spec.root.layers.empty() || !volume.sandbox_path.empty();
    const auto mounted = points.users(volume.destination, source.kind, spec.volume_user, make)
                             .and_then([&](const UniqueFd& place) {
                               return MountPoints::attach(source.tree.get(), place.get(), volume.destination);
                             });
    if (!mounted)
      return fail(mounted.error().kind,
                  fmt::format("Volume '{}' cannot be mounted: {}", volume.host_path, mounted.error().message),
                  mounted.error().hint);
  }
  return {};
}

}  // namespace drover::container
