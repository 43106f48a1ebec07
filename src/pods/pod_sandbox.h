#pragma once

// The sandbox of a task whose pods have theirs on their nodes (node_agents.h): what it writes to its outputs
// is a copy here, in the task's folder, and everything else is asked for there. Where the sandboxes of its
// attempts are, is kept in a file of that folder.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/sandbox.h"
#include "pods/node_agents.h"

namespace drover::pods {

struct SandboxPlace {
  std::string node;
  std::string uid;  ///< the pod's

  bool operator==(const SandboxPlace&) const = default;
};

/// Of the latest attempt from now on. `task`: the task's folder. May be told again.
Status note_place(const Directory& task, const SandboxPlace& place);
/// Of all attempts, the latest last; none when nothing was noted.
std::vector<SandboxPlace> places_of(const Directory& task);

/// Those that nodes keep of it, as far as they answer: the error of one that does not. The rest goes by
/// itself.
Status remove_sandboxes(const Directory& task, NodeAgents& agents);

/// `folder`: the task's. `agents` outlives it.
std::shared_ptr<const SandboxReader> pod_sandbox(std::string folder, NodeAgents& agents);

}  // namespace drover::pods
