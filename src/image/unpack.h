#pragma once

// One layer's tar into one folder, in overlayfs' own form. A layer is refused whole, with one sentence that
// names the entry; the caller throws the folder away then. Thread safe for different folders. Blocks.

#include <cstdint>

#include "base/files.h"
#include "base/result.h"
#include "image/stream.h"

namespace drover::image {

struct UnpackLimits {
  std::uint64_t entries = 4'000'000;
  std::uint64_t bytes = 256ULL << 30;  ///< of the whole tar, and of any one file in it
  std::uint64_t reserved_space =
      64 << 20;  ///< what must stay free on the file system: the journal lives there too
};

/// `tar` is the layer, decompressed; it is read as far as its entries go. `target` is an empty folder that
/// nobody else can reach. Needs root.
Status unpack_layer(ByteStream& tar, const Directory& target, const UnpackLimits& limits = {});

}  // namespace drover::image
