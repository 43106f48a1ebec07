#include "base/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/acting_as.h"
#include "base/open_path.h"

namespace drover {
namespace {

constexpr std::size_t kMaxEntries = 10'000;

using DirectoryStream = std::unique_ptr<DIR, decltype([](DIR* stream) { ::closedir(stream); })>;

/// Paths are relative to the sandbox, also when they begin with a slash.
std::string relative(const std::string& path) {
  const auto start = path.find_first_not_of('/');
  return start == std::string::npos ? "." : path.substr(start);
}

/// Why a path could not be opened, in words that do not tell where the sandbox lies.
Failure refusal(int error, const std::string& path, const User& reader) {
  const auto kind = errno_error("", error).kind;
  if (kind == ErrorKind::kPermissionDenied)
    return fail(kind, fmt::format("User '{}' may not read '{}' in the sandbox", reader.name, path),
                "files of a sandbox are read with the rights of their task's user", "?path");
  if (kind == ErrorKind::kInvalid)
    return fail(kind, fmt::format("'{}' is not a path inside the sandbox", path),
                "give a path relative to the sandbox, without a link or '..' that leads out of it", "?path");
  if (kind == ErrorKind::kNotFound)
    return fail(kind, fmt::format("There is no '{}' in the sandbox", path), "", "?path");
  return fail_errno(fmt::format("Failed to open '{}' in the sandbox", path), error);
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

Result<Sandbox> Sandbox::open(const std::string& folder, User reader) {
  auto directory = Directory::open(folder);
  if (!directory) return fail(ErrorKind::kNotFound, "The task has no sandbox yet", "it has not started");
  return open(std::move(*directory), std::move(reader));
}

Result<Sandbox> Sandbox::open(Directory folder, User reader) {
  struct stat info{};
  if (::fstat(folder.fd(), &info) != 0) return fail_errno("Failed to look at the sandbox", errno);
  if (reader.uid == 0 && info.st_uid != 0)
    reader = {info.st_uid, info.st_gid, {}, std::to_string(info.st_uid), "/"};
  return Sandbox(std::move(folder), std::move(reader));
}

Result<UniqueFd> Sandbox::find(const std::string& path) const {
  if (path.find('\0') != std::string::npos)
    return fail(ErrorKind::kInvalid, "A path contains a zero byte", "", "?path");
  UniqueFd fd;
  int error = 0;
  {
    DROVER_TRY(const auto acting, ActingAs::start(reader_));
    fd = open_path(directory_.fd(), relative(path), O_PATH,
                   RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
    error = errno;
  }
  if (!fd.valid()) return refusal(error, path, reader_);
  return fd;
}

/// Through the descriptor: gets the very file that was looked at.
Result<UniqueFd> Sandbox::reopen(const UniqueFd& found, const std::string& path, int flags) const {
  int fd = -1;
  int error = 0;
  {
    DROVER_TRY(const auto acting, ActingAs::start(reader_));
    fd = ::open(descriptor_path(found.get()).c_str(), flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    error = errno;
  }
  if (fd < 0) return refusal(error, path, reader_);
  return UniqueFd(fd);
}

Result<std::vector<FileInfo>> Sandbox::browse(const std::string& path) const {
  DROVER_TRY(const auto found, find(path));
  struct stat info{};
  if (::fstat(found.get(), &info) != 0 || !S_ISDIR(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a folder", path), "read it instead", "?path");
  DROVER_TRY(auto fd, reopen(found, path, O_DIRECTORY));
  const DirectoryStream stream(::fdopendir(fd.get()));
  if (!stream) return fail_errno(fmt::format("Failed to list '{}'", path), errno);
  const int folder = fd.release();
  std::vector<FileInfo> files;
  {
    DROVER_TRY(const auto acting, ActingAs::start(reader_));
    while (const dirent* entry = files.size() < kMaxEntries ? ::readdir(stream.get()) : nullptr) {
      const std::string name = entry->d_name;
      if (name != "." && name != ".." && ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
        files.push_back(describe(name, info));
    }
  }
  std::ranges::sort(files, {}, &FileInfo::name);
  return files;
}

Result<SandboxFile> Sandbox::file(const std::string& path) const {
  DROVER_TRY(const auto found, find(path));
  struct stat info{};
  if (::fstat(found.get(), &info) != 0) return fail_errno(fmt::format("Failed to look at '{}'", path), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a regular file", path),
                S_ISDIR(info.st_mode) ? "browse it instead" : "", "?path");
  if (info.st_nlink > 1 && info.st_uid != reader_.uid && reader_.uid != 0)
    return refusal(ENOENT, path, reader_);
  DROVER_TRY(auto fd, reopen(found, path, 0));
  return SandboxFile{std::move(fd), static_cast<std::uint64_t>(info.st_size), info.st_ino};
}

SandboxContent content_of(SandboxFile file) {
  const auto shared = std::make_shared<const SandboxFile>(std::move(file));
  return {shared->size, shared->inode,
          [shared](std::uint64_t offset, std::size_t length) { return shared->read(offset, length); }};
}

Result<std::vector<FileInfo>> FolderReader::browse(const User& reader, const std::string& path) const {
  DROVER_TRY(const auto sandbox, Sandbox::open(folder_, reader));
  return sandbox.browse(path);
}

Result<SandboxContent> FolderReader::file(const User& reader, const std::string& path) const {
  DROVER_TRY(const auto sandbox, Sandbox::open(folder_, reader));
  return sandbox.file(path).map(content_of);
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

}  // namespace drover
