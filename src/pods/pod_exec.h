#pragma once

// A command in the container of a task that is a pod: container::ExecProcess over the API server.

#include <memory>

#include "base/result.h"
#include "container/exec.h"
#include "kube/client/config.h"
#include "pods/pod_view.h"

namespace drover::pods {

/// Blocks until it runs.
Result<std::unique_ptr<container::ExecProcess>> start_exec(const kube::ServerConfig& server,
                                                           const PodView& pod,
                                                           const container::ExecRequest& request);

}  // namespace drover::pods
