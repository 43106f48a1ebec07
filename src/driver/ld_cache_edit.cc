#include "driver/ld_cache_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "driver/bytes.h"
#include "driver/ld_cache.h"

namespace drover::driver {
namespace {

constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kHeaderSize = 48;
constexpr std::size_t kEntrySize = 24;
constexpr std::size_t kCount = 20;  // offsets in the header
constexpr std::size_t kStringsSize = 24;
constexpr std::size_t kByteOrder = 28;
constexpr std::size_t kExtension = 32;
constexpr std::uint32_t kExtensionMagic = 0xeaa42174;
constexpr std::uint32_t kHardwareTag = 1;  // of the section that lists names of hardware
constexpr std::size_t kMostSections = 64;
constexpr auto kOwnOrder = std::endian::native == std::endian::little ? ByteOrder::kLittle : ByteOrder::kBig;
constexpr unsigned char kOwnMark = kOwnOrder == ByteOrder::kLittle ? 2 : 3;  // at kByteOrder

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  return number_at<std::uint32_t>(bytes, at, kOwnOrder).value_or(0);
}
void put_word(std::string& bytes, std::size_t at, std::uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// The order of glibc's caches: as text, but runs of digits as numbers (_dl_cache_libcmp). Entries stand in
/// descending order.
int compare_names(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size()) {
    const char right = j < b.size() ? b[j] : '\0';
    if (digit(a[i])) {
      if (!digit(right)) return 1;
      std::uint64_t left_number = 0, right_number = 0;
      while (i < a.size() && digit(a[i]))
        left_number = left_number * 10 + static_cast<std::uint64_t>(a[i++] - '0');
      while (j < b.size() && digit(b[j]))
        right_number = right_number * 10 + static_cast<std::uint64_t>(b[j++] - '0');
      if (left_number != right_number) return left_number < right_number ? -1 : 1;
    } else if (digit(right)) {
      return -1;
    } else if (a[i] != right) {
      return static_cast<int>(a[i]) - static_cast<int>(right);
    } else {
      ++i;
      ++j;
    }
  }
  return j < b.size() ? -1 : 0;
}

struct CacheEntry {
  std::string bytes;  ///< kEntrySize; the offsets of an old one are those of the old file
  std::string name;
  std::string path;  ///< of a new one; "" for an old one
  bool preferred = false;
  std::size_t position = 0;  ///< before sorting
};

/// Libraries that an image brings to be preferred to the driver's (CUDA's forward compatibility).
bool is_preferred(std::string_view path) {
  return path.starts_with("/usr/local/cuda") && path.find("/compat/") != std::string_view::npos;
}

std::string empty_cache() {
  std::string cache(kHeaderSize, '\0');
  kMagic.copy(cache.data(), kMagic.size());
  cache[kByteOrder] = static_cast<char>(kOwnMark);
  return cache;
}

/// What of an old cache is in the new format, which alone is written.
std::string_view new_part(std::string_view cache) {
  const auto at = cache.find(kMagic);
  return at == std::string_view::npos ? std::string_view() : cache.substr(at);
}

Failure damaged(std::string_view why) {
  return fail(ErrorKind::kCorrupt, fmt::format("the loader's cache of the container is damaged: {}", why));
}

/// Moves the offsets of the extension, which count from the start of the file. False when it is damaged.
bool move_extension(std::string& cache, std::uint32_t shift) {
  const auto end = cache.size();
  const auto old = word_at(cache, kExtension);
  if (old == 0) return true;
  const std::size_t at = static_cast<std::uint32_t>(old + shift);
  const auto inside = [&](std::size_t from, std::size_t size) { return from <= end && end - from >= size; };
  if (!inside(at, 8) || word_at(cache, at) != kExtensionMagic) return false;
  const auto sections = word_at(cache, at + 4);
  if (sections > kMostSections || !inside(at + 8, sections * 16)) return false;
  put_word(cache, kExtension, old + shift);
  for (std::size_t section = at + 8; section < at + 8 + sections * 16; section += 16) {
    const auto moved = word_at(cache, section + 8) + shift;
    const auto size = word_at(cache, section + 12);
    if (!inside(moved, size)) return false;
    put_word(cache, section + 8, moved);
    if (word_at(cache, section) != kHardwareTag) continue;
    for (std::size_t name = moved; name + 4 <= moved + std::size_t{size}; name += 4)
      put_word(cache, name, word_at(cache, name) + shift);
  }
  return true;
}

/// The new ones, and the old ones that they do not replace.
std::vector<CacheEntry> merged(std::string_view cache, const std::vector<LdCacheEntry>& known,
                               const std::vector<LdCacheLibrary>& libraries) {
  std::vector<CacheEntry> entries;
  for (const auto& library : libraries) {
    CacheEntry entry{std::string(kEntrySize, '\0'), library.name, library.path};
    put_word(entry.bytes, 0, library.flags);
    entries.push_back(std::move(entry));
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto bytes = cache.substr(kHeaderSize + i * kEntrySize, kEntrySize);
    const bool replaced = std::ranges::any_of(libraries, [&](const LdCacheLibrary& library) {
      return library.name == known[i].name && library.flags == word_at(bytes, 0);
    });
    if (!replaced || is_preferred(known[i].path))
      entries.push_back({std::string(bytes), known[i].name, "", replaced});
  }
  return entries;
}

std::vector<CacheEntry> sorted(std::vector<CacheEntry> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].position = i;
  std::ranges::sort(entries, [](const CacheEntry& a, const CacheEntry& b) {
    const int names = compare_names(a.name, b.name);
    if (names != 0) return names > 0;
    return a.preferred != b.preferred ? a.preferred : a.position < b.position;
  });
  return entries;
}

