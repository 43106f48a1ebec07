#include "base/disk_space.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

namespace drover {
namespace {

constexpr int kMostLevels = 256;  // each is a descriptor while it is looked at
constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kEntry = 512;  // a name and an inode

using Entries = std::unique_ptr<DIR, decltype([](DIR* folder) { ::closedir(folder); })>;

Entries open_folder(int parent, const char* name) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return Entries(fd < 0 ? nullptr : ::fdopendir(fd));
}

std::uint64_t size_of(const struct stat& info) {
  const auto bytes = static_cast<std::uint64_t>(info.st_blocks) * kBlock;
  const bool is_shared = !S_ISDIR(info.st_mode) && info.st_nlink > 1;
  return std::max(is_shared ? bytes / info.st_nlink : bytes, kEntry);
}

/// False when something lies too deep.
bool add(const Entries& folder, dev_t file_system, int level, std::uint64_t& bytes) {
  if (level > kMostLevels) return false;
  while (const auto* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const auto* name = static_cast<const char*>(entry->d_name);
    struct stat info{};
    if (std::string_view(name) == "." || std::string_view(name) == ".." ||
        ::fstatat(::dirfd(folder.get()), name, &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0 ||
        info.st_dev != file_system)
      continue;
    bytes += size_of(info);
    if (S_ISDIR(info.st_mode) &&
        !add(open_folder(::dirfd(folder.get()), name), file_system, level + 1, bytes))
      return false;
  }
  return true;
}

}  // namespace

Result<std::uint64_t> disk_space_below(const Directory& folder) {
  struct stat info{};
  const auto entries = open_folder(folder.fd(), ".");
  if (!entries || ::fstat(folder.fd(), &info) != 0)
    return fail_errno(fmt::format("Failed to look into '{}'", folder.path()), errno);
  std::uint64_t bytes = 0;
  if (add(entries, info.st_dev, 0, bytes)) return bytes;
  return fail(ErrorKind::kExhausted, fmt::format("its files lie more than {} folders deep", kMostLevels));
}

std::uint64_t disk_space_of_nameless(const std::vector<pid_t>& processes, dev_t file_system) {
  std::set<ino_t> seen;
  std::uint64_t bytes = 0;
  for (const auto process : processes) {
    const auto files = open_folder(AT_FDCWD, fmt::format("/proc/{}/fd", process).c_str());
    while (const auto* entry = files ? ::readdir(files.get()) : nullptr) {
      struct stat info{};
      if (::fstatat(::dirfd(files.get()), static_cast<const char*>(entry->d_name), &info, 0) == 0 &&
          S_ISREG(info.st_mode) && info.st_nlink == 0 && info.st_dev == file_system &&
          seen.insert(info.st_ino).second)
        bytes += size_of(info);
    }
  }
  return bytes;
}

}  // namespace drover
