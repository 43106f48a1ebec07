#include "container/docker/engine_volumes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>

#include <cerrno>

#include "container/docker/engine_mounts.h"
#include "container/mount_points.h"
#include "container/task_folder.h"
#include "container/volume_mount.h"

namespace drover::container::docker {
namespace {

/// In a folder that is ours alone.
Status attach_new(const Directory& places, const std::string& name, int tree, PlaceKind kind) {
  if (kind == PlaceKind::kFolder) {
    DROVER_CHECK_OK(places.make_subdirectory(name, 0700).map([](auto&&) {}));
  } else {
    DROVER_CHECK_OK(places.open_file(name, O_WRONLY | O_CREAT, 0600).map([](auto&&) {}));
  }
  DROVER_TRY(const auto place, places.open_file(name, O_PATH));
  return MountPoints::attach(tree, place.get(), name);
}

Status attach_inside(const Directory& places, const InnerPlace& where, int tree, PlaceKind kind,
                     const User& user) {
  DROVER_TRY(const auto points, MountPoints::open(fmt::format("{}/{}", places.path(), where.source),
                                                  MountPoints::Root::kVolume));
  DROVER_TRY(const auto place, points.users("/" + where.path, kind, user, true));
  return MountPoints::attach(tree, place.get(), where.path);
}

Result<Directory> make_places(const Directory& task) {
  DROVER_TRY(const auto folder, task.make_subdirectory(kVolumes, 0700));
  const auto path = fmt::format("{}/{}", task.path(), kVolumes);
  if (::mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700,size=1m") != 0)
    return fail_errno("Failed to make room for volumes", errno);
  return Directory::open(path);
}

}  // namespace

Status expose_volumes(const std::vector<VolumePlan>& volumes, const User& user,
                      const std::vector<std::string>& hidden, const Directory& task) {
  DROVER_TRY(const auto places, make_places(task));
  DROVER_TRY(const auto sandbox, task.subdirectory(kSandbox));
  DROVER_TRY(const auto sandbox_tree,
             copy_of_mount(sandbox.fd(), false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  DROVER_CHECK_OK(attach_new(places, kSandboxSource, sandbox_tree.get(), PlaceKind::kFolder));
  for (const auto i : mounting_order(volumes)) {
    DROVER_TRY(const auto source, open_volume_tree(volumes[i], user, hidden));
    const auto inner = inner_place(volumes, i);
    const auto attached = inner ? attach_inside(places, *inner, source.tree.get(), source.kind, user)
                                : attach_new(places, std::to_string(i), source.tree.get(), source.kind);
    if (!attached)
      return fail(attached.error().kind,
                  fmt::format("Volume '{}' cannot be mounted at '{}': {}", volumes[i].host_path,
                              volumes[i].destination, attached.error().message),
                  attached.error().hint);
  }
  return {};
}

void unmount_volumes(const Directory& task) {
  const auto path = fmt::format("{}/{}", task.path(), kVolumes);
  while (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) continue;
  // An earlier version mounted them one by one.
  const auto places = task.subdirectory(kVolumes);
  if (!places) return;
  for (const auto& name : places->list().value_or(std::vector<std::string>{}))
    ::umount2(fmt::format("{}/{}", path, name).c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

}  // namespace drover::container::docker
