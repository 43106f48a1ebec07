#include "image/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/ids.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr std::string_view kPrefix = "sha256:";
constexpr std::size_t kHexDigits = 64;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  ::EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(::EVP_MD_CTX_new()) {
  ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr);
}

void Sha256::update(std::string_view bytes) {
  ::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int size = 0;
  ::EVP_DigestFinal_ex(context_.get(), sum.data(), &size);
  std::string digest(kPrefix);
  for (unsigned int i = 0; i < size; ++i) digest += fmt::format("{:02x}", sum[i]);
  return digest;
}

std::string sha256_of(std::string_view bytes) {
  return std::string(kPrefix) + sha256_hex(bytes);
}

Result<std::string> digest_hex(std::string_view digest) {
  const auto hex = digest.substr(std::min(kPrefix.size(), digest.size()));
  if (digest.starts_with(kPrefix) && hex.size() == kHexDigits && std::ranges::all_of(hex, is_hex))
    return std::string(hex);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a sha256 digest", printable(digest)),
              "images are checked by sha256 digests only");
}

}  // namespace drover::image
