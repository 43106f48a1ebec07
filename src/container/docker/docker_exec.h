#pragma once

// A command that joins a container of a Docker Engine. The engine carries input and output over one
// connection; a thread carries them on to pipes, so that whoever has the process reads and writes as with any
// other (ExecProcess).

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "container/cgroup.h"
#include "container/docker/engine.h"
#include "container/exec.h"

namespace drover::container::docker {

/// `cgroup` is the container's where its processes are this machine's: without it a command that is let go
/// of is not ended but only left alone, since the engine knows no other way.
Result<std::unique_ptr<ExecProcess>> start_docker_exec(const Engine& engine, const ContainerState& container,
                                                       std::optional<Cgroup> cgroup,
                                                       const ExecRequest& request);

}  // namespace drover::container::docker
