#pragma once

// What the parts of `drover kube node` are told of its command line.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/config.h"
#include "kube/plugin/node_pods.h"
#include "kube/report/node_report.h"

namespace drover {

using Warn = std::function<void(const std::string& sentence)>;

bool is_among(const std::vector<std::string>& words, std::string_view word);

kube::NodeReportOptions report_options(const cli::KubeNodeOptions& options, const kube::PluginConfig& config,
                                       Warn warn);

kube::NodePodsOptions pods_options(const cli::KubeNodeOptions& options,
                                   std::function<Result<kube::PodResources>()> resources, Warn warn);

}  // namespace drover
