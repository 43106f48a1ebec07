#include "serve_cluster.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/end_signals.h"
#include "base/files.h"
#include "base/in_parallel.h"
#include "base/users.h"
#include "cluster_objects.h"
#include "daemon.h"
#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/client/informer.h"
#include "kube/client/server_version.h"
#include "leadership.h"
#include "pods/busy_pods.h"
#include "pods/cluster_nodes.h"
#include "pods/forecast.h"
#include "pods/node_agents.h"
#include "pods/pod_containerizer.h"
#include "pods/pod_sandbox.h"
#include "pods/pod_view.h"
#include "pods/release.h"
#include "pods/rule_keeper.h"
#include "task_space.h"

namespace drover {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::minutes kListing{5};
/// What stands for the whole cluster where one machine would.
constexpr const char* kClusterName = "kubernetes";
/// The first that serves resource.k8s.io/v1.
constexpr kube::ServerVersion kWithClaims{1, 34};
/// Where nothing else is said.
constexpr const char* kAgentNamespace = "drover";

/// Keeps objects of one kind at hand. Tells of all of them when any has changed; of many that change at once
/// it tells once.
template <typename T>
class Watch {
 public:
  using Take = std::function<void(std::vector<std::shared_ptr<const T>>)>;

  Watch(kube::Api& api, kube::Selection selection, std::function<Result<T>(const nlohmann::json&)> read,
        asio::io_context& context, Take take)
      : context_(context),
        take_(std::move(take)),
        objects_(api, {.selection = std::move(selection),
                       .read = std::move(read),
                       .on_change =
                           [this](const kube::Change<T>& change) {
                             if (!change.before || !change.now || !(*change.before == *change.now)) tell();
                           },
                       .on_trouble = [](const Error& error) { spdlog::warn("{}", to_string(error)); }}) {}

  Status wait_until_listed() const { return objects_.wait_until_listed(kListing); }

 private:
  void tell() {
    if (told_.exchange(true)) return;
    asio::post(context_, [this] {
      told_ = false;
      std::vector<std::shared_ptr<const T>> all;
      for (auto& [name, object] : objects_.objects()) all.push_back(object);
      take_(std::move(all));
    });
  }

  asio::io_context& context_;
  const Take take_;
  std::atomic<bool> told_ = false;
  kube::Informer<T> objects_;
};

/// Pods with a node that are none of our tasks.
kube::Selection pods_of_others(const std::string& journal) {
  return {.resource = kube::kPods,
          .label_selector = fmt::format("{}!={}", pods::kJournalLabel, journal),
          .field_selector = "spec.nodeName!="};
}

/// A user of whom this machine does not know has no number, and can have no tasks of ours either.
std::string name_space_of(const std::string& user, const pods::PodSettings& settings) {
  const auto found = find_user(user);
  return pods::name_space_of(user, found ? found->uid : static_cast<uid_t>(-1), settings);
}

std::map<std::string, placement::Free> sum(const std::vector<std::shared_ptr<const pods::PodUse>>& uses) {
  std::map<std::string, placement::Free> sums;
  for (const auto& use : uses) {
    if (use->node.empty()) continue;
    auto& sum = sums[use->node];
    sum.gpus += use->amounts.gpus;
    sum.milli_cpus += use->amounts.milli_cpus;
    sum.memory_bytes += use->amounts.memory_bytes;
  }
  return sums;
}

/// Where the pods of a task were, the latest last.
std::vector<pods::SandboxPlace> places_of(const std::string& state, const std::string& task) {
  const auto folder = Directory::open(fmt::format("{}/tasks/{}", state, task));
  return folder ? pods::places_of(*folder) : std::vector<pods::SandboxPlace>();
}

/// What tasks keep here, and on the nodes that have their sandboxes.
std::map<std::string, Result<std::uint64_t>> with_nodes(const std::string& state, pods::NodeAgents& agents,
                                                        std::map<std::string, Result<std::uint64_t>> space) {
  std::map<std::string, std::vector<std::pair<std::string, Result<std::uint64_t>*>>> by_node;  // by uid
  for (auto& [task, bytes] : space)
    if (bytes)
      for (const auto& place : places_of(state, task)) by_node[place.node].emplace_back(place.uid, &bytes);
  struct Asked {
    std::string node;
    std::map<std::string, std::uint64_t> sizes;
  };
  std::vector<Asked> nodes;
  for (const auto& [node, tasks] : by_node) nodes.push_back({node, {}});
  in_parallel(nodes, pods::kNodesAtOnce, [&](Asked& asked) { asked.sizes = agents.sizes(asked.node); });
  for (const auto& [node, sizes] : nodes)
    for (const auto& [uid, bytes] : by_node.at(node))
      if (const auto found = sizes.find(uid); found != sizes.end()) **bytes += found->second;
  return space;
}

class ClusterDaemon {
 public:
  /// `leadership`: null where nobody else may be there.
  ClusterDaemon(const cli::ServeOptions& options, std::unique_ptr<kube::ApiClient> api, std::stop_source stop,
                const Leadership* leadership)
      : options_(options), api_(std::move(api)), stop_(std::move(stop)) {
    if (leadership != nullptr) fenced_ = std::make_unique<FencedApi>(*api_, *leadership);
  }
  /// What still waits for the API server need not.
  ~ClusterDaemon() { stop_.request_stop(); }
  ClusterDaemon(const ClusterDaemon&) = delete;
  ClusterDaemon& operator=(const ClusterDaemon&) = delete;

