#pragma once

// `drover kube sandboxes`: what the control plane calls in the pod of a node's agent, to speak with it.

#include <string>

#include "base/result.h"

namespace drover {

/// Joins this process' input and output to the agent's socket below the kubelet's folder, until either ends,
/// or nothing has come for minutes.
Status relay_sandboxes(const std::string& kubelet);

}  // namespace drover
