#include "container/volume_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/acting_as.h"
#include "container/fetch/tree.h"
#include "container/task_folder.h"
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

UniqueFd open_path(const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

/// Of a folder the user must be allowed to search it, not only to see that it is there.
Result<Opened> open_volume(const VolumePlan& volume, const User& user) {
  Opened opened;
  int error = 0;
  {
    DROVER_TRY(const auto acting, ActingAs::start(user));
    opened.fd = open_path(volume.host_path + "/.", O_DIRECTORY);
    opened.folder = opened.fd.valid();
    error = errno;
    if (!opened.folder && error == ENOTDIR) {
      opened.fd = open_path(volume.host_path, 0);
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
  for (const auto& place : hidden)
    if (is_within(real, place) || is_within(place, real))
      return fail(ErrorKind::kPermissionDenied,
                  fmt::format("Volume '{}' cannot be mounted: Drover keeps its own files in '{}'",
                              volume.host_path, place),
                  "name a folder beside it");
  return {};
}

/// The destination's place: in the sandbox it is made as the user's own; on the host it must be there.
Status make_place(const VolumePlan& volume, bool folder, bool imageless, Tree& sandbox) {
  if (volume.sandbox_path.empty()) {
    struct stat info{};
    const bool fits = ::stat(volume.destination.c_str(), &info) == 0 && S_ISDIR(info.st_mode) == folder;
    if (!imageless || fits) return {};
    return fail(ErrorKind::kInvalid,
                fmt::format("Volume '{}' cannot be mounted at '{}': there is no {} on this machine",
                            volume.host_path, volume.destination, folder ? "such folder" : "such file"),
                "a task without an image mounts over what is there, or inside of its sandbox");
  }
  return folder ? sandbox.make_folder(volume.sandbox_path) : sandbox.make_empty(volume.sandbox_path);
}

Status mount_one(const VolumePlan& volume, const Opened& opened, const std::string& name,
                 const Directory& places) {
  const UniqueFd tree(static_cast<int>(::open_tree(
      opened.fd.get(), "",
      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_RECURSIVE | AT_EMPTY_PATH))));
  if (!tree.valid()) return cannot(volume, "its mounts cannot be copied", errno);
  struct mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (volume.read_only) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  attributes.propagation = MS_PRIVATE;
  if (::mount_setattr(tree.get(), "", static_cast<unsigned>(AT_EMPTY_PATH | AT_RECURSIVE), &attributes,
                      sizeof attributes) != 0)
    return cannot(volume, "it cannot be restricted", errno);
  if (opened.folder) {
    DROVER_CHECK_OK(places.make_subdirectory(name, 0700).map([](auto&&) {}));
  } else {
    DROVER_CHECK_OK(places.open_file(name, O_WRONLY | O_CREAT, 0600).map([](auto&&) {}));
  }
  if (::move_mount(tree.get(), "", places.fd(), name.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return cannot(volume, "it cannot be placed", errno);
  return {};
}

}  // namespace

Status mount_volumes(const std::vector<VolumePlan>& volumes, const User& user,
                     const std::vector<std::string>& hidden, bool imageless, const Directory& task) {
  if (volumes.empty()) return {};
  DROVER_CHECK_OK(task.make_subdirectory(kVolumes, 0700).map([](auto&&) {}));
  // Anew, by its path: a descriptor from before belongs to the mount namespace that was left.
  DROVER_TRY(const auto places, Directory::open(fmt::format("{}/{}", task.path(), kVolumes)));
  DROVER_TRY(const auto sandbox_folder, task.subdirectory(kSandbox));
  Tree sandbox(sandbox_folder.fd(), Tree::Owner{user.uid, user.gid});
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    DROVER_TRY(const auto opened, open_volume(volumes[i], user));
    DROVER_CHECK_OK(check_not_ours(volumes[i], opened.fd.get(), hidden));
    if (!volumes[i].kernel) DROVER_CHECK_OK(check_source(volumes[i], opened.fd.get()));
    DROVER_CHECK_OK(make_place(volumes[i], opened.folder, imageless, sandbox));
    DROVER_CHECK_OK(mount_one(volumes[i], opened, std::to_string(i), places));
  }
  return {};
}

void unmount_volumes(const Directory& task) {
  const auto places = task.subdirectory(kVolumes);
  if (!places) return;
  for (const auto& name : places->list().value_or(std::vector<std::string>{}))
    ::umount2(fmt::format("{}/{}", places->path(), name).c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

}  // namespace drover::container
