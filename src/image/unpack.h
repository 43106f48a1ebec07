#pragma once

// One layer's tar into one folder, in overlayfs' own form. A layer is refused whole, with one sentence that
// names the entry; the caller throws the folder away then. Thread safe for different folders. Blocks.

#include "base/files.h"
#include "base/result.h"
#include "image/allowance.h"
#include "image/stream.h"

namespace drover::image {

/// `tar` is the layer, decompressed; it is read as far as its entries go. Entries are taken from the
/// allowance; the bytes are for whoever hands in the stream. `target` is an empty folder that nobody else can
/// reach. Needs root.
Status unpack_layer(ByteStream& tar, const Directory& target, Allowance& allowance);

}  // namespace drover::image
