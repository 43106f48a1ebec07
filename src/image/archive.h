#pragma once

// Reads docker-archives: tar files with a manifest.json, as `docker save`, skopeo and buildah write them.
// Thread safe for different ImageFiles. Blocks.

#include <string>

#include "base/result.h"
#include "image/contents.h"
#include "image/image_files.h"

namespace drover::image {

inline constexpr const char* kArchiveManifest = "manifest.json";

/// `name` "" takes the only image there is; with several, they are listed. `architecture` is Go's name.
Result<Contents> read_docker_archive(const ImageFiles& files, const std::string& name,
                                     const std::string& architecture);

}  // namespace drover::image
