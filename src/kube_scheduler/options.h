#pragma once

// Of whoever decides, and of whoever asks what would be decided: the same.

#include "cli/cli.h"
#include "kube/scheduler/scheduler.h"

namespace drover {

inline kube::scheduler::SchedulerOptions scheduler_options(const cli::KubeClusterOptions& options,
                                                           const kube::ServerVersion& version) {
  return {.name = options.name,
          .gpu_resource = options.gpu_resource,
          .policy = placement::node_policy(options.policy).value_or(placement::NodePolicy::kPack),
          .version = version};
}

}  // namespace drover
