#include "api/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/files.h"

namespace drover::api {
namespace {

constexpr std::size_t kKeyLength = 64;

std::string hex(const std::array<unsigned char, 32>& bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

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
  return hex(bytes);
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

Result<std::string> open_key(const std::string& path, const std::string& what, const std::string& hint) {
  DROVER_TRY(auto key, read_secret_file(path, what));
  if (!key) {
    DROVER_TRY(key, random_secret());
    DROVER_CHECK_OK(write_file(path, *key, 0600));
  }
  if (key->size() != kKeyLength)
    return fail(ErrorKind::kCorrupt, fmt::format("{} '{}' is damaged", what, path), hint);
  return *std::move(key);
}

std::string code_of(const std::string& key, std::string_view text) {
  std::array<unsigned char, 32> digest{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), nullptr);
  return hex(digest);
}

bool is_same_secret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace drover::api
