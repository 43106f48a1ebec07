#pragma once

// Adds libraries to a dynamic loader's cache without running ldconfig: nothing of a container's file system
// is executed or searched for that, only the bytes of its cache are read. All that the cache had stays (its
// order, the hardware it is for, the extension of glibc 2.33), but for older entries of the same name and
// kind. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/elf.h"

namespace drover::driver {

struct LdCacheLibrary {
  std::string name;         ///< "libcuda.so.1"
  std::string path;         ///< absolute: "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
  std::uint32_t flags = 0;  ///< ld_cache_flags()

  bool operator==(const LdCacheLibrary&) const = default;
};

/// What a cache calls the libraries of an architecture; nullopt for one that is not known here.
std::optional<std::uint32_t> ld_cache_flags(const ElfFile& elf);

/// `cache` may be empty: then a new one is made, for a machine of this byte order. kCorrupt when it is
/// damaged, or of the other byte order.
Result<std::string> add_to_ld_cache(std::string_view cache, const std::vector<LdCacheLibrary>& libraries);

}  // namespace drover::driver
