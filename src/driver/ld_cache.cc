#include "driver/ld_cache.h"

#include <fmt/format.h>

#include "driver/bytes.h"

namespace drover::driver {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr std::uint64_t kOldHeader = 16;
constexpr std::uint64_t kOldEntry = 12;
constexpr std::uint64_t kCountAt = 20;      // in the new header, behind its magic
constexpr std::uint64_t kStringsAt = 24;    // length of the string table
constexpr std::uint64_t kByteOrderAt = 28;  // 2: little, 3: big, 0: written before glibc 2.32
constexpr std::uint64_t kNewHeader = 48;
constexpr std::uint64_t kNewEntry = 24;  // flags, key, value, OS version, hardware capabilities (64 bits)
constexpr std::uint64_t kKeyAt = 4;
constexpr std::uint64_t kValueAt = 8;
constexpr std::size_t kLongestText = 4096;
constexpr std::uint64_t kMostText = 4 * kMaxLdCache;  // entries may share text, and so could multiply it

Failure corrupt(std::string_view what) {
  return fail(ErrorKind::kCorrupt, fmt::format("the loader cache is damaged: {}", what),
              "run ldconfig, which writes it anew");
}

/// Where the new format starts: at the front, or behind the old one, aligned to the machine's 8 or 4 bytes.
std::optional<std::string_view> new_format(std::string_view bytes) {
  if (bytes.starts_with(kNewMagic)) return bytes;
  if (!bytes.starts_with(kOldMagic)) return std::nullopt;
  for (const auto order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    const auto count = number_at<std::uint32_t>(bytes, 12, order);
    if (!count) return std::nullopt;
    const auto end = kOldHeader + *count * kOldEntry;
    for (const std::uint64_t alignment : {8, 4}) {
      const auto start = (end + alignment - 1) / alignment * alignment;
      if (start < bytes.size() && bytes.substr(static_cast<std::size_t>(start)).starts_with(kNewMagic))
        return bytes.substr(static_cast<std::size_t>(start));
    }
  }
  return std::nullopt;
}

/// How many entries there are, if read in this order the table and its strings fit in the file.
std::optional<std::uint32_t> fitting_count(std::string_view cache, ByteOrder order) {
  const auto count = number_at<std::uint32_t>(cache, kCountAt, order);
  const auto strings = number_at<std::uint32_t>(cache, kStringsAt, order);
  if (!count || !strings || cache.size() < kNewHeader) return std::nullopt;
  if (*count * kNewEntry + *strings > cache.size() - kNewHeader) return std::nullopt;
  return count;
}

std::optional<ByteOrder> byte_order(std::string_view cache) {
  if (cache.size() < kNewHeader) return std::nullopt;
  constexpr unsigned char kMask = 3;
  const auto stated = static_cast<unsigned char>(cache[kByteOrderAt]) & kMask;
  if (stated == 2) return ByteOrder::kLittle;
  if (stated == 3) return ByteOrder::kBig;
  for (const auto order : {ByteOrder::kLittle, ByteOrder::kBig})
    if (fitting_count(cache, order)) return order;
  return std::nullopt;
}

}  // namespace

Result<std::vector<LdCacheEntry>> parse_ld_cache(std::string_view bytes) {
  if (bytes.size() > kMaxLdCache) return corrupt("it is too large");
  const auto cache = new_format(bytes);
  if (!cache) return corrupt("its format is unknown");
  const auto order = byte_order(*cache);
  const auto count = order ? fitting_count(*cache, *order) : std::nullopt;
  if (!count) return corrupt("its table does not fit in it");

  std::vector<LdCacheEntry> entries;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto entry = kNewHeader + i * kNewEntry;
    const auto key = number_at<std::uint32_t>(*cache, entry + kKeyAt, *order);
    const auto value = number_at<std::uint32_t>(*cache, entry + kValueAt, *order);
    const auto name = key ? text_at(*cache, *key, kLongestText) : std::nullopt;
    const auto path = value ? text_at(*cache, *value, kLongestText) : std::nullopt;
    if (!name || !path) return corrupt(fmt::format("entry {} points outside", i));
    total += name->size() + path->size();
    if (total > kMostText) return corrupt("its entries hold too much text");
    entries.push_back({std::string(*name), std::string(*path)});
  }
  return entries;
}

}  // namespace drover::driver
