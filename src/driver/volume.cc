#include "driver/volume.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/json_text.h"
#include "driver/root.h"

namespace drover::driver {
namespace {

// A volume that has its manifest is complete: the manifest is written last, and the whole renamed after.
constexpr const char* kManifest = ".manifest.json";
constexpr const char* kLock = ".lock";
constexpr std::string_view kTemporary = ".building-";
constexpr std::string_view kPrefix = "nvidia_";
const std::string kGuarded = "guarded/";
/// Of 32 bits, for which there is no guard.
constexpr std::string_view kNarrow = "lib/";

/// What a volume is made of.
struct Content {
  const DriverFiles& files;
  std::map<std::string, GuardLibrary> guarded;  ///< by the places that they take; none: there is no guarded/
};

Content content_of(const DriverFiles& files, const Guard& guard) {
  return {files, guarded_places(files, guard).value_or(std::map<std::string, GuardLibrary>{})};
}

bool is_narrow(const std::string& destination) {
  return destination.starts_with(kNarrow);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

Result<nlohmann::json> describe_file(const std::string& source, int fd, const std::string& destination) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(fmt::format("Failed to look at '{}'", source), errno);
  return nlohmann::json{{"path", destination},
                        {"source", source},
                        {"size", info.st_size},
                        {"inode", info.st_ino},
                        {"modified", fmt::format("{}.{:09}", info.st_mtim.tv_sec, info.st_mtim.tv_nsec)}};
}

Result<UniqueFd> open_own(const GuardLibrary& library) {
  UniqueFd fd(::open(library.source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open '{}'", library.source), errno);
  return fd;
}

/// What the volume is made from: equal text, equal content. A host file that was replaced differs in size,
/// time or inode.
Result<std::string> describe(const Content& content, const Root& root) {
  const auto& files = content.files;
  auto list = nlohmann::json::array();
  for (const auto& file : files.files) {
    DROVER_TRY(const auto source, root.open_file(file.source));
    DROVER_TRY(auto described, describe_file(file.source, source.fd.get(), file.destination));
    list.push_back(std::move(described));
  }
  for (const auto& [place, library] : content.guarded) {
    DROVER_TRY(const auto source, open_own(library));
    DROVER_TRY(auto described, describe_file(library.source, source.get(), kGuarded + place));
    list.push_back(std::move(described));
  }
  auto links = nlohmann::json::object();
  for (const auto& link : files.links) links[link.path] = link.target;
  nlohmann::json manifest{{"version", files.version}, {"files", list}, {"links", links}};
  for (const auto& shared : files.shared) manifest["shared"].push_back(shared.name);
  // File names are bytes: whatever is not UTF-8 in them must not throw.
  return to_text(manifest, 1) + "\n";
}

/// Whether the volume there was made from `manifest` and still has every file in full length.
bool is_complete(const Directory& parent, const std::string& name, const std::string& manifest) {
  const auto volume = parent.subdirectory(name);
  if (!volume || volume->read(kManifest) != manifest) return false;
  const auto wanted = nlohmann::json::parse(manifest);
  for (const auto& file : wanted["files"]) {
    struct stat info{};
    const auto path = file["path"].get<std::string>();
    if (::fstatat(volume->fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size != file["size"].get<off_t>())
      return false;
  }
  return true;
}

Status copy_all(int from, int to, const std::string& name) {
  constexpr std::size_t kStep = 16ULL << 20;
  while (true) {
    const auto count = ::sendfile(to, from, nullptr, kStep);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(fmt::format("Failed to copy '{}' to the driver volume", name), errno);
    if (count == 0) return {};
  }
}

Status copy_file(int source, const DriverFile& file, const Directory& volume) {
  DROVER_TRY(const auto target, volume.open_file(file.destination, O_WRONLY | O_CREAT | O_EXCL, 0600));
  DROVER_CHECK_OK(copy_all(source, target.get(), file.source));
  if (::fchown(target.get(), 0, 0) != 0 || ::fchmod(target.get(), file.executable ? 0755 : 0644) != 0 ||
      ::fsync(target.get()) != 0)
    return fail_errno(fmt::format("Failed to write '{}/{}'", volume.path(), file.destination), errno);
  return {};
}

Status make_links(const std::vector<DriverLink>& links, const std::string& folder, const Directory& volume) {
  for (const auto& link : links)
    if (::symlinkat(link.target.c_str(), volume.fd(), (folder + link.path).c_str()) != 0)
      return fail_errno(fmt::format("Failed to link '{}/{}{}'", volume.path(), folder, link.path), errno);
  return {};
}

Status make_folder(const Directory& volume, const std::string& path) {
  DROVER_TRY(const auto folder, volume.make_subdirectory(path));
  if (::fchmod(folder.fd(), 0755) != 0)  // whatever the umask is
    return fail_errno(fmt::format("Failed to set the mode of '{}'", folder.path()), errno);
  return {};
}

Status make_place(const std::string& name, const Directory& volume) {
  return volume.open_file(name, O_WRONLY | O_CREAT | O_EXCL, 0444).map([](auto&&) {});
}

/// Every folder of the volume, parents first.
std::set<std::string> folders_of(const Content& content) {
  const auto& files = content.files;
  std::set<std::string> folders{"bin", "lib", "lib64"};
  const auto add = [&](const std::string& path) {
    for (auto folder = folder_of(path); !folder.empty(); folder = folder_of(folder)) folders.insert(folder);
  };
  for (const auto& file : files.files) add(file.destination);
  for (const auto& file : files.shared) add(file.name);
  if (content.guarded.empty()) return folders;
  for (const auto& folder : std::set(folders)) add(fmt::format("{}{}/", kGuarded, folder));
  add(kGuarded + kBehindGuard);
  for (const auto& page : kGuardPages) add(kGuarded + page.place);
  return folders;
}

/// The same files under other names, and the guard before them.
Status fill_guarded(const Content& content, const Directory& volume) {
  for (const auto& file : content.files.files) {
    const auto& name = file.destination;
    const auto library = content.guarded.find(name);
    const auto place = library == content.guarded.end() ? name : kBehindGuard + library->second.needed;
    if (!is_narrow(name) &&
        ::linkat(volume.fd(), name.c_str(), volume.fd(), (kGuarded + place).c_str(), 0) != 0)
      return fail_errno(fmt::format("Failed to link '{}/{}{}'", volume.path(), kGuarded, place), errno);
  }
  for (const auto& [place, library] : content.guarded) {
    DROVER_TRY(const auto source, open_own(library));
    DROVER_CHECK_OK(copy_file(source.get(), {library.source, kGuarded + place, false}, volume));
  }
  for (const auto& file : content.files.shared) DROVER_CHECK_OK(make_place(kGuarded + file.name, volume));
  for (const auto& page : kGuardPages) DROVER_CHECK_OK(make_place(kGuarded + page.place, volume));
  auto links = content.files.links;
  std::erase_if(links, [](const DriverLink& link) { return is_narrow(link.path); });
  return make_links(links, kGuarded, volume);
}

Status fill(const Content& content, const Root& root, const std::string& manifest, const Directory& volume) {
  const auto& files = content.files;
  if (::fchmod(volume.fd(), 0755) != 0)
    return fail_errno(fmt::format("Failed to set the mode of '{}'", volume.path()), errno);
  const auto folders = folders_of(content);
  for (const auto& folder : folders) DROVER_CHECK_OK(make_folder(volume, folder));
  for (const auto& file : files.files) {
    DROVER_TRY(const auto source, root.open_file(file.source));
    DROVER_CHECK_OK(copy_file(source.fd.get(), file, volume));
  }
  for (const auto& file : files.shared) DROVER_CHECK_OK(make_place(file.name, volume));
  DROVER_CHECK_OK(make_links(files.links, "", volume));
  if (!content.guarded.empty()) DROVER_CHECK_OK(fill_guarded(content, volume));
  for (const auto& name : folders) {
    DROVER_TRY(const auto folder, volume.subdirectory(name));
    DROVER_CHECK_OK(folder.sync());
  }
  return volume.write(kManifest, manifest);
}

Status lock(int fd, int operation, const std::string& shown) {
  while (::flock(fd, operation) != 0)
    if (errno != EINTR) return fail_errno(fmt::format("Failed to lock '{}'", shown), errno);
  return {};
}

Result<UniqueFd> lock(const Directory& parent) {
  DROVER_TRY(auto fd, parent.open_file(kLock, O_RDWR | O_CREAT, 0600));
  DROVER_CHECK_OK(lock(fd.get(), LOCK_EX, parent.path() + "/" + kLock));
  return fd;
}

/// Call with the lock held. The time of the manifest is that of the last use.
Result<std::shared_ptr<const UniqueFd>> hold(const Directory& parent, const std::string& name) {
  DROVER_TRY(auto volume, parent.open_file(name, O_RDONLY | O_DIRECTORY));
  DROVER_CHECK_OK(lock(volume.get(), LOCK_SH, parent.path() + "/" + name));
  if (::utimensat(volume.get(), kManifest, nullptr, 0) != 0)
    return fail_errno(fmt::format("Failed to write '{}/{}/{}'", parent.path(), name, kManifest), errno);
  return std::make_shared<const UniqueFd>(std::move(volume));
}

Result<bool> is_held_by_nobody(const Directory& parent, const std::string& name) {
  DROVER_TRY(const auto volume, parent.open_file(name, O_RDONLY | O_DIRECTORY));
  return ::flock(volume.get(), LOCK_EX | LOCK_NB) == 0;
}

/// All but `current`, with when they were used last; the longest unused first.
Result<std::vector<std::pair<std::int64_t, std::string>>> old_volumes(const Directory& parent,
                                                                      const std::string& current) {
  DROVER_TRY(const auto names, parent.list());
  std::vector<std::pair<std::int64_t, std::string>> old;
  for (const auto& name : names) {
    if (!name.starts_with(kPrefix) || name == current) continue;
    struct stat info{};
    const auto manifest = name + "/" + kManifest;
    const bool whole = ::fstatat(parent.fd(), manifest.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    old.emplace_back(whole ? info.st_mtim.tv_sec : 0, name);
  }
  std::ranges::sort(old);
  return old;
}

/// Of its files, as far as they can be seen.
std::uint64_t bytes_in(const Directory& parent, const std::string& name) {
  const auto manifest = parent.read(name + "/" + kManifest);
  const auto files = manifest ? nlohmann::json::parse(*manifest, nullptr, false) : nlohmann::json();
  std::uint64_t bytes = 0;
  if (!files.is_object()) return bytes;
  for (const auto& file : files.value("files", nlohmann::json::array()))
    bytes += file.value("size", std::uint64_t{0});
  return bytes;
}

/// What builders left that were killed. Call with the lock held: nobody is building.
Status remove_leftovers(const Directory& parent) {
  DROVER_TRY(const auto names, parent.list());
  for (const auto& name : names)
    if (name.starts_with(kTemporary)) DROVER_CHECK_OK(parent.remove_tree(name));
  return {};
}

/// Moves a volume that no longer fits out of the way. Containers that run may hold it, so it is kept.
Status set_aside(const Directory& parent, const std::string& name) {
  if (!parent.exists(name)) return {};
  for (int number = 1;; ++number) {
    const auto aside = fmt::format("{}.replaced-{}", name, number);
    if (parent.exists(aside)) continue;
    if (::renameat(parent.fd(), name.c_str(), parent.fd(), aside.c_str()) == 0) return {};
    return fail_errno(fmt::format("Failed to rename '{}/{}'", parent.path(), name), errno);
  }
}

Status build(const Content& content, const Root& root, const std::string& manifest, const Directory& parent,
             const std::string& name) {
  const auto temporary = std::string(kTemporary) + name;
  const auto built = [&]() -> Status {
    DROVER_TRY(const auto volume, parent.make_subdirectory(temporary));
    DROVER_CHECK_OK(fill(content, root, manifest, volume));
    DROVER_CHECK_OK(set_aside(parent, name));
    if (::renameat(parent.fd(), temporary.c_str(), parent.fd(), name.c_str()) != 0)
      return fail_errno(fmt::format("Failed to rename '{}/{}'", parent.path(), temporary), errno);
    return parent.sync();
  }();
  if (!built) (void)parent.remove_tree(temporary);  // the first error is the one that helps
  return built;
}

Status check_executable(const Directory& parent) {
  struct statvfs info{};
  if (::fstatvfs(parent.fd(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at the file system of '{}'", parent.path()), errno);
  if ((info.f_flag & ST_NOEXEC) == 0) return {};
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("'{}' lies on a file system mounted noexec, so no container could use the driver there",
                  parent.path()),
      "choose another folder with --state, or mount that file system with exec");
}

}  // namespace

Result<Volume> build_volume(const DriverFiles& files, const std::string& folder, const Guard& guard) {
  const auto name = std::string(kPrefix) + files.version;
  if (files.version.empty() || files.version.find('/') != std::string::npos)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no version of a driver", files.version));
  if (::geteuid() != 0)
    return fail(ErrorKind::kPermissionDenied, "only root can build the driver volume",
                "run 'drover serve' as root");
  DROVER_TRY(const auto root, Root::open(files.root));
  DROVER_TRY(const auto parent, Directory::create(folder));
  DROVER_CHECK_OK(check_executable(parent));
  DROVER_TRY(const auto held, lock(parent));
  DROVER_CHECK_OK(remove_leftovers(parent));
  const auto content = content_of(files, guard);
  DROVER_TRY(const auto manifest, describe(content, root));
  Volume volume{.path = parent.path() + "/" + name, .version = files.version};
  volume.reused = is_complete(parent, name, manifest);
  if (!volume.reused) DROVER_CHECK_OK(build(content, root, manifest, parent, name));
  if (!content.guarded.empty()) volume.guarded = volume.path + "/guarded";
  DROVER_TRY(volume.held, hold(parent, name));
  return volume;
}

Result<RemovedVolumes> remove_old_volumes(const std::string& folder, const std::string& version,
                                          std::uint64_t bytes,
                                          const std::function<bool(const std::string& name)>& is_used) {
  RemovedVolumes removed;
  const auto parent = Directory::open(folder);
  if (!parent && parent.error().kind == ErrorKind::kNotFound) return removed;
  if (!parent) return Failure(parent.error());
  DROVER_TRY(const auto nobody_builds, lock(*parent));
  DROVER_TRY(auto old, old_volumes(*parent, std::string(kPrefix) + version));
  for (const auto& [used, name] : old) {
    if (removed.bytes >= bytes) break;
    DROVER_TRY(const bool alone, is_held_by_nobody(*parent, name));
    if (!alone || is_used(name)) continue;
    const auto freed = bytes_in(*parent, name);
    DROVER_CHECK_OK(parent->remove_tree(name));
    removed.names.push_back(name);
    removed.bytes += freed;
  }
  return removed;
}

}  // namespace drover::driver
