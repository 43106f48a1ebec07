#pragma once

// Edits of CDI devices, done to the OCI runtime configuration of a container as the interface's own library
// does them. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "cdi/specification.h"

namespace drover::cdi {

/// `config` has the parts process, linux and mounts. A device node must tell its numbers (see
/// complete_device_nodes). A hook without an environment gets a harmless one: runtimes would hand it the
/// container's own, and with it LD_PRELOAD. kUnsupported for network devices, which no runtime here can move.
Status apply_edits(const Edits& edits, nlohmann::json& config);

/// "NAME=value" in the environment of the container's process, in the place of an older one.
void set_environment(nlohmann::json& config, const std::string& assignment);

}  // namespace drover::cdi
