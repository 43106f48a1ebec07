#include "api/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/files.h"

namespace drover::api {
namespace {

Status check_private(int fd, const std::string& named) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(fmt::format("Failed to look at {}", named), errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorKind::kInvalid, named + " is not a regular file");
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return fail(ErrorKind::kPermissionDenied, named + " can be read or changed by others",
                fmt::format("chown it to {} and chmod it to 0600; then change its secrets", ::geteuid()));
  return {};
}

}  // namespace

Result<std::string> random_secret() {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1)
    return fail(ErrorKind::kUnavailable,
                "Failed to make a random secret: the kernel gives no random numbers");
  std::string secret;
  for (const auto byte : bytes) secret += fmt::format("{:02x}", byte);
  return secret;
}

Result<std::optional<std::string>> read_secret_file(const std::string& path, const std::string& what) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return std::nullopt;
  const auto named = fmt::format("{} '{}'", what, path);
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open {}", named), errno);
  DROVER_CHECK_OK(check_private(fd.get(), named));
  DROVER_TRY(auto text, read_all(fd.get(), path));
  return text;
}

}  // namespace drover::api
