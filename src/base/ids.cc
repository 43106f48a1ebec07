#include "base/ids.h"

#include <fmt/ranges.h>
#include <openssl/sha.h>

#include <array>

namespace drover {
namespace {

std::uint64_t finalise(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  return finalise(finalise(a + kGolden) + b);
}

std::string uuid_of(std::uint64_t high, std::uint64_t low) {
  high = (high & ~0xf000ULL) | 0x4000ULL;
  low = (low & ~(3ULL << 62)) | (1ULL << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                     low >> 48, low & 0xffffffffffffULL);
}

std::string uuid_named(std::string_view name) {
  std::uint64_t high = 1;
  std::uint64_t low = 2;
  for (const unsigned char c : name) {
    high = mix(high, c);
    low = mix(low, c);
  }
  return uuid_of(high, low);
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace drover
