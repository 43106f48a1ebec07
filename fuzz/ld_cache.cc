#include "driver/ld_cache.h"

#include "driver/ld_cache_edit.h"
#include "fuzz.h"

/// A cache that can be added to is read again with what was added.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const driver::LdCacheLibrary library{"libcuda.so.1", "/lib/libcuda.so.1", 0x0303};
  const auto made = driver::add_to_ld_cache(fuzz::text_of(data, size), {library});
  if (!made) {
    fuzz::require(!made.error().message.empty());
    return 0;
  }
  const auto entries = driver::parse_ld_cache(*made);
  fuzz::require(entries.has_value());
  bool found = false;
  for (const auto& entry : *entries) found = found || entry.path == library.path;
  fuzz::require(found);
  return 0;
}
