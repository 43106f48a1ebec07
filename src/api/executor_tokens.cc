#include "api/executor_tokens.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "api/secret_file.h"
#include "base/files.h"

namespace drover::api {
namespace {

constexpr std::string_view kTokenBegin = "executor.";
constexpr std::size_t kKeyLength = 64;

}  // namespace

Result<ExecutorTokens> ExecutorTokens::open(const std::string& path) {
  const std::string what = "The key of executors' tokens";
  DROVER_TRY(auto key, read_secret_file(path, what));
  if (!key) {
    DROVER_TRY(key, random_secret());
    DROVER_CHECK_OK(write_file(path, *key, 0600));
  }
  if (key->size() != kKeyLength)
    return fail(ErrorKind::kCorrupt, fmt::format("{} '{}' is damaged", what, path),
                "remove it: executors that run are ended then, and their frameworks start them anew");
  return ExecutorTokens(std::move(*key));
}

std::string ExecutorTokens::of(const std::string& task) const {
  std::array<unsigned char, 32> digest;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(task.data()), task.size(), digest.data(), nullptr);
  auto token = fmt::format("{}{}.", kTokenBegin, task);
  for (const auto byte : digest) token += fmt::format("{:02x}", byte);
  return token;
}

std::optional<std::string> ExecutorTokens::task_of(std::string_view token) const {
  const auto dot = token.rfind('.');
  if (!token.starts_with(kTokenBegin) || dot < kTokenBegin.size() || dot == token.npos) return std::nullopt;
  std::string task(token.substr(kTokenBegin.size(), dot - kTokenBegin.size()));
  const auto right = of(task);
  if (right.size() != token.size() || CRYPTO_memcmp(right.data(), token.data(), right.size()) != 0)
    return std::nullopt;
  return task;
}

}  // namespace drover::api
