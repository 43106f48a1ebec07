#pragma once

// Whose credentials go to a registry. Blocks; thread safe.

#include <string>

#include "base/result.h"
#include "base/users.h"
#include "image/registry/docker_config.h"

namespace drover::image {

/// What the user shows this registry, out of the configuration in his home folder, which is read with his
/// rights. Without one, or without an entry: nothing.
Result<RegistryLogin> read_login(const User& user, const std::string& host);

}  // namespace drover::image
