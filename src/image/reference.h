#pragma once

// How people name images. Pure: whether a path exists, and what lies there, is looked up elsewhere.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::image {

struct Reference {
  enum class Kind {
    kLayout,         ///< "oci:/folder[:tag]"
    kOciArchive,     ///< "oci-archive:/file.tar[:tag]": a tar of such a folder
    kDockerArchive,  ///< "docker-archive:/file.tar[:name[:tag]]": what `docker save` writes
    kRootFolder,     ///< "rootfs:/folder" or "dir:/folder"
    kVariantList,    ///< "variants:/list.yaml": names several images (variants.h)
    kPath,           ///< "/path[:tag]": what it is shows itself when it is opened
    kName,           ///< "redis:7" or "docker://redis:7": as registries have it (registry/name.h)
  };
  Kind kind = Kind::kPath;
  std::string path;         ///< absolute, without ':' (but for a root folder); of a name, all of it
  std::string tag;          ///< which image of several; "" when not said
  std::string digest = {};  ///< "oci:/folder:1.0@sha256:…": which of those that the tag stands for

  bool operator==(const Reference&) const = default;
};

Result<Reference> parse_reference(std::string_view text);

/// Where a name as registries have them ("tensorflow/tensorflow:latest-gpu") lies in a folder of images: in
/// the layout "<folder>/tensorflow/tensorflow", under its tag or "latest". None when it is no such name, or
/// says a digest.
std::optional<Reference> reference_in(const std::string& folder, std::string_view name);

/// Whether two names mean one image: "busybox", "busybox:latest" and "docker.io/library/busybox:latest" do.
bool same_name(std::string_view a, std::string_view b);

}  // namespace drover::image
