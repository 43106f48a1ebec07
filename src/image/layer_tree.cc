#include "image/layer_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/open_path.h"
#include "image/entry_path.h"
#include "image/text.h"

namespace drover::image {
namespace {

Failure refuse(const std::string& path, std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("entry '{}' {}", printable(path), why));
}

/// The file system said no, for a reason that is not the image's.
Failure io_failure(const std::string& path) {
  return fail_errno(fmt::format("Failed to write entry '{}'", printable(path)), errno);
}

UniqueFd open_folder_below(int root, const std::string& path, std::uint64_t more_resolve) {
  return open_path(root, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY,
                   RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | more_resolve);
}

std::optional<struct stat> stat_at(int parent, const std::string& name) {
  struct stat info{};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return info;
}

Status set_opaque(int folder, const std::string& shown) {
  if (::fsetxattr(folder, "trusted.overlay.opaque", "y", 1, 0) != 0) return io_failure(shown);
  return {};
}

/// Only what means the same on every machine; trusted.overlay.* would let a layer speak to overlayfs itself.
bool is_safe_attribute(const std::string& name) {
  return name == "security.capability" || (name.starts_with("user.") && !name.starts_with("user.overlay."));
}

Status set_attributes(int fd, const std::string& path, const TarEntry& entry) {
  for (const auto& [name, value] : entry.attributes) {
    if (!is_safe_attribute(name)) continue;
    if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) continue;
    if (errno == EOPNOTSUPP && name.starts_with("user.")) continue;  // tmpfs of older kernels
    return refuse(path, fmt::format("has an extended attribute '{}' that cannot be set: {}", printable(name),
                                    std::generic_category().message(errno)));
  }
  return {};
}

Result<std::pair<uid_t, gid_t>> owner_of(const std::string& path, const TarEntry& entry) {
  constexpr std::int64_t kMost = std::numeric_limits<uid_t>::max() - 1;  // the last one means "no change"
  if (entry.uid < 0 || entry.uid > kMost || entry.gid < 0 || entry.gid > kMost)
    return refuse(path, "has an owner that Linux cannot hold");
  return std::pair{static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid)};
}

/// Owner first: changing it clears setuid bits and file capabilities.
Status set_metadata(int fd, const std::string& path, const TarEntry& entry) {
  DROVER_TRY(const auto owner, owner_of(path, entry));
  if (::fchown(fd, owner.first, owner.second) != 0 || ::fchmod(fd, entry.mode) != 0) return io_failure(path);
  return set_attributes(fd, path, entry);
}

std::array<timespec, 2> times_of(const timespec& modified) {
  return {modified, modified};
}

