#pragma once

// What goes when the disk of the state folder has too little room and nobody uses it, since it can be had
// again: images of registries, unpacked layers of users' files, and volumes of earlier drivers. Blocks.

#include <cstdint>
#include <set>
#include <string>

#include "hardware.h"
#include "image/store.h"

namespace drover {

struct UnusedPlaces {
  std::string state;  ///< folder
  image::Store& images;
  const Hardware& hardware;
};

/// Frees so many bytes, as far as there are any, and tells the log. What the images `named` mean stays, and
/// what was pulled or used in the last minutes.
void free_unused(const UnusedPlaces& places, std::uint64_t bytes, const std::set<image::NameOfUser>& named);

/// Whether a folder of this name, wherever it is, is mounted where any process sees it, as containers have
/// it; looked up once for all names.
class MountedFolders {
 public:
  MountedFolders();
  bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  std::set<std::string> names_;
};

}  // namespace drover
