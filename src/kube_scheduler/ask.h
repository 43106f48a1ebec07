#pragma once

// What `drover explain`, `plan` and `queue` say of a cluster: read with the rights of whoever asks.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"

namespace drover {

/// Answers are those of kube::ClusterAnswers, with {"warnings": […]} of what could not be read.
Result<nlohmann::json> explain_on_cluster(const cli::KubeClusterOptions& options, const std::string& pod);
/// {"starts_now": …, "pods": […]}
Result<nlohmann::json> plan_on_cluster(const cli::KubeClusterOptions& options,
                                       const std::vector<nlohmann::json>& pods);
Result<nlohmann::json> queues_on_cluster(const cli::KubeClusterOptions& options);

}  // namespace drover
