#pragma once

// Unpacks archives from untrusted places: tar plain or compressed (gzip, bzip2, xz, zstd), zip, and single
// gzip files. Absolute paths, "..", devices, fifos and writing through links refuse the whole archive; set-id
// bits and owners are dropped. An Error of kInvalid or kExhausted says in half a sentence what is wrong with
// the archive. Thread safe.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "container/fetch/tree.h"

namespace drover::container {

struct ExtractLimits {
  std::uint64_t bytes = 1ULL << 40;
  std::uint64_t entries = 2'000'000;
  /// Bytes that come out for one that goes in, counted above `free_bytes`: text compresses 20 times, a bomb
  /// 1000 times.
  std::uint64_t expansion = 200;
  std::uint64_t free_bytes = 1ULL << 30;
};

/// `archive` is a descriptor at its start. What was unpacked before a mistake stays.
Status extract_archive(int archive, Tree& tree, const ExtractLimits& limits);
/// One compressed file to `path`.
Status extract_gzip(int file, Tree& tree, const std::string& path, const ExtractLimits& limits);

}  // namespace drover::container
