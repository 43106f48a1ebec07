#pragma once

// Configuration for this driver in claims and device classes (`opaque`). Read is GpuConfig of NVIDIA's
// driver, as far as it asks for what is the case anyway; whatever else is refused, since a pod would run
// without what it asks for. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace drover::kube::dra {

/// `entries` is status.allocation.devices.config; entries for other drivers are theirs. kInvalid with every
/// mistake.
Status check_configuration(const nlohmann::json& entries, const std::string& driver);

}  // namespace drover::kube::dra