/// A block of zeros is left out, so that a layer full of them takes no space.
bool is_hole(std::string_view block) {
  constexpr std::size_t kWorthIt = 4096;
  return block.size() >= kWorthIt && block.front() == 0 &&
         std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

Status write_content(int fd, const std::string& path, const TarEntry& entry, TarReader& reader) {
  while (true) {
    auto pulled = reader.block();
    if (!pulled) return Failure(context(pulled.error(), fmt::format("entry '{}'", printable(path))));
    auto [bytes, offset] = *pulled;
    if (bytes.empty()) break;
    if (offset > entry.size || bytes.size() > entry.size - offset)
      return refuse(path, "holds more bytes than it says");
    if (is_hole(bytes)) continue;
    while (!bytes.empty()) {
      const auto count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return io_failure(path);
      bytes.remove_prefix(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
  }
  // A file may end in a hole.
  if (::ftruncate(fd, static_cast<off_t>(entry.size)) != 0) return io_failure(path);
  return {};
}

}  // namespace

bool is_whiteout(const struct stat& info) {
  return S_ISCHR(info.st_mode) && info.st_rdev == 0;
}

Result<LayerTree::Place> LayerTree::place(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto parent_path = slash == std::string::npos ? "" : path.substr(0, slash);
  Place found;
  found.name = slash == std::string::npos ? path : path.substr(slash + 1);
  found.real_path = path;
  found.parent = open_folder_below(root_.fd(), parent_path, RESOLVE_NO_SYMLINKS);
  if (found.parent.valid()) return found;
  DROVER_TRY(found.parent, make_parent(parent_path));
  DROVER_TRY(const auto real_parent, real_path(found.parent.get(), path));
  found.real_path = real_parent.empty() ? found.name : real_parent + "/" + found.name;
  if (path_parts(found.real_path).size() > kMaxDepth)
    return refuse(path, fmt::format("lies in more than {} folders", kMaxDepth));
  return found;
}

/// The slow way to a parent: through symbolic links, and making what is missing.
Result<UniqueFd> LayerTree::make_parent(const std::string& path) {
  UniqueFd folder = open_folder_below(root_.fd(), "", 0);
  std::string prefix;
  for (const auto& part : path_parts(path)) {
    prefix += (prefix.empty() ? "" : "/") + part;
    UniqueFd next = open_folder_below(root_.fd(), prefix, 0);
    if (!next.valid() && (errno == ENOENT || errno == ENOTDIR)) {
      DROVER_CHECK_OK(make_folder(folder.get(), part, prefix));
      next = open_folder_below(root_.fd(), prefix, 0);
    }
    if (!next.valid() && (errno == EXDEV || errno == ELOOP))
      return refuse(prefix,
                    "leads out of the image through a symbolic link, and another entry is to go there");
    if (!next.valid()) return io_failure(prefix);
    folder = std::move(next);
  }
  return folder;
}

Status LayerTree::make_folder(int parent, const std::string& name, const std::string& shown) {
  const auto there = stat_at(parent, name);
  if (there && S_ISLNK(there->st_mode))
    return refuse(
        shown,
        "is a symbolic link to a folder that the layer does not have, and another entry is to go there");
  if (there && !is_whiteout(*there))
    return refuse(shown, "is not a folder, and another entry is to go into it");
  if (there && ::unlinkat(parent, name.c_str(), 0) != 0) return io_failure(shown);
  if (::mkdirat(parent, name.c_str(), 0755) != 0) return io_failure(shown);
  const UniqueFd folder(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid() || ::fchmod(folder.get(), 0755) != 0) return io_failure(shown);
  DROVER_TRY(const auto path, real_path(folder.get(), shown));
  folder_times_[path] = timespec{};
  return there ? set_opaque(folder.get(), shown) : Status{};
}

Result<std::string> LayerTree::real_path(int folder, const std::string& shown) const {
  std::error_code error;
  const auto root = std::filesystem::read_symlink(descriptor_path(root_.fd()), error).string();
  if (error) return fail_errno("Failed to look at '/proc/self/fd'", error.value());
  const auto path = std::filesystem::read_symlink(descriptor_path(folder), error).string();
  if (error || path.size() > kMaxPath || !path.starts_with(root))
    return refuse(shown, "has a path that is too long");
  return path.size() > root.size() ? path.substr(root.size() + 1) : "";
}

Status LayerTree::clear(const Place& place) {
  if (::unlinkat(place.parent.get(), place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  DROVER_CHECK_OK(root_.remove_tree(place.real_path));
  const auto inside = place.real_path + "/";
  folder_times_.erase(place.real_path);
  const auto first = folder_times_.lower_bound(inside);
  auto last = first;
  while (last != folder_times_.end() && last->first.starts_with(inside)) ++last;
  folder_times_.erase(first, last);
  return {};
}

/// A layer of nothing but folders with long names must not fill the memory.
Status LayerTree::remember_time(const std::string& real_path, const timespec& modified) {
  constexpr std::size_t kNode = 96;
  if (!folder_times_.insert_or_assign(real_path, modified).second) return {};
  remembered_ += kNode + real_path.size();
  if (remembered_ <= most_remembered_) return {};
  return refuse(real_path, "is one folder too many: the names of a layer's folders must fit into the memory");
}

Status LayerTree::add_directory(const std::string& path, const TarEntry& entry) {
  if (path.empty()) {
    DROVER_CHECK_OK(remember_time("", entry.modified));
    return set_metadata(root_.fd(), ".", entry);
  }
  DROVER_TRY(const auto at, place(path));
  const auto there = stat_at(at.parent.get(), at.name);
  if (!there || !S_ISDIR(there->st_mode)) {
    DROVER_CHECK_OK(clear(at));
    if (::mkdirat(at.parent.get(), at.name.c_str(), 0700) != 0) return io_failure(path);
  }
  const UniqueFd fd(
      ::openat(at.parent.get(), at.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return io_failure(path);
  DROVER_CHECK_OK(remember_time(at.real_path, entry.modified));
  DROVER_CHECK_OK(set_metadata(fd.get(), path, entry));
  return there && is_whiteout(*there) ? set_opaque(fd.get(), path) : Status{};
}

Status LayerTree::add_file(const std::string& path, const TarEntry& entry, TarReader& reader) {
  DROVER_TRY(const auto at, place(path));
  DROVER_CHECK_OK(clear(at));
  const UniqueFd fd(
      ::openat(at.parent.get(), at.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return io_failure(path);
  DROVER_CHECK_OK(write_content(fd.get(), path, entry, reader));
  DROVER_CHECK_OK(set_metadata(fd.get(), path, entry));
  if (::futimens(fd.get(), times_of(entry.modified).data()) != 0) return io_failure(path);
  return {};
}

Status LayerTree::add_symlink(const std::string& path, const TarEntry& entry) {
  if (entry.link_target.empty() || entry.link_target.size() > kMaxPath)
    return refuse(path, "is a symbolic link whose target Linux cannot hold");
  DROVER_TRY(const auto owner, owner_of(path, entry));
  DROVER_TRY(const auto at, place(path));
  DROVER_CHECK_OK(clear(at));
  const int parent = at.parent.get();
  const char* name = at.name.c_str();
  if (::symlinkat(entry.link_target.c_str(), parent, name) != 0 ||
      ::fchownat(parent, name, owner.first, owner.second, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::utimensat(parent, name, times_of(entry.modified).data(), AT_SYMLINK_NOFOLLOW) != 0)
    return io_failure(path);
  return {};
}

Status LayerTree::add_hard_link(const std::string& path, const std::string& target) {
  const auto slash = target.rfind('/');
  const auto name = slash == std::string::npos ? target : target.substr(slash + 1);
  const auto folder =
      open_folder_below(root_.fd(), slash == std::string::npos ? "" : target.substr(0, slash), 0);
  if (!folder.valid() && errno == EXDEV)
    return refuse(path,
                  fmt::format("is a hard link to '{}', which leads out of the image", printable(target)));
  const auto source = folder.valid() ? stat_at(folder.get(), name) : std::nullopt;
  if (!source)
    return refuse(path,
                  fmt::format("is a hard link to '{}', which the layer does not have", printable(target)));
  if (!S_ISREG(source->st_mode) && !S_ISLNK(source->st_mode) && !S_ISFIFO(source->st_mode))
    return refuse(path, fmt::format("is a hard link to '{}', which is not a file", printable(target)));
  DROVER_TRY(const auto at, place(path));
  const auto there = stat_at(at.parent.get(), at.name);
  if (there && there->st_dev == source->st_dev && there->st_ino == source->st_ino) return {};
  DROVER_CHECK_OK(clear(at));
  if (::linkat(folder.get(), name.c_str(), at.parent.get(), at.name.c_str(), 0) != 0) return io_failure(path);
  return {};
}

Status LayerTree::add_fifo(const std::string& path, const TarEntry& entry) {
  DROVER_TRY(const auto owner, owner_of(path, entry));
  DROVER_TRY(const auto at, place(path));
  DROVER_CHECK_OK(clear(at));
  const int parent = at.parent.get();
  const char* name = at.name.c_str();
  if (::mkfifoat(parent, name, 0600) != 0 ||
      ::fchownat(parent, name, owner.first, owner.second, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fchmodat(parent, name, entry.mode, 0) != 0 ||
      ::utimensat(parent, name, times_of(entry.modified).data(), AT_SYMLINK_NOFOLLOW) != 0)
    return io_failure(path);
  return {};
}

Status LayerTree::add_whiteout(const std::string& path) {
  DROVER_TRY(const auto at, place(path));
  const auto there = stat_at(at.parent.get(), at.name);
  if (there && S_ISDIR(there->st_mode)) return make_opaque(path);
  if (there) return {};
  if (::mknodat(at.parent.get(), at.name.c_str(), S_IFCHR, 0) != 0) return io_failure(path);
  return {};
}

Status LayerTree::make_opaque(const std::string& path) {
  DROVER_TRY(const auto folder, make_parent(path));
  return set_opaque(folder.get(), path);
}

Status LayerTree::finish() {
  for (const auto& [path, modified] : folder_times_) {
    const auto folder = open_folder_below(root_.fd(), path, RESOLVE_NO_SYMLINKS);
    if (!folder.valid() || ::futimens(folder.get(), times_of(modified).data()) != 0) return io_failure(path);
  }
  return {};
}

}  // namespace drover::image
