#pragma once

// Reads OCI image layouts (image-spec, image-layout.md) in a folder or a tar: as skopeo, umoci, buildah and
// `docker buildx` write them. Every document is checked against the size and the digest that named it; layers
// are checked while they are unpacked. Thread safe for different ImageFiles. Blocks.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/contents.h"
#include "image/document.h"
#include "image/image_files.h"

namespace drover::image {

/// What a tag of an index stands for: the entries of that name, and those of the indexes among them.
Result<std::vector<Descriptor>> layout_entries(const ImageFiles& files, const std::string& tag);

/// `tag` "" takes the only image there is for `architecture` (Go's name); with several, they are listed.
/// `digest` takes the one of those entries that has it.
Result<Contents> read_layout(const ImageFiles& files, const std::string& tag, const std::string& architecture,
                             const std::string& digest = "");

/// One image whose blobs are among the files: `image` is its manifest, or an index with one of it for
/// `architecture`.
Result<Contents> read_image(const ImageFiles& files, const Descriptor& image,
                            const std::string& architecture);

/// A document that a descriptor names; `what` names it in messages.
Result<std::string> read_document(const ImageFiles& files, const Descriptor& descriptor,
                                  std::string_view what);

/// The name of a blob's file in a layout. `digest` is well-formed.
std::string blob_name(const std::string& digest);

}  // namespace drover::image
