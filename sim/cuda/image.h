#pragma once

// The code of a module, of which only names are read: kernels do not run. Pure but for read_image_file().

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cuda_types.h"

namespace drover::sim::cuda {

struct Image {
  struct Global {
    std::string name;
    std::uint64_t size = 0;  ///< bytes
  };
  std::vector<std::string> kernels;
  std::vector<Global> globals;
};

/// Reads PTX: `.entry NAME`, and `.global` variables that are defined there. What is no such text is refused:
/// binaries as no image, other text as no PTX.
CUresult read_image(std::string_view text, Image& image);

/// A file's bytes, of at most 64 MiB.
CUresult read_image_file(const char* file, std::string& text);

}  // namespace drover::sim::cuda
