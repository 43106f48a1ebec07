#pragma once

// Names inside a layer, judged before anything touches the disk. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::image {

inline constexpr std::size_t kMaxPath = 4095;  ///< PATH_MAX without its NUL
inline constexpr std::size_t kMaxName = 255;   ///< NAME_MAX
inline constexpr std::size_t kMaxDepth =
    256;  ///< folders in folders; removing a tree holds one descriptor each

/// A name of an archive as a path relative to the image's root, without ".", empty parts or a leading slash;
/// "" is the root itself. Names with ".." are refused, as are ones that Linux could not hold.
Result<std::string> entry_path(std::string_view raw);

std::vector<std::string> path_parts(const std::string& path);

/// What an entry's last name means to a layer (image-spec, layer.md, "Whiteouts").
struct Marker {
  enum class Kind {
    kNone,      ///< an ordinary name
    kWhiteout,  ///< ".wh.NAME": NAME of the layers below is gone
    kOpaque,    ///< ".wh..wh..opq": everything that the layers below have in this folder is gone
    kIgnored,   ///< other ".wh..wh." names: bookkeeping of AUFS, which older Docker left in layers
  };
  Kind kind = Kind::kNone;
  std::string name;  ///< NAME of a whiteout
};

/// Refuses whiteouts of "", "." and "..". `path` comes from entry_path().
Result<Marker> marker_of(const std::string& path);

}  // namespace drover::image
