#pragma once

// `explain`, `plan` and `queue` of a Kubernetes cluster instead of a machine: their flags, and what is shown.

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/context.h"
#include "cli/task_flags.h"

namespace drover::cli {

struct OnCluster : KubeClusterOptions {
  bool asked = false;  ///< --kube
};

/// Those by which a cluster is reached and its scheduler is known.
void add_kube_cluster_flags(CLI::App& command, KubeClusterOptions& options);
/// The same, and --kube, in a group of their own; without `by_switch` another flag says that a cluster is
/// meant.
void add_on_cluster_flags(CLI::App& command, OnCluster& options, bool by_switch = true);

Result<int> explain_pod(Context& context, const OnCluster& options, const std::string& pod, bool json);
/// Of the Pods of a file, or of one that asks for what the flags say.
Result<int> plan_pods(Context& context, const OnCluster& options, const std::string& file,
                      const TaskFlags& flags, bool json);
/// As the daemon lists its queues.
Result<nlohmann::json> list_queues_of_cluster(Context& context, const OnCluster& options);

/// The pods that `drover run` with these flags would be on a cluster. kUnsupported for a flag that has no
/// meaning there.
Result<std::vector<nlohmann::json>> pods_of_flags(const TaskFlags& flags,
                                                  const std::vector<std::string>& command,
                                                  const KubeClusterOptions& cluster);

}  // namespace drover::cli
