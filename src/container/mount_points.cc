#include "container/mount_points.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <optional>

#include "base/acting_as.h"
#include "base/open_path.h"

namespace drover::container {
namespace {

constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;
constexpr int kMostLinks = 40;  // as the kernel has it
// Which files a walk below the root meets: any, or only those of the root's own file system.
constexpr std::uint64_t kAnyFiles = RESOLVE_IN_ROOT;
constexpr std::uint64_t kOwnFiles = RESOLVE_IN_ROOT | RESOLVE_NO_XDEV;

/// A way to look at the tree: whose rights count, how far it goes, and whether what is missing may be made.
struct Walk {
  int root;
  std::uint64_t resolve;  ///< of openat2(2)
  const User* user;       ///< null: our own rights
  bool make;
  uid_t owner;  ///< of what is made with our own rights
};

/// -1, and errno says why.
UniqueFd look_up(const Walk& walk, const std::string& path, int flags) {
  return open_path(walk.root, path.empty() ? "." : path, flags | O_PATH,
                   RESOLVE_NO_MAGICLINKS | walk.resolve);
}

Failure cannot_mount_at(const std::string& destination, std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("Nothing can be mounted at '{}': {}", destination, why),
              "choose another place in the container, or make it first");
}

Failure cannot_mount_at(const std::string& destination, int error) {
  auto failure = errno_error(fmt::format("Nothing can be mounted at '{}'", destination), error);
  failure.hint = "choose another place in the container, or make it first";
  return Failure(std::move(failure));
}

int make_entry(int folder, const std::string& name, PlaceKind kind) {
  if (kind == PlaceKind::kFolder) return ::mkdirat(folder, name.c_str(), kFolderMode);
  const UniqueFd file(
      ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  return file.valid() ? 0 : -1;
}

int make_entry(const Walk& walk, int folder, const std::string& name, PlaceKind kind) {
  if (make_entry(folder, name, kind) != 0) return -1;
  if (walk.user != nullptr || walk.owner == 0) return 0;
  return ::fchownat(folder, name.c_str(), walk.owner, walk.owner, AT_SYMLINK_NOFOLLOW);
}

/// Where the link `name` leads that nothing is behind; "" when it is no link.
std::filesystem::path behind_link(int folder, const std::filesystem::path& path) {
  std::array<char, PATH_MAX> target{};
  const auto size = ::readlinkat(folder, path.filename().c_str(), target.data(), target.size());
  if (size <= 0) return {};
  std::string text(target.data(), static_cast<std::size_t>(size));
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return path.parent_path() / text;
}

/// `path` without a '/' at its end; `links` is how many that lead to nothing may be on the way. The error is
/// errno's.
tl::expected<UniqueFd, int> find_or_make(const Walk& walk, const std::filesystem::path& path, PlaceKind kind,
                                         int links = kMostLinks) {
  auto found = look_up(walk, path.string(), 0);
  if (found.valid()) return found;
  if (errno != ENOENT || !walk.make || !path.has_relative_path()) return tl::unexpected(errno);
  const auto parent = find_or_make(walk, path.parent_path(), PlaceKind::kFolder, links);
  if (!parent) return tl::unexpected(parent.error());
  if (make_entry(walk, parent->get(), path.filename().string(), kind) != 0) {
    const int error = errno;
    const auto behind = error == EEXIST ? behind_link(parent->get(), path) : std::filesystem::path();
    if (behind.empty()) return tl::unexpected(error);
    if (links == 0) return tl::unexpected(ELOOP);
    return find_or_make(walk, behind, kind, links - 1);
  }
  found = look_up(walk, path.string(), O_NOFOLLOW);
  if (!found.valid()) return tl::unexpected(errno);
  return found;
}

Result<tl::expected<UniqueFd, int>> walk_as(int root, const User* user, std::uint64_t resolve, bool make,
                                            const std::string& path, PlaceKind kind, uid_t owner = 0) {
  std::optional<ActingAs> acting;
  if (user != nullptr) {
    DROVER_TRY(auto started, ActingAs::start(*user));
    acting.emplace(std::move(started));
  }
  return find_or_make({root, resolve, user, make, owner}, path, kind);
}

Result<UniqueFd> checked(tl::expected<UniqueFd, int> place, const std::string& destination, PlaceKind kind) {
  if (!place) return cannot_mount_at(destination, place.error());
  struct stat info{};
  if (::fstat(place->get(), &info) != 0) return cannot_mount_at(destination, errno);
  if (S_ISDIR(info.st_mode) == (kind == PlaceKind::kFolder)) return std::move(*place);
  return cannot_mount_at(destination, S_ISDIR(info.st_mode)
                                          ? "there is a folder, and it is no folder that is to be mounted"
                                          : "there is no folder");
}

}  // namespace

Result<MountPoints> MountPoints::open(const std::string& root, Root kind, uid_t owner) {
  UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open '{}'", root), errno);
  return MountPoints(std::move(fd), kind, owner);
}

Status MountPoints::make_real_folder(const std::string& name) const {
  struct stat info{};
  const bool there = ::fstatat(root_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && S_ISDIR(info.st_mode)) return {};
  if ((there && ::unlinkat(root_.get(), name.c_str(), 0) != 0) ||
      ::mkdirat(root_.get(), name.c_str(), kFolderMode) != 0 ||
      ::fchownat(root_.get(), name.c_str(), owner_, owner_, AT_SYMLINK_NOFOLLOW) != 0)
    return fail_errno(fmt::format("Failed to make the folder '/{}' of the container", name), errno);
  return {};
}

Result<UniqueFd> MountPoints::own(const std::string& destination, PlaceKind kind) const {
  const bool ours = kind_ == Root::kThrownAway;
  DROVER_TRY(auto place,
             walk_as(root_.get(), nullptr, ours ? kOwnFiles : kAnyFiles, ours, destination, kind, owner_));
  if (!place && place.error() == EXDEV) {  // in what is mounted there nothing is made for us
    DROVER_TRY(place, walk_as(root_.get(), nullptr, kAnyFiles, false, destination, kind));
  }
  return checked(std::move(place), destination, kind);
}

Result<UniqueFd> MountPoints::users(const std::string& destination, PlaceKind kind, const User& user,
                                    bool make) const {
  tl::expected<UniqueFd, int> place = tl::unexpected(EXDEV);
  if (kind_ == Root::kVolume) {
    const auto inside = std::filesystem::path(destination).relative_path().string();
    DROVER_TRY(place, walk_as(root_.get(), &user, RESOLVE_BENEATH, make, inside, kind));
    if (!place && place.error() == EXDEV)
      return cannot_mount_at(destination, "a symbolic link leads out of what is mounted around it");
    return checked(std::move(place), destination, kind);
  }
  if (kind_ == Root::kThrownAway) {
    DROVER_TRY(place, walk_as(root_.get(), nullptr, kOwnFiles, true, destination, kind, owner_));
  }
  const bool is_mapped = owner_ != 0 && user.uid == 0;
  if (!place && place.error() == EXDEV) {
    DROVER_TRY(place, walk_as(root_.get(), &user, kAnyFiles, make && !is_mapped, destination, kind));
  }
  if (!place && place.error() == ENOENT && make && is_mapped) {
    // The mount gives what root of the container makes to root; the machine's root has no place in it.
    const User root{owner_, owner_, {}, "root", "/"};
    DROVER_TRY(place, walk_as(root_.get(), &root, kAnyFiles, true, destination, kind));
  }
  return checked(std::move(place), destination, kind);
}

Status MountPoints::attach(int tree, int place, const std::string& destination) {
  if (::move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0) return {};
  return cannot_mount_at(destination, errno);
}

Result<UniqueFd> copy_of_mount(int fd, bool recursive, std::uint64_t set, const UserNamespace* ids) {
  const auto depth = recursive ? static_cast<unsigned>(AT_RECURSIVE) : 0U;
  UniqueFd tree(static_cast<int>(::open_tree(
      fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_EMPTY_PATH) | depth)));
  if (!tree.valid()) return fail_errno("its mounts cannot be copied", errno);
  mount_attr attributes{};
  attributes.attr_set = set;
  if (ids != nullptr) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<std::uint64_t>(ids->fd());
  }
  attributes.propagation = MS_PRIVATE;
  if (::mount_setattr(tree.get(), "", static_cast<unsigned>(AT_EMPTY_PATH) | depth, &attributes,
                      sizeof attributes) != 0)
    return fail_errno("it cannot be restricted", errno);
  return tree;
}

}  // namespace drover::container
