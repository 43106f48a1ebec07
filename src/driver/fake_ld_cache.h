#pragma once

// For tests: loader caches in the formats and byte orders of glibc. Pure.

#include <string>
#include <vector>

#include "driver/fake_elf.h"
#include "driver/ld_cache.h"

namespace drover::driver {

struct CacheFormat {
  bool big_endian = false;
  bool states_byte_order = true;  ///< since glibc 2.32
  bool old_in_front = false;      ///< the format of libc5's time, for old programs
  std::size_t old_entries = 1;
};

inline std::string fake_ld_cache(const std::vector<LdCacheEntry>& entries, const CacheFormat& format = {}) {
  ByteWriter out(format.big_endian);
  if (format.old_in_front) {
    out.text("ld.so-1.7.0");
    out.text(std::string(1, '\0'));
    out.number(format.old_entries, 4);
    out.text(std::string(format.old_entries * 12, '\0'));
    out.text(std::string((8 - out.bytes().size() % 8) % 8, '\0'));
  }
  std::string strings;
  std::vector<std::uint64_t> offsets;
  for (const auto& entry : entries)
    for (const auto& text : {entry.name, entry.path}) {
      offsets.push_back(48 + entries.size() * 24 + strings.size());
      strings += text + '\0';
    }
  out.text("glibc-ld.so.cache1.1");
  out.number(entries.size(), 4);
  out.number(strings.size(), 4);
  out.number(format.states_byte_order ? (format.big_endian ? 3 : 2) : 0, 1);
  out.text(std::string(19, '\0'));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out.number(0x0303, 4);
    out.number(offsets[2 * i], 4);
    out.number(offsets[2 * i + 1], 4);
    out.text(std::string(12, '\0'));
  }
  out.text(strings);
  return out.bytes();
}

}  // namespace drover::driver
