#include "kube_node/options.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kube/kubelet/container_runtime.h"

namespace drover {
namespace {

constexpr std::chrono::seconds kPatienceOfReports{5};

auto pod_uids_at(const std::string& socket) {
  return [socket] { return kube::list_pod_uids(socket, kPatienceOfReports); };
}

}  // namespace

bool is_among(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

kube::NodeReportOptions report_options(const cli::KubeNodeOptions& options, const kube::PluginConfig& config,
                                       Warn warn) {
  kube::NodeReportOptions report;
  report.node = options.node_name;
  report.driver = options.driver;
  report.labels = is_among(options.report, "labels");
  report.conditions = is_among(options.report, "conditions");
  report.events = is_among(options.report, "events");
  report.feature_file = options.feature_file;
  report.config = config;
  report.containers = [socket = kube::pod_resources_socket(options.kubelet)] {
    return kube::list_pod_resources(socket, kPatienceOfReports).map([](kube::PodResources&& told) {
      return std::move(told.containers);
    });
  };
  report.pod_uids = pod_uids_at(options.runtime_endpoint);
  report.warn = std::move(warn);
  return report;
}

kube::NodePodsOptions pods_options(const cli::KubeNodeOptions& options,
                                   std::function<Result<kube::PodResources>()> resources, Warn warn) {
  kube::NodePodsOptions pods;
  pods.node = options.node_name;
  pods.resources = std::move(resources);
  pods.pod_uids = pod_uids_at(options.runtime_endpoint);
  pods.warn = std::move(warn);
  return pods;
}

}  // namespace drover
