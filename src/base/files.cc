#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "base/open_path.h"
#include "base/remove_tree.h"

namespace drover {
namespace {

constexpr std::string_view kTemporary = ".tmp";

std::string temporary_name(std::string_view name) {
  std::random_device random;
  return fmt::format(".{}.{:08x}{}", name, random(), kTemporary);
}

bool is_temporary(std::string_view name, std::string_view prefix) {
  constexpr std::size_t kDigits = 8;
  if (!name.starts_with('.') || !name.ends_with(kTemporary)) return false;
  name = name.substr(1, name.size() - 1 - kTemporary.size());
  const auto end = name.size() - std::min(name.size(), kDigits);
  return name.starts_with(prefix) && end > 1 && name[end - 1] == '.' &&
         name.find_first_not_of("0123456789abcdef", end) == std::string_view::npos;
}

using DirStream = std::unique_ptr<DIR, decltype([](DIR* stream) { ::closedir(stream); })>;

/// Takes ownership of `fd`.
Result<std::vector<std::string>> entries(UniqueFd fd, const std::string& path) {
  DirStream stream(::fdopendir(fd.get()));
  if (!stream) return fail_errno(fmt::format("Failed to list '{}'", path), errno);
  fd.release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return fail_errno(fmt::format("Failed to list '{}'", path), errno);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status replace(int directory, const std::string& name, std::string_view content, mode_t mode,
               const std::string& shown) {
  const auto temporary = temporary_name(name);
  const auto abandon = [&](Error error) {
    ::unlinkat(directory, temporary.c_str(), 0);
    return Failure(std::move(error));
  };
  UniqueFd fd(
      ::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to create '{}'", shown), errno);
  if (auto written = write_all(fd.get(), content, shown); !written) return abandon(written.error());
  if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0)
    return abandon(errno_error(fmt::format("Failed to write '{}'", shown), errno));
  if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
    return abandon(errno_error(fmt::format("Failed to replace '{}'", shown), errno));
  if (::fsync(directory) != 0) return fail_errno(fmt::format("Failed to write '{}'", shown), errno);
  return {};
}

}  // namespace

Result<Directory> Directory::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open folder '{}'", path), errno);
  return Directory(std::move(fd), path);
}

Result<Directory> Directory::create(const std::string& path, mode_t mode) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const auto part = path.substr(0, end);
    const bool made = ::mkdir(part.c_str(), mode) == 0;
    if (made ? ::chmod(part.c_str(), mode) != 0 : errno != EEXIST)
      return fail_errno(fmt::format("Failed to create folder '{}'", part), errno);
    if (end == std::string::npos) return open(path);
  }
}

Result<Directory> Directory::subdirectory(const std::string& name, Links links) const {
  DROVER_TRY(auto fd, open_file(name, O_RDONLY | O_DIRECTORY, 0, links));
  return Directory(std::move(fd), path_ + "/" + name);
}

Result<Directory> Directory::make_subdirectory(const std::string& name, mode_t mode) const {
  const bool made = ::mkdirat(fd_.get(), name.c_str(), mode) == 0;
  if (!made && errno != EEXIST)
    return fail_errno(fmt::format("Failed to create folder '{}/{}'", path_, name), errno);
  DROVER_TRY(auto folder, subdirectory(name));
  if (made && ::fchmod(folder.fd(), mode) != 0)
    return fail_errno(fmt::format("Failed to set the mode of folder '{}/{}'", path_, name), errno);
  return folder;
}

Result<UniqueFd> Directory::open_file(const std::string& name, int flags, mode_t mode, Links links) const {
  const std::uint64_t resolve = links == Links::kRefuse ? RESOLVE_NO_SYMLINKS : RESOLVE_NO_MAGICLINKS;
  auto fd = open_path(fd_.get(), name, flags, RESOLVE_BENEATH | resolve, mode);
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open '{}/{}'", path_, name), errno);
  return fd;
}

Result<std::string> Directory::read(const std::string& name, std::uint64_t limit) const {
  DROVER_TRY(const auto fd, open_file(name, O_RDONLY));
  return read_all(fd.get(), path_ + "/" + name, limit);
}

Status Directory::write(const std::string& name, std::string_view content, mode_t mode) const {
  return replace(fd_.get(), name, content, mode, path_ + "/" + name);
}

bool Directory::exists(const std::string& name) const {
  struct stat info{};
  return ::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::vector<std::string>> Directory::list() const {
  UniqueFd fd(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to list '{}'", path_), errno);
  return entries(std::move(fd), path_);
}

Status Directory::remove_tree(const std::string& name) const {
  return drover::remove_tree(*this, name, {});
}

Status Directory::remove_unfinished(std::string_view prefix) const {
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) return fail_errno(fmt::format("Failed to look at '{}'", path_), errno);
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return {};
  DROVER_TRY(const auto names, list());
  for (const auto& name : names) {
    const bool ours = is_temporary(name, prefix) &&
                      ::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                      S_ISREG(info.st_mode);
    if (ours && ::unlinkat(fd_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
      return fail_errno(fmt::format("Failed to remove '{}/{}'", path_, name), errno);
  }
  return {};
}

Status Directory::sync() const {
  if (::fsync(fd_.get()) != 0) return fail_errno(fmt::format("Failed to write '{}'", path_), errno);
  return {};
}

Result<std::string> read_file(const std::string& path, std::uint64_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open '{}'", path), errno);
  return read_all(fd.get(), path, limit);
}

Result<std::string> read_all(int fd, const std::string& name, std::uint64_t limit) {
  std::string content;
  std::array<char, 65536> buffer;
  while (true) {
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(fmt::format("Failed to read '{}'", name), errno);
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > limit)
      return fail(ErrorKind::kExhausted, fmt::format("'{}' is larger than {} bytes", name, limit));
  }
}

Status write_all(int fd, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const auto count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(fmt::format("Failed to write '{}'", name), errno);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Status write_file(const std::string& path, std::string_view content, mode_t mode) {
  const std::filesystem::path full(path);
  const auto folder = full.has_parent_path() ? full.parent_path().string() : ".";
  DROVER_TRY(const auto directory, Directory::open(folder));
  return replace(directory.fd(), full.filename().string(), content, mode, path);
}

std::string descriptor_path(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

std::uint64_t free_space(const std::string& folder) {
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) return UINT64_MAX;
  const bool no_files = space.f_files > 0 && space.f_favail == 0;
  return no_files ? 0 : std::uint64_t{space.f_bavail} * space.f_frsize;
}

std::uint64_t disk_size(const std::string& folder) {
  struct statvfs space{};
  return ::statvfs(folder.c_str(), &space) == 0 ? std::uint64_t{space.f_blocks} * space.f_frsize : 0;
}

Result<std::string> executable_path() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail_errno("Failed to read '/proc/self/exe'", error.value());
  return path.string();
}

Result<std::string> executable_directory() {
  return executable_path().map(
      [](const std::string& path) { return std::filesystem::path(path).parent_path().string(); });
}

}  // namespace drover