  Status start(Opened opened) {
    DROVER_TRY(const auto version, kube::server_version(*api_));
    if (fenced_) {
      const auto lease = lease_of(api_->config().name_space, options_.lease);
      DROVER_CHECK_OK(pods::note_journal(*fenced_, lease.name_space, lease.name, opened.id));
    }
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
    pods.pods.node_sandboxes = options_.sandboxes == "node";
    pods.pods.claims = version >= kWithClaims;
    pods.state = options_.state;
    pods.agents = reach_agents();
    pods.server = api_->config();
    rules_ = std::make_unique<pods::RuleKeeper>(
        writer(), pods::RuleKeeperOptions{
                      .journal = opened.id,
                      .name_space_of =
                          [settings = pods.pods](const auto& user) { return name_space_of(user, settings); },
                      .log = [](const auto& line) { spdlog::warn("{}", line); }});
    auto ports = daemon_.ports();
    ports.task_space = [this](const auto& tasks) {
      return agents_ ? with_nodes(options_.state, *agents_, task_space(options_.state, tasks))
                     : task_space(options_.state, tasks);
    };
    if (busy_pods_)
      ports.busy_tasks = [this](const auto&, const auto& tasks) {
        std::map<std::string, std::vector<pods::SandboxPlace>> places;
        for (const auto& task : tasks) places[task.id] = places_of(options_.state, task.id);
        return busy_pods_->find(places);
      };
    ports.check_task = [settings = pods.pods](const auto& task, const auto& rules) {
      return pods::check_task(task, rules, settings);
    };
    const pods::ForecastOptions asked{pods.pods, version, placement::node_policy(options_.placement).value()};
    ports.forecast = [this, asked](const auto& tasks) {
      return pods::forecast(*api_, tasks, asked, wall_clock());
    };
    ports.check_rules = [settings = pods.pods](const auto& rules) {
      return pods::check_rules(rules, settings);
    };
    ports.keep_rules = [this](const auto& rules) { rules_->keep(rules); };
    ports.problems = [this, own = std::move(ports.problems)] {
      auto problems = own ? own() : std::vector<Error>{};
      if (auto trouble = rules_->trouble()) problems.push_back(std::move(*trouble));
      return problems;
    };
    DROVER_CHECK_OK(daemon_.open(opened.id, std::move(ports), std::move(opened.journal), std::move(state),
                                 std::move(view)));
    watch_cluster(opened.id, pods.pods.gpu_resource);
    DROVER_CHECK_OK(nodes_->wait_until_listed());
    DROVER_CHECK_OK(others_->wait_until_listed());
    api::ServerOptions serving;
    serving.pods_endpoint = options_.executor_endpoint;
    DROVER_CHECK_OK(daemon_.listen(std::move(serving)));
    pods.watcher = daemon_.engine().watcher();
    const auto settings = pods.pods;
    DROVER_TRY(auto containerizer, pods::PodContainerizer::create(writer(), std::move(pods)));
    DROVER_CHECK_OK(daemon_.begin(std::move(containerizer),
                                  fmt::format("Kubernetes {}.{}", version.major, version.minor)));
    if (options_.objects) objects_ = std::make_unique<ClusterObjects>(writer(), daemon_, settings);
    spdlog::info("Tasks are pods of {}", api_->config().source);
    daemon_.announce();
    return {};
  }

