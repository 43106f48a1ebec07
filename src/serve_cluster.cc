#include "serve_cluster.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>

#include "base/files.h"
#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/client/informer.h"
#include "kube/client/server_version.h"
#include "pods/cluster_nodes.h"
#include "pods/pod_containerizer.h"
#include "task_space.h"

namespace drover {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::minutes kListing{5};
/// What stands for the whole cluster where one machine would.
constexpr const char* kClusterName = "kubernetes";

/// Follows the nodes. Tells of all of them when any has changed.
class NodeWatch {
 public:
  using Take = std::function<void(std::vector<placement::Node>)>;

  NodeWatch(kube::Api& api, const std::string& gpu_resource, asio::io_context& context, Take take)
      : context_(context),
        take_(std::move(take)),
        nodes_(api,
               {.selection = {kube::kNodes},
                .read = [gpu_resource](const auto& node) { return pods::placement_node(node, gpu_resource); },
                .on_change =
                    [this](const kube::Change<placement::Node>& change) {
                      if (!change.before || !change.now || !(*change.before == *change.now)) tell();
                    },
                .on_trouble = [](const Error& error) { spdlog::warn("{}", to_string(error)); }}) {}

  Status wait_until_listed() const { return nodes_.wait_until_listed(kListing); }

 private:
  /// Many that change at once are told of once.
  void tell() {
    if (told_.exchange(true)) return;
    asio::post(context_, [this] {
      told_ = false;
      std::vector<placement::Node> nodes;
      for (const auto& [name, node] : nodes_.objects()) nodes.push_back(*node);
      take_(std::move(nodes));
    });
  }

  asio::io_context& context_;
  const Take take_;
  std::atomic<bool> told_ = false;
  kube::Informer<placement::Node> nodes_;
};

class ClusterDaemon {
 public:
  ClusterDaemon(const cli::ServeOptions& options, std::unique_ptr<kube::ApiClient> api, std::stop_source stop)
      : options_(options), api_(std::move(api)), stop_(std::move(stop)) {}
  /// What still waits for the API server need not.
  ~ClusterDaemon() { stop_.request_stop(); }
  ClusterDaemon(const ClusterDaemon&) = delete;
  ClusterDaemon& operator=(const ClusterDaemon&) = delete;

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
    pods.pods.helper_image = options_.helper_image;
    pods.pods.host_paths = options_.allow_host_paths;
    pods.state = options_.state;
    pods.server = api_->config();
    auto ports = daemon_.ports();
    ports.task_space = [this](const auto& tasks) { return task_space(options_.state, tasks); };
    DROVER_CHECK_OK(daemon_.open(opened.id, std::move(ports), std::move(opened.journal), std::move(state),
                                 std::move(view)));
    nodes_ =
        std::make_unique<NodeWatch>(*api_, pods.pods.gpu_resource, daemon_.context(),
                                    [this](auto nodes) { daemon_.engine().set_nodes(std::move(nodes)); });
    DROVER_CHECK_OK(nodes_->wait_until_listed());
    DROVER_CHECK_OK(daemon_.listen({}));
    pods.watcher = daemon_.engine().watcher();
    DROVER_TRY(auto containerizer, pods::PodContainerizer::create(*api_, std::move(pods)));
    DROVER_CHECK_OK(daemon_.begin(std::move(containerizer),
                                  fmt::format("Kubernetes {}.{}", version.major, version.minor)));
    spdlog::info("Tasks are pods of {}", api_->config().source);
    daemon_.announce();
    return {};
  }

  void run() { daemon_.run(); }

 private:
  const cli::ServeOptions& options_;
  const std::unique_ptr<kube::ApiClient> api_;
  std::stop_source stop_;             ///< of what is asked of it
  Daemon daemon_{options_};           ///< uses what stands above
  std::unique_ptr<NodeWatch> nodes_;  ///< goes first: it posts to the daemon
};

}  // namespace

Status run_cluster(const cli::ServeOptions& options, Opened opened) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  const std::stop_source stop;
  DROVER_TRY(auto api, kube::ApiClient::open(std::move(config), stop.get_token()));
  ClusterDaemon daemon(options, std::move(api), stop);
  DROVER_CHECK_OK(daemon.start(std::move(opened)));
  daemon.run();
  return {};
}

}  // namespace drover
