#include "image/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/files.h"
#include "image/text.h"

namespace drover::image {
namespace {

#ifdef SYS_setgroups32  // 32-bit machines have an older call with 16-bit ids beside it
constexpr long kSetGroups = SYS_setgroups32;
constexpr long kGetGroups = SYS_getgroups32;
#else
constexpr long kSetGroups = SYS_setgroups;
constexpr long kGetGroups = SYS_getgroups;
#endif

// The C library's setgroups() changes all threads; the system call changes this one only.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(kSetGroups, groups.size(), groups.data()) == 0;
}

bool set_ids(uid_t uid, gid_t gid) {
  ::setfsgid(gid);
  ::setfsuid(uid);
  // Neither call reports a failure; asking for an impossible id changes nothing and returns the present one.
  return ::setfsgid(static_cast<gid_t>(-1)) == static_cast<int>(gid) &&
         ::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(uid);
}

/// This thread acts as the user while this object lives. A thread that cannot become itself again must not
/// go on: it would do the daemon's work as somebody else.
class ActingAs {
 public:
  static Result<ActingAs> start(const User& user) {
    if (user.uid == ::geteuid()) return ActingAs(std::nullopt);
    const auto refusal = [&](int error) {
      return fail_errno(fmt::format("Failed to act as user '{}'", user.name), error);
    };
    const auto count = ::syscall(kGetGroups, 0, nullptr);
    if (count < 0) return refusal(errno);
    std::vector<gid_t> saved(static_cast<std::size_t>(count));
    if (::syscall(kGetGroups, count, saved.data()) < 0) return refusal(errno);
    if (!set_groups(user.groups)) return refusal(errno);
    ActingAs acting(std::move(saved));
    if (!set_ids(user.uid, user.gid)) return refusal(EPERM);
    return acting;
  }
  ActingAs(ActingAs&& other) noexcept : groups_(std::exchange(other.groups_, std::nullopt)) {}
  ActingAs& operator=(ActingAs&&) = delete;
  ~ActingAs() {
    if (groups_ && (!set_ids(::geteuid(), ::getegid()) || !set_groups(*groups_))) std::abort();
  }

 private:
  explicit ActingAs(std::optional<std::vector<gid_t>> groups) : groups_(std::move(groups)) {}
  std::optional<std::vector<gid_t>> groups_;  ///< of the thread itself; nullopt when nothing was changed
};

std::string identity_of(int fd, const struct stat& info) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0 || system.f_type == FUSE_SUPER_MAGIC) return "";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

}  // namespace

Result<UniqueFd> Reader::open(int folder, const std::string& path, std::uint64_t flags,
                              std::string_view what) const {
  int fd = -1;
  int error = 0;
  {
    DROVER_TRY(const auto acting, ActingAs::start(user_));
    open_how how{};
    how.flags = flags | O_CLOEXEC;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    fd = static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
    error = errno;
  }
  if (fd >= 0) return UniqueFd(fd);
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
