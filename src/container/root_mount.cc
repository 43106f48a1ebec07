#include "container/root_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/files.h"
#include "base/open_path.h"
#include "container/device_folder.h"
#include "container/environment.h"
#include "container/id_map.h"
#include "container/mount_points.h"
#include "container/task_folder.h"
#include "container/volume_mount.h"
#include "container/volume_source.h"

namespace drover::container {
namespace {

constexpr std::size_t kMaxOptions = 4095;  // one page, as mount(2) copies them

/// A container's mounts while they are made.
struct Mounting {
  const LaunchSpec& spec;
  const std::string& task_folder;
  const Directory& mounts;
  std::optional<UserNamespace> ids;  ///< of root that is not the machine's

  const UserNamespace* user_namespace() const { return ids ? &*ids : nullptr; }
  uid_t owner() const { return spec.ids.on_machine(0); }
};

Status overlay_failure(int error, const std::string& task_folder) {
  auto failure = errno_error(fmt::format("Failed to mount the image below '{}'", task_folder), error);
  if (error == EINVAL || error == EOPNOTSUPP)
    failure.hint = "the state folder must lie on a file system such as ext4, xfs or btrfs, not on an overlay";
  if (error == ENODEV) failure.hint = "load the kernel module 'overlay'";
  return Failure(std::move(failure));
}

/// The paths of layers have no symbolic links: one that does now was put there since, by somebody who would
/// like to have another folder mounted.
Result<UniqueFd> open_layer(const std::string& path) {
  auto layer = open_path(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  if (!layer.valid()) return fail_errno(fmt::format("Failed to open layer '{}'", path), errno);
  return layer;
}

/// A file system for nothing but mounts, with the bundle and a place for the root.
Result<Directory> make_mounts(const LaunchSpec& spec, const std::string& task_folder) {
  if (::mount("tmpfs", spec.mounts.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711,size=1m") !=
      0)
    return fail_errno(fmt::format("Failed to mount a file system at '{}'", spec.mounts), errno);
  DROVER_TRY(auto mounts, Directory::open(spec.mounts));
  DROVER_TRY(const auto bundle, Directory::open(task_folder + "/" + kBundle));
  DROVER_TRY(const auto tree, copy_of_mount(bundle.fd(), false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  DROVER_TRY(const auto place, mounts.make_subdirectory(kBundle));
  DROVER_CHECK_OK(MountPoints::attach(tree.get(), place.fd(), place.path()));
  DROVER_CHECK_OK(mounts.make_subdirectory(kRootMount).map([](auto&&) {}));
  return mounts;
}

/// The layers as the container's users own them. An overlay takes only what is mounted somewhere.
Status map_layers(std::vector<UniqueFd>& layers, const UserNamespace& ids, const Directory& mounts) {
  DROVER_TRY(const auto places, mounts.make_subdirectory("layers", 0700));
  for (std::size_t number = 0; number < layers.size(); ++number) {
    auto& layer = layers[number];
    auto mapped = copy_of_mount(layer.get(), false, 0, &ids);
    if (!mapped)
      return fail(mapped.error().kind,
                  fmt::format("A layer of the image cannot be mounted: {}", mapped.error().message));
    DROVER_TRY(const auto place, places.make_subdirectory(std::to_string(number)));
    DROVER_CHECK_OK(MountPoints::attach(mapped->get(), place.fd(), place.path()));
    layer = std::move(*mapped);
  }
  return {};
}

/// Layers are named by descriptor: that is short, and a path with ':' or ',' in it cannot be misread.
Status mount_overlay(const Mounting& mounting, const std::string& target) {
  const auto& plan = mounting.spec.root;
  DROVER_TRY(const auto upper, Directory::open(mounting.task_folder + "/" + kUpper));
  DROVER_TRY(const auto work, Directory::open(mounting.task_folder + "/" + kWork));
  std::vector<UniqueFd> layers;
  for (auto layer = plan.layers.rbegin(); layer != plan.layers.rend(); ++layer) {
    DROVER_TRY(auto opened, open_layer(*layer));
    layers.push_back(std::move(opened));
  }
  if (mounting.ids) {
    DROVER_CHECK_OK(map_layers(layers, *mounting.ids, mounting.mounts));
    if (::fchown(upper.fd(), mounting.owner(), mounting.owner()) != 0)  // it is the root's own folder
      return fail_errno(fmt::format("Failed to give '{}' to its user", upper.path()), errno);
  }
  std::string lower;
  for (const auto& layer : layers) lower += (lower.empty() ? "" : ":") + descriptor_path(layer.get());
  auto options =
      fmt::format("lowerdir={},upperdir={},workdir={},redirect_dir=nofollow,metacopy=off,index=off", lower,
                  descriptor_path(upper.fd()), descriptor_path(work.fd()));
  if (!plan.label.empty()) options += fmt::format(",context=\"{}\"", plan.label);
  if (options.size() > kMaxOptions)
    return fail(ErrorKind::kUnsupported,
                fmt::format("The image has {} layers, too many to mount", plan.layers.size()),
                "build it with fewer layers");
  if (::mount("overlay", target.c_str(), "overlay", 0, options.c_str()) != 0)
    return overlay_failure(errno, mounting.task_folder);
  return {};
}

Status make_read_only(int tree) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  // Private too: what the host mounts later would come in writable.
  attributes.propagation = MS_PRIVATE;
  if (::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) == 0) return {};
  auto failure = errno_error("Failed to make the host's root file system read-only for the task", errno);
  if (errno == ENOSYS) failure.hint = "--read-only without an image needs Linux 5.12 or newer";
  return Failure(std::move(failure));
}

/// The sandbox, which holds what its user puts there.
Result<UniqueFd> copy_of_sandbox(const std::string& task_folder, const UserNamespace* ids) {
  DROVER_TRY(const auto sandbox, Directory::open(task_folder + "/" + kSandbox));
  return copy_of_mount(sandbox.fd(), false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, ids);
}

/// An empty folder over the folder `place`, in which `sandbox` (when it lies below) is kept reachable; or
/// nothing at all over the file `place`.
Status hide(const std::string& root, const std::string& place, const std::string& task_folder) {
  const auto target = root + place;
  struct stat info{};
  if (::lstat(target.c_str(), &info) != 0) return {};
  if (!S_ISDIR(info.st_mode)) {
    if (::mount("/dev/null", target.c_str(), nullptr, MS_BIND, nullptr) == 0) return {};
    return fail_errno(fmt::format("Failed to hide '{}' from the task", place), errno);
  }
  if (::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0755,size=64k,nr_inodes=64") != 0)
    return fail_errno(fmt::format("Failed to hide '{}' from the task", place), errno);
  if (task_folder.starts_with(place + "/")) {
    const auto sandbox = task_folder + "/" + kSandbox;
    DROVER_TRY(const auto tree, copy_of_sandbox(task_folder, nullptr));
    DROVER_TRY(const auto inside, Directory::create(root + sandbox));
    DROVER_CHECK_OK(MountPoints::attach(tree.get(), inside.fd(), sandbox));
  }
  if (::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
              nullptr) != 0)
    return fail_errno(fmt::format("Failed to hide '{}' from the task", place), errno);
  return {};
}

Status mount_host_root(const RootPlan& plan, const std::string& task_folder, const std::string& target) {
  const UniqueFd tree(
      ::open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_RECURSIVE)));
  if (!tree.valid()) return fail_errno("Failed to copy the host's mounts", errno);
  if (plan.read_only) DROVER_CHECK_OK(make_read_only(tree.get()));
  if (::move_mount(tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail_errno("Failed to place the copy of the host's mounts", errno);
  // The runtime mounts its own over these; the host's need not even be there underneath.
  for (const char* replaced : {"/dev", "/proc", "/sys"}) ::umount2((target + replaced).c_str(), MNT_DETACH);
  // Nor are the kernel's file systems the task's anywhere else: in the folder of a chroot, say.
  DROVER_TRY(const auto kernels, kernel_mounts_in(target));
  for (auto mount = kernels.rbegin(); mount != kernels.rend(); ++mount)
    ::umount2(mount->place.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  for (const auto& folder : plan.hidden) DROVER_CHECK_OK(hide(target, folder, task_folder));
  return {};
}

std::uint64_t attributes_of(const BindPlan& bind) {
  static const std::map<std::string_view, std::uint64_t> known = {{"ro", MOUNT_ATTR_RDONLY},
                                                                  {"nosuid", MOUNT_ATTR_NOSUID},
                                                                  {"nodev", MOUNT_ATTR_NODEV},
                                                                  {"noexec", MOUNT_ATTR_NOEXEC}};
  std::uint64_t all = 0;
  for (const auto& option : bind.options)
    if (const auto found = known.find(option); found != known.end()) all |= found->second;
  return all;
}

/// At `destination` as `points` sees it.
Status mount_bind(const BindPlan& bind, const MountPoints& points, const std::string& destination) {
  const UniqueFd source(::open(bind.source.c_str(), O_PATH | O_CLOEXEC));
  struct stat info{};
  if (!source.valid() || ::fstat(source.get(), &info) != 0)
    return fail_errno(fmt::format("Failed to open '{}', which belongs into the container", bind.source),
                      errno);
  const bool recursive = std::ranges::find(bind.options, "rbind") != bind.options.end();
  const auto tree = copy_of_mount(source.get(), recursive, attributes_of(bind));
  if (!tree)
    return fail(tree.error().kind,
                fmt::format("'{}' cannot be mounted: {}", bind.source, tree.error().message));
  DROVER_TRY(const auto place,
             points.own(destination, S_ISDIR(info.st_mode) ? PlaceKind::kFolder : PlaceKind::kFile));
  return MountPoints::attach(tree->get(), place.get(), bind.destination);
}

/// What a runtime would otherwise make as root, wherever the image's links lead.
Status prepare_image_root(const LaunchSpec& spec, const MountPoints& points) {
  for (const char* folder : {"dev", "proc", "sys"}) DROVER_CHECK_OK(points.make_real_folder(folder));
  // As engines have it, one that is not in the image is made; what else is wrong with it the init says.
  (void)points.own(spec.working_directory, PlaceKind::kFolder);
  return {};
}

Status mount_sandbox(const Mounting& mounting, const MountPoints& points) {
  DROVER_TRY(const auto tree, copy_of_sandbox(mounting.task_folder, mounting.user_namespace()));
  DROVER_TRY(const auto place, points.own(kSandboxMount, PlaceKind::kFolder));
  return MountPoints::attach(tree.get(), place.get(), kSandboxMount);
}

}  // namespace

Status enter_private_mounts() {
  if (::unshare(CLONE_NEWNS) != 0) return fail_errno("Failed to create a mount namespace", errno);
  // Slave, not private: what the host unmounts must not be kept busy by a task.
  if (::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0)
    return fail_errno("Failed to detach the mount namespace from the host's", errno);
  return {};
}

Status mount_container(const LaunchSpec& spec, const std::string& task_folder) {
  const bool imageless = spec.root.layers.empty();
  DROVER_TRY(const auto mounts, make_mounts(spec, task_folder));
  const auto target = mounts.path() + "/" + kRootMount;
  Mounting mounting{spec, task_folder, mounts, std::nullopt};
  if (spec.ids.maps()) {
    DROVER_TRY(mounting.ids, UserNamespace::make(spec.ids));
  }
  DROVER_CHECK_OK(imageless ? mount_host_root(spec.root, task_folder, target)
                            : mount_overlay(mounting, target));
  DROVER_TRY(const auto points,
             MountPoints::open(target, imageless ? MountPoints::Root::kHost : MountPoints::Root::kThrownAway,
                               mounting.owner()));
  if (!imageless) DROVER_CHECK_OK(prepare_image_root(spec, points));
  DROVER_TRY(const auto devices, make_device_folder(spec, target));
  for (const auto& bind : spec.binds)
    DROVER_CHECK_OK(bind.destination.starts_with(kDeviceFolder)
                        ? mount_bind(bind, devices, bind.destination.substr(kDeviceFolder.size() - 1))
                        : mount_bind(bind, points, bind.destination));
  if (!imageless) DROVER_CHECK_OK(mount_sandbox(mounting, points));
  return mount_volumes(spec, points, mounting.user_namespace());
}

Status mount_sysfs(const LaunchSpec& spec, const std::string& network) {
  const UniqueFd own(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  const UniqueFd tasks(network.empty() ? -1 : ::open(network.c_str(), O_RDONLY | O_CLOEXEC));
  const auto enter = [](const UniqueFd& other) {
    return !other.valid() || ::setns(other.get(), CLONE_NEWNET) == 0;
  };
  if (!own.valid() || (!network.empty() && !tasks.valid()) || !enter(tasks))
    return fail_errno("Failed to enter the network of the container", errno);
  const bool mounted = ::mount("sysfs", fmt::format("{}/{}/sys", spec.mounts, kRootMount).c_str(), "sysfs",
                               MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
  const int error = errno;
  if (tasks.valid() && !enter(own)) return fail_errno("Failed to leave the network of the container", errno);
  if (!mounted) return fail_errno("Failed to mount /sys of the container", error);
  return {};
}

}  // namespace drover::container