  void run() { daemon_.run(); }

 private:
  void watch_cluster(const std::string& journal, const std::string& gpu_resource) {
    nodes_ = std::make_unique<Watch<placement::Node>>(
        *api_, kube::Selection{kube::kNodes},
        [gpu_resource](const auto& node) { return pods::placement_node(node, gpu_resource); },
        daemon_.context(),
        [this](const auto& all) {
          std::vector<placement::Node> nodes;
          for (const auto& node : all) nodes.push_back(*node);
          daemon_.engine().set_nodes(std::move(nodes));
        });
    others_ = std::make_unique<Watch<pods::PodUse>>(
        *api_, pods_of_others(journal),
        [gpu_resource](const auto& pod) { return pods::read_use(pod, gpu_resource); }, daemon_.context(),
        [this](const auto& uses) { daemon_.engine().set_taken_by_others(sum(uses)); });
  }

  /// Null where sandboxes end with their pods.
  pods::NodeAgents* reach_agents() {
    if (options_.sandboxes != "node") return nullptr;
    auto name_space = options_.agent_namespace;
    if (name_space.empty()) name_space = api_->config().name_space;
    if (name_space.empty()) name_space = kAgentNamespace;
    agents_ = std::make_unique<pods::NodeAgents>(pods::connect_by_exec(*api_, api_->config(), name_space));
    busy_pods_ =
        std::make_unique<pods::BusyPods>(*agents_, [](const auto& line) { spdlog::warn("{}", line); });
    return agents_.get();
  }

  kube::Api& writer() {
    if (fenced_) return *fenced_;
    return *api_;
  }

  const cli::ServeOptions& options_;
  const std::unique_ptr<kube::ApiClient> api_;
  std::unique_ptr<FencedApi> fenced_;  ///< the same, for what is written
  std::stop_source stop_;              ///< of what is asked of it
  std::unique_ptr<pods::NodeAgents> agents_;
  std::unique_ptr<pods::BusyPods> busy_pods_;  ///< of one thread of the pool at a time
  std::unique_ptr<pods::RuleKeeper> rules_;
  Daemon daemon_{options_};  ///< uses what stands above
  // They go first: they post to the daemon.
  std::unique_ptr<Watch<placement::Node>> nodes_;
  std::unique_ptr<Watch<pods::PodUse>> others_;
  std::unique_ptr<ClusterObjects> objects_;
};

/// False: it was told to end before its turn came.
bool wait_for_turn(const Leadership& leadership, const EndSignals& signals, const std::string& lease) {
  constexpr std::chrono::milliseconds kPause{50};
  std::string told;
  while (!leadership.may_begin()) {
    if (signals.came_within(kPause)) return false;
    const auto holder = leadership.holder();
    if (leadership.is_leader() || holder.empty() || std::exchange(told, holder) == holder) continue;
    spdlog::info("Waiting for '{}', which has the lease '{}', to end", holder, lease);
  }
  return true;
}

Status run_as_the_only_one(const cli::ServeOptions& options, kube::ServerConfig config,
                           const Leadership* leadership) {
  DROVER_TRY(auto opened, open_state(options.state));
  const std::stop_source stop;
  DROVER_TRY(auto api, kube::ApiClient::open(std::move(config), stop.get_token()));
  ClusterDaemon daemon(options, std::move(api), stop, leadership);
  DROVER_CHECK_OK(daemon.start(std::move(opened)));
  daemon.run();
  return {};
}

}  // namespace

Status run_cluster(const cli::ServeOptions& options) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  if (options.lease.empty()) return run_as_the_only_one(options, std::move(config), nullptr);
  // A client of its own: renewals wait for nothing else.
  DROVER_TRY(const auto api, kube::ApiClient::open(config));
  std::optional<EndSignals> signals(std::in_place);
  const Leadership leadership(*api, lease_of(config.name_space, options.lease));
  if (!wait_for_turn(leadership, *signals, options.lease)) return {};
  signals.reset();  // the daemon has a way of its own to hear of them
  return run_as_the_only_one(options, std::move(config), &leadership);
}

}  // namespace drover
