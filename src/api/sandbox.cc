#include "api/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace drover::api {
namespace {

constexpr std::size_t kMaxEntries = 10'000;

/// Paths are relative to the sandbox, also when they begin with a slash.
std::string relative(const std::string& path) {
  const auto start = path.find_first_not_of('/');
  return start == std::string::npos ? "." : path.substr(start);
}

/// An error of openat2 in words that do not tell where the sandbox lies.
Error resolution_error(const Error& error, const std::string& path) {
  if (error.kind == ErrorKind::kInvalid)
    return {ErrorKind::kInvalid, fmt::format("'{}' is not a path inside the sandbox", path),
            "give a path relative to the sandbox, without a link or '..' that leads out of it", "?path"};
  return {ErrorKind::kNotFound, fmt::format("There is no '{}' in the sandbox", path), "", "?path"};
}

Result<UniqueFd> resolve(const Directory& directory, const std::string& path, int flags) {
  if (path.find('\0') != std::string::npos)
    return fail(ErrorKind::kInvalid, "A path contains a zero byte", "", "?path");
  auto fd = directory.open_file(relative(path), flags, 0, Links::kFollowInside);
  if (!fd) return Failure(resolution_error(fd.error(), path));
  return std::move(*fd);
}

std::string kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  return S_ISLNK(mode) ? "link" : "other";
}

FileInfo describe(const std::string& name, const struct stat& info) {
  const auto modified =
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::milliseconds(info.st_mtim.tv_nsec / 1'000'000);
  return {name,
          kind_of(info.st_mode),
          static_cast<std::uint64_t>(info.st_size),
          info.st_mode & 07777u,
          info.st_uid,
          info.st_gid,
          TimePoint(modified)};
}

}  // namespace

Result<std::string> SandboxFile::read(std::uint64_t offset, std::size_t length) const {
  std::string content(length, '\0');
  std::size_t filled = 0;
  while (filled < length) {
    const auto count =
        ::pread(fd.get(), content.data() + filled, length - filled, static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("Failed to read a file of the sandbox", errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  content.resize(filled);
  return content;
}

Result<Sandbox> Sandbox::open(const std::string& folder, uid_t reader) {
  auto directory = Directory::open(folder);
  if (!directory) return fail(ErrorKind::kNotFound, "The task has no sandbox yet", "it has not started");
  return Sandbox(std::move(*directory), reader);
}

Result<std::vector<FileInfo>> Sandbox::browse(const std::string& path) const {
  DROVER_TRY(auto fd, resolve(directory_, path, O_PATH));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISDIR(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a folder", path), "read it instead", "?path");
  DROVER_TRY(const auto folder, Directory::open(descriptor_path(fd.get())));
  DROVER_TRY(auto names, folder.list());
  if (names.size() > kMaxEntries) names.resize(kMaxEntries);
  std::vector<FileInfo> files;
  for (const auto& name : names)
    if (::fstatat(folder.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
      files.push_back(describe(name, info));
  return files;
}

Result<SandboxFile> Sandbox::file(const std::string& path) const {
  DROVER_TRY(const auto found, resolve(directory_, path, O_PATH));
  struct stat info{};
  if (::fstat(found.get(), &info) != 0) return fail_errno(fmt::format("Failed to look at '{}'", path), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a regular file", path),
                S_ISDIR(info.st_mode) ? "browse it instead" : "", "?path");
  if (info.st_nlink > 1 && info.st_uid != reader_ && reader_ != 0)
    return fail(ErrorKind::kNotFound, fmt::format("There is no '{}' in the sandbox", path), "", "?path");
  // Reopening through the descriptor gets the very file that was just looked at.
  SandboxFile file{UniqueFd(::open(descriptor_path(found.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
                   static_cast<std::uint64_t>(info.st_size), info.st_ino};
  if (!file.fd.valid()) return fail_errno(fmt::format("Failed to open '{}'", path), errno);
  return file;
}

std::size_t complete_utf8(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF5 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t j = 1; j < length; ++j)
      if ((static_cast<unsigned char>(text[i + j]) & 0xC0) != 0x80) return false;
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    // Overlong forms, UTF-16 surrogates, and what lies beyond U+10FFFF (RFC 3629, 4).
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
      return false;
    i += length;
  }
  return true;
}

}  // namespace drover::api
