#pragma once

// What an image is once it is on this machine: its configuration and the folders of its layers.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drover::image {

/// The part of an OCI image configuration that starting a container needs.
struct Config {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< in the image's order; later wins
  std::string user;                                              ///< "", "1000", "app", "1000:100"
  std::string working_directory;
  std::map<std::string, std::string> labels;
  std::string architecture;  ///< Go's name: "amd64"; "" when the image does not say
};

struct Image {
  std::string reference;  ///< as the user named it
  std::string digest;     ///< of the manifest, "sha256:…"; "" for a root folder
  Config config;          ///< empty for a root folder
  std::vector<std::string>
      layers;  ///< absolute paths for overlayfs, lowest first; a root folder is the only one
  std::shared_ptr<const void> lease;  ///< the store removes none of the layers while it lives
};

}  // namespace drover::image
