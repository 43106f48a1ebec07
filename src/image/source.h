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

namespace drover::image {

struct Source {
  std::string root_folder;            ///< not "": the image is this folder, and nothing below is set
  std::unique_ptr<ImageFiles> files;  ///< where the layers of `contents` are
  Contents contents;
};

Result<Source> open_source(const Reference& reference, const Reader& reader);

}  // namespace drover::image
