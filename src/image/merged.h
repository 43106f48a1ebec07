#pragma once

// What a folder of an image holds, without mounting it: its layers are looked at as overlayfs would show
// them. Names are followed by descriptor from layer to layer, and never through symbolic links: an image
// cannot lead us to the host's files. Thread safe.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::image {

struct MergedEntry {
  enum class Kind { kFile, kFolder, kOther };
  std::string name;
  Kind kind = Kind::kOther;
  std::uint64_t size = 0;  ///< of a file

  bool operator==(const MergedEntry&) const = default;
};

/// The entries with a wanted name, by name. `layers` lowest first (Image::layers); `path` absolute. Empty
/// where the image has no such folder, or has a symbolic link on the way. kExhausted when there are more than
/// a few thousand.
Result<std::vector<MergedEntry>> list_merged(const std::vector<std::string>& layers, const std::string& path,
                                             const std::function<bool(std::string_view)>& wanted);

}  // namespace drover::image
