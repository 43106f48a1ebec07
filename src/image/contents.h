#pragma once

// What an image consists of, read and checked but not yet unpacked: the same for every way of storing images.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "image/image.h"

namespace drover::image {

struct LayerFile {
  std::string name;     ///< of the file among the image's files
  std::string diff_id;  ///< digest of the layer's uncompressed tar, by which it is stored
  std::string digest;   ///< of the file itself; "" where the image does not say (docker-archive)
};

struct Contents {
  std::string digest;  ///< of the manifest; of the configuration (Docker's image id) in a docker-archive
  Config config;
  std::vector<LayerFile> layers;  ///< lowest first
  // The documents as they were written.
  std::string manifest_type;
  std::string manifest;  ///< "" in a docker-archive
  std::string configuration;
};

}  // namespace drover::image
