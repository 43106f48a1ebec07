#include "serve_cluster.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/files.h"
#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/client/server_version.h"
#include "pods/pod_containerizer.h"

namespace drover {
namespace {

/// What stands for the whole cluster where one machine would.
constexpr const char* kClusterName = "kubernetes";

class ClusterDaemon {
 public:
  ClusterDaemon(const cli::ServeOptions& options, std::unique_ptr<kube::ApiClient> api)
      : options_(options), api_(std::move(api)) {}

  Status start(Opened opened) {
    DROVER_TRY(const auto version, kube::server_version(*api_));
    const placement::Node cluster{.name = kClusterName};
    auto state = control::restore(std::move(opened.journaled), cluster);
    state.placed_by_others = true;
    engine::NodeView view;
    view.name = kClusterName;
    view.disk_bytes = disk_size(options_.state);
    pods::PodContainerizerOptions pods;
    pods.pods.journal = opened.id;
    pods.pods.scheduler = options_.scheduler;
    pods.pods.default_image = options_.default_image;
    pods.pods.host_paths = options_.allow_host_paths;
    pods.state = options_.state;
    DROVER_CHECK_OK(daemon_.open(opened.id, daemon_.ports(), std::move(opened.journal), std::move(state),
                                 std::move(view)));
    DROVER_CHECK_OK(daemon_.listen({}));
    pods.watcher = daemon_.engine().watcher();
    DROVER_TRY(auto containerizer, pods::PodContainerizer::create(*api_, std::move(pods)));
    DROVER_CHECK_OK(daemon_.begin(std::move(containerizer), fmt::format("Kubernetes {}.{}", version.major, version.minor)));
    spdlog::info("Tasks are pods of {}", api_->config().source);
    daemon_.announce();
    return {};
  }

  void run() { daemon_.run(); }

 private:
  const cli::ServeOptions& options_;
  const std::unique_ptr<kube::ApiClient> api_;
  Daemon daemon_{options_};  ///< uses what stands above
};

}  // namespace

Status run_cluster(const cli::ServeOptions& options, Opened opened) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  DROVER_TRY(auto api, kube::ApiClient::open(std::move(config)));
  ClusterDaemon daemon(options, std::move(api));
  DROVER_CHECK_OK(daemon.start(std::move(opened)));
  daemon.run();
  return {};
}

}  // namespace drover
