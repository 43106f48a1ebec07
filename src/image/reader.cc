#include "image/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>

#include "base/acting_as.h"
#include "base/files.h"
#include "base/open_path.h"
#include "image/text.h"

namespace drover::image {
namespace {

std::string identity_of(int fd, const struct stat& info) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0 || system.f_type == FUSE_SUPER_MAGIC) return "";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

}  // namespace

Result<UniqueFd> Reader::open(int folder, const std::string& path, int flags, std::string_view what) const {
  UniqueFd fd;
  int error = 0;
  {
    DROVER_TRY(const auto acting, ActingAs::start(user_));
    fd = open_path(folder, path, flags, RESOLVE_NO_MAGICLINKS);
    error = errno;
  }
  if (fd.valid()) return fd;
  auto failure = errno_error(fmt::format("Failed to open {} '{}'", what, printable(path)), error);
  if (failure.kind == ErrorKind::kPermissionDenied)
    failure.hint = fmt::format("images are read with the rights of their user: let '{}' read it", user_.name);
  return Failure(std::move(failure));
}

Result<UniqueFd> Reader::open_folder(const std::string& path) const {
  // O_PATH alone asks for no right on the folder itself; walking on to its "." asks for search.
  return open(AT_FDCWD, path + "/.", O_PATH | O_DIRECTORY, "folder");
}

Result<OpenFile> Reader::open_file(int folder, const std::string& path) const {
  // First without opening: a fifo would block, and a device might act.
  DROVER_TRY(const auto there, open(folder, path, O_PATH, "file"));
  struct stat info{};
  if (::fstat(there.get(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at '{}'", printable(path)), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a regular file", printable(path)));
  OpenFile file;
  {
    DROVER_TRY(const auto acting, ActingAs::start(user_));
    file.fd.reset(::open(descriptor_path(there.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!file.fd.valid()) {
      auto failure = errno_error(fmt::format("Failed to open file '{}'", printable(path)), errno);
      failure.hint =
          fmt::format("images are read with the rights of their user: let '{}' read it", user_.name);
      return Failure(std::move(failure));
    }
  }
  file.size = static_cast<std::uint64_t>(info.st_size);
  file.identity = identity_of(file.fd.get(), info);
  return file;
}

Result<bool> Reader::is_folder(const std::string& path) const {
  auto there = open(AT_FDCWD, path, O_PATH, "image");
  if (!there && there.error().kind == ErrorKind::kNotFound)
    there.error().hint = "check the path: it is the machine of the daemon that counts";
  if (!there) return Failure(there.error());
  struct stat info{};
  if (::fstat(there->get(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at '{}'", printable(path)), errno);
  if (S_ISDIR(info.st_mode)) return true;
  if (S_ISREG(info.st_mode)) return false;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is neither a file nor a folder", printable(path)));
}

}  // namespace drover::image
