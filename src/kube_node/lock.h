#pragma once

// What only one `drover kube node` at a time may use on a node.

#include <optional>
#include <string>

#include "base/end_signals.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"

namespace drover {

/// Held as long as it lives.
struct NodeLock {
  UniqueFd state;
  Directory kubelet;
};

/// During an upgrade the new one waits for the old one to end. It is ready by then, and looks often: pods
/// that come in between are rejected by the kubelet. Of the kubelet's folders pod-resources/ is there in
/// every container of ours. nullopt when a signal came meanwhile.
Result<std::optional<NodeLock>> lock_node(const Directory& state, const std::string& kubelet,
                                          const EndSignals& signals);

}  // namespace drover
