#include "base/trusted_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace drover {
namespace {

Failure not_trusted(const std::filesystem::path& path, const std::string& why) {
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("'{}' {}, who could put something else in its place", path.native(), why),
              "use a folder that only root can change, such as /var/lib/drover");
}

Status check_one(const std::filesystem::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at '{}'", path.native()), errno);
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return not_trusted(path, fmt::format("belongs to user {}", info.st_uid));
  const bool others_write =
      (info.st_mode & S_IWOTH) != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0);
  if (S_ISDIR(info.st_mode) && others_write && (info.st_mode & S_ISVTX) == 0)
    return not_trusted(path, "can be written to by others");
  return {};
}

Status check_all_above(const std::filesystem::path& path) {
  std::filesystem::path part;
  for (const auto& name : path) {
    part /= name;
    DROVER_CHECK_OK(check_one(part));
  }
  return {};
}

}  // namespace

Status check_trusted(const std::string& folder) {
  std::error_code wrong;
  const auto absolute = std::filesystem::absolute(folder, wrong).lexically_normal();
  const auto real = wrong ? absolute : std::filesystem::canonical(absolute, wrong);
  if (wrong) return fail_errno(fmt::format("Failed to look at '{}'", folder), wrong.value());
  DROVER_CHECK_OK(check_all_above(real));
  return check_all_above(absolute);  // and the links, if there are any
}

}  // namespace drover
