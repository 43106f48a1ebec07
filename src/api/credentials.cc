#include "api/credentials.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/files.h"

namespace drover::api {
namespace {

Result<std::string> random_secret() {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1)
    return fail(ErrorKind::kUnavailable,
                "Failed to make a random secret: the kernel gives no random numbers");
  std::string secret;
  for (const auto byte : bytes) secret += fmt::format("{:02x}", byte);
  return secret;
}

Result<std::vector<Credential>> create_credentials(const std::string& path) {
  DROVER_TRY(auto secret, random_secret());
  const std::string comment = "# Who may use Drover over TCP: one user:secret a line.\n";
  DROVER_CHECK_OK(write_file(path, comment + "root:" + secret + "\n", 0600));
  return std::vector<Credential>{{"root", std::move(secret)}};
}

Status check_private(int fd, const std::string& path) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(fmt::format("Failed to look at '{}'", path), errno);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("The credentials file '{}' is not a regular file", path));
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("The credentials file '{}' can be read or changed by others", path),
                fmt::format("chown {} '{}' and chmod 0600 it; then change its secrets", ::geteuid(), path));
  return {};
}

}  // namespace

Result<std::vector<Credential>> open_credentials(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return create_credentials(path);
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open the credentials file '{}'", path), errno);
  DROVER_CHECK_OK(check_private(fd.get(), path));
  DROVER_TRY(const auto text, read_all(fd.get(), path));
  auto credentials = parse_credentials(text);
  if (!credentials)
    return Failure(context(credentials.error(), fmt::format("Failed to read the credentials in '{}'", path)));
  if (credentials->empty())
    return fail(ErrorKind::kInvalid, fmt::format("The credentials file '{}' names nobody", path),
                "remove it to get a new random secret for root");
  return credentials;
}

}  // namespace drover::api
