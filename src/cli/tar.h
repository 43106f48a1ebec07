#pragma once

// Writes tar archives piece by piece (POSIX.1-2001, "pax"): what a pipe into `tar x` needs. Pure.

#include <cstdint>
#include <string>

#include "base/units.h"

namespace drover::cli {

struct TarEntry {
  std::string path;        ///< relative, of any length
  bool folder = false;     ///< else a regular file
  std::uint64_t size = 0;  ///< of a file: so many bytes follow
  unsigned mode = 0;       ///< permission bits
  TimePoint modified_at{};
};

/// What stands before the content of an entry.
std::string tar_header(const TarEntry& entry);
/// What stands after `size` bytes of content.
std::string tar_padding(std::uint64_t size);
/// What stands at the end of the archive.
std::string tar_end();

}  // namespace drover::cli