void put_entries(std::string& cache, const std::vector<CacheEntry>& entries, std::uint32_t shift) {
  std::size_t at = kHeaderSize;
  for (const auto& entry : entries) {
    auto bytes = entry.bytes;
    if (entry.path.empty()) {
      put_word(bytes, 4, word_at(bytes, 4) + shift);
      put_word(bytes, 8, word_at(bytes, 8) + shift);
    } else {
      put_word(bytes, 4, static_cast<std::uint32_t>(cache.size()));
      cache += entry.name + '\0';
      put_word(bytes, 8, static_cast<std::uint32_t>(cache.size()));
      cache += entry.path + '\0';
    }
    bytes.copy(cache.data() + at, kEntrySize);
    at += kEntrySize;
  }
}

}  // namespace

std::optional<std::uint32_t> ld_cache_flags(const ElfFile& elf) {
  constexpr std::uint16_t kI386Machine = 3, kPower64Machine = 21, kX86Machine = 62, kArm64Machine = 183;
  if (elf.elf_class == ElfClass::k32)
    return elf.machine == kI386Machine ? std::optional<std::uint32_t>(0x0003) : std::nullopt;
  switch (elf.machine) {
    case kX86Machine:
      return 0x0303;
    case kPower64Machine:
      return 0x0503;
    case kArm64Machine:
      return 0x0a03;
    default:
      return std::nullopt;
  }
}

Result<std::string> add_to_ld_cache(std::string_view given, const std::vector<LdCacheLibrary>& libraries) {
  const auto fresh = empty_cache();
  const auto cache = given.empty() ? std::string_view(fresh) : new_part(given);
  DROVER_TRY(const auto known, parse_ld_cache(cache));
  const auto order = static_cast<unsigned char>(cache[kByteOrder]) & 3U;
  const auto entries_end = kHeaderSize + known.size() * kEntrySize;
  if ((order != 0 && order != kOwnMark) || word_at(cache, kCount) != known.size() ||
      word_at(cache, kStringsSize) > cache.size() - entries_end)
    return damaged("it is for another machine");
  const auto entries = sorted(merged(cache, known, libraries));
  const auto strings = kHeaderSize + entries.size() * kEntrySize;
  const auto shift = static_cast<std::uint32_t>(strings - entries_end);  // wraps around when it shrinks
  std::string made(cache.substr(0, kHeaderSize));
  made.resize(strings);
  made += cache.substr(entries_end);
  if (!move_extension(made, shift)) return damaged("its extension points outside");
  put_entries(made, entries, shift);
  put_word(made, kCount, static_cast<std::uint32_t>(entries.size()));
  made[kByteOrder] = static_cast<char>(kOwnMark);
  if (given.empty()) put_word(made, kStringsSize, static_cast<std::uint32_t>(made.size() - strings));
  if (made.size() > kMaxLdCache) return damaged("it is too large");
  return made;
}

}  // namespace drover::driver
