#pragma once

// What a Docker Engine is to show a registry while it pulls: the value of the header X-Registry-Auth
// (https://docs.docker.com/engine/api/, "Authentication"). Pure; thread safe.

#include <string>

#include "image/registry/docker_config.h"

namespace drover::container::docker {

/// "" for somebody who has nothing to show. `host` as in image::RegistryName.
std::string registry_auth(const image::RegistryLogin& login, const std::string& host);

}  // namespace drover::container::docker
