#pragma once

// Names of images as registries have them: "[HOST[:PORT]/]PATH[:TAG][@DIGEST]", with Docker's defaults:
// "redis" is "docker.io/library/redis:latest" (grammar: distribution/reference). Pure; thread safe.

#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::image {

inline constexpr const char* kDockerHub = "docker.io";

struct RegistryName {
  std::string host;        ///< "docker.io", "localhost:5000", "[::1]:5000"; lower case
  std::string repository;  ///< "library/redis"
  std::string tag;         ///< "" only where there is a digest
  std::string digest;      ///< "sha256:…", or "" when none was said; where there is one, it counts

  bool operator==(const RegistryName&) const = default;

  /// In full: "docker.io/library/redis:7". Names mean the same image when these are the same.
  std::string canonical() const;
  /// Short, as people write it: "redis:7".
  std::string familiar() const;
  /// Without tag and digest, in full.
  std::string whole_repository() const { return host + "/" + repository; }
  /// What a registry calls the image: the digest, or else the tag.
  const std::string& version() const { return digest.empty() ? tag : digest; }
};

/// parse_registry_name(name.canonical()) == name.
Result<RegistryName> parse_registry_name(std::string_view text);

}  // namespace drover::image
