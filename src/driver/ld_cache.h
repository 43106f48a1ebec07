#pragma once

// The dynamic loader's cache (/etc/ld.so.cache): which library names it knows and where they are. Both
// formats that glibc writes are read (dl-cache.h of glibc): the new one alone (since 2.32), and the old one
// with the new one behind it; in either byte order. Pure; hostile bytes give an Error, never more memory than
// kMaxLdCache times a small factor.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::driver {

inline constexpr std::uint64_t kMaxLdCache = 16ULL << 20;

struct LdCacheEntry {
  std::string name;  ///< "libcuda.so.1"
  std::string path;  ///< "/usr/lib/x86_64-linux-gnu/libcuda.so.1"

  bool operator==(const LdCacheEntry&) const = default;
};

/// In the order of the cache, which the loader prefers. kCorrupt when it is no cache, or a damaged one.
Result<std::vector<LdCacheEntry>> parse_ld_cache(std::string_view bytes);

}  // namespace drover::driver
