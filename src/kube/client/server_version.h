#pragma once

// Which Kubernetes an API server is of, and what it serves: what it takes in objects depends on it.

#include <compare>
#include <string_view>

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::kube {

struct ServerVersion {
  int major = 0;
  int minor = 0;

  auto operator<=>(const ServerVersion&) const = default;
};

/// Everybody may ask. While a control plane of several servers is upgraded, that of whichever answers.
Result<ServerVersion> server_version(Api& api);

/// Whether there are such objects, in this version: gates and definitions of kinds decide. Everybody may ask.
Result<bool> is_served(Api& api, const Resource& resource);

}  // namespace drover::kube
