#pragma once

// From a reference to an image that can be unpacked: looks what lies at the path, with the rights of the
// user. Thread safe. Blocks.

#include <memory>
#include <string>

#include "base/result.h"
#include "image/contents.h"
#include "image/image_files.h"
#include "image/reader.h"
#include "image/reference.h"
#include "image/variants.h"

namespace drover::image {

struct Source {
  std::string root_folder;            ///< not "": the image is this folder, and nothing below is set
  std::unique_ptr<ImageFiles> files;  ///< where the layers of `contents` are
  Contents contents;
};

/// The images that a reference stands for; empty for one that stands for a single image, as most do.
Result<std::vector<Variant>> list_variants(const Reference& reference, const Reader& reader);

Result<Source> open_source(const Reference& reference, const Reader& reader);

}  // namespace drover::image
