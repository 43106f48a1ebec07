#pragma once

// Reads OCI image layouts (image-spec, image-layout.md) in a folder or a tar: as skopeo, umoci, buildah and
// `docker buildx` write them. Every document is checked against the size and the digest that named it; layers
// are checked while they are unpacked. Thread safe for different ImageFiles. Blocks.

#include <string>

#include "base/result.h"
#include "image/contents.h"
#include "image/image_files.h"

namespace drover::image {

/// `tag` "" takes the only image there is for `architecture` (Go's name); with several, they are listed.
Result<Contents> read_layout(const ImageFiles& files, const std::string& tag,
                             const std::string& architecture);

}  // namespace drover::image
