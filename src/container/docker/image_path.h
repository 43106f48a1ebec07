#pragma once

// Where a path leads in an image whose symbolic links can only be asked for one by one: what a runtime will
// find when it makes the places of mounts, as root. Pure; thread safe.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::container::docker {

/// What lies at a path of the image all of whose folders are known to be real ones.
struct ImageEntry {
  std::string link;  ///< the target of a symbolic link, as it was written; "" for all else
};
/// nullopt: nothing is there.
using LookUp = std::function<Result<std::optional<ImageEntry>>(const std::string& path)>;

struct ImagePath {
  std::string real;  ///< without links, also where nothing is there yet
  std::vector<std::string>
      passed;  ///< every file, folder and link on the way, and `real` itself; without links too

  bool operator==(const ImagePath&) const = default;
};

/// Follows all links as within a root of its own: none leads out, ".." of the root is the root. `path` is
/// absolute. kInvalid when that takes too many steps.
Result<ImagePath> follow(const std::string& path, const LookUp& look_up);

}  // namespace drover::container::docker
