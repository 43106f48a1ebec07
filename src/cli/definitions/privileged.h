#pragma once

// Privileged containers in definitions: who may have them is the daemon's to say, and which containers cannot
// be privileged anywhere is known without it. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/definitions/kind.h"

namespace drover::cli {

struct PrivilegedContainer {
  std::string path;
  bool is_certain = false;  ///< every daemon refuses it
  std::string message;
  std::string hint;
};

/// Those of a definition, which need not be right.
std::vector<PrivilegedContainer> privileged_containers(DefinitionKind kind, const nlohmann::json& value);

}  // namespace drover::cli
