#include "kube_node/run.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <set>

#include "base/end_signals.h"
#include "base/files.h"
#include "base/log_once.h"
#include "base/periodic_tasks.h"
#include "base/trusted_path.h"
#include "base/units.h"
#include "cdi_file.h"
#include "hardware.h"
#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/dra/cluster.h"
#include "kube/dra/driver.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/kubelet/device_users.h"
#include "kube/kubelet/pod_resources.h"
#include "kube/plugin/gpu_sets.h"
#include "kube/plugin/node_pods.h"
#include "kube/plugin/plugin_host.h"
#include "kube/plugin/pool.h"
#include "kube/plugin/whole_gpus.h"
#include "kube/report/node_report.h"
#include "kube/rpc/log.h"
#include "kube_node/arrangements.h"
#include "kube_node/checks.h"
#include "kube_node/gpus.h"
#include "kube_node/guard.h"
#include "kube_node/hook.h"
#include "kube_node/idle.h"
#include "kube_node/lock.h"
#include "kube_node/metrics.h"
#include "kube_node/options.h"
#include "kube_node/replicas.h"
#include "kube_node/sandboxes.h"
#include "kube_node/shares.h"
#include "log_setup.h"
#include "node.h"
#include "workload/resource_fields.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr auto kOfferPause = 1s;
constexpr auto kKubeletPause = 1s;
constexpr auto kRuntimePause = 30s;
constexpr auto kSandboxPause = 10s;
constexpr auto kSharesPause = 5s;
constexpr auto kClusterPause = 5s;
constexpr auto kPatience = 5s;
constexpr auto kShortPatience = 1s;  ///< while a pod waits
constexpr auto kKillPatience = 2s;   ///< of the control plane, which reads files meanwhile
constexpr auto kHangs = 2min;        ///< what should take seconds
constexpr std::string_view kDevicePlugin = "device-plugin";
constexpr std::string_view kDra = "dra";
constexpr std::string_view kSandboxes = "sandboxes";

void info(const std::string& sentence) {
  spdlog::info("{}", sentence);
}

void warn(const std::string& sentence) {
  spdlog::warn("{}", sentence);
}

Result<kube::PluginConfig> read_config(const std::string& file) {
  if (file.empty()) return kube::PluginConfig{};
  DROVER_TRY(auto loaded, kube::read_plugin_config(file));
  for (const auto& sentence : loaded.ignored) spdlog::warn("{}", sentence);
  return std::move(loaded.config);
}

Result<std::shared_ptr<kube::Api>> find_api(const cli::KubeNodeOptions& options) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  return kube::ApiClient::open(std::move(config));
}

class Node {
 public:
  Node(const cli::KubeNodeOptions& options, Hardware hardware, kube::PluginConfig config,
       gpu::HealthWatchOptions health)
      : options_(options),
        report_(report_options(options, config, warn)),
        gpus_(std::move(hardware), std::move(health),
              [this](const gpu::HealthChange& change) { report_.changed(change); }),
        mig_strategy_(config.mig),
        pods_(pods_options(
            options, [this] { return look_at_users(kShortPatience); }, warn)),
        pool_(
            std::move(config), has_role(kDra), [this] { notify_claims(); },
            [this](const kube::DeviceQuestion& question) { return pods_.hint(question); },
            [this](const kube::GpuSet& gpus) { return sets_.add(gpus, kube::GpuSets::Clock::now()); },
            [this](const auto&... asked) { return replicas_.share(asked...); }) {
    periodic_tasks_.add("telling whether it lives", kClusterPause,
                        [this] { health_trouble_.report(serve_health()); });
    check_runtime();
    offer();
  }

  ~Node() { end_tasks(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void run(const EndSignals& signals) {
    find_users();
    std::optional<kube::PluginHost> host;
    if (has_role(kDevicePlugin)) host.emplace(pool_, host_options());
    log_inventory(gpus_.inventory());
    if (has_role(kDevicePlugin) && pool_.offers().empty()) spdlog::warn("This node has no GPU to offer yet");
    for (const auto& resource : pool_.offers())
      spdlog::info("This node offers {} {}", resource.devices.size(), resource.name);
    periodic_tasks_.add("asking the container runtime", kRuntimePause, [this] { check_runtime(); });
    periodic_tasks_.add("reaching the cluster", kClusterPause, [this] { reach_cluster(); });
    periodic_tasks_.add("listening for Prometheus", kClusterPause,
                        [this] { metrics_trouble_.report(metrics_.listen()); });
    periodic_tasks_.add("keeping what replicas bring", kRuntimePause,
                        [this] { devices_trouble_.report(replicas_.restore()); });
    periodic_tasks_.add("offering GPUs", kOfferPause, [this] { offer(); });
    periodic_tasks_.add("asking the kubelet", kKubeletPause, [this] { refresh_users(); });
    periodic_tasks_.add("serving sandboxes", kKubeletPause, [this] { sandboxes_.serve(); });
    periodic_tasks_.add("measuring sandboxes", kSandboxPause, [this] { sandboxes_.tidy(); });
    periodic_tasks_.add("keeping shared GPUs", kSharesPause, [this] { keep_arrangements(); });
    periodic_tasks_.add("keeping pods to their shares", 0ms, [this] { keep_shares(); });
    periodic_tasks_.add("telling pods their GPUs", kKubeletPause, [this] { tell_pods(); });
    while (!signals.came_within(1h)) {
    }
    spdlog::info("Stopping; pods go on with the GPUs that they have");
    end_tasks();
    end_claims();  // no claim is prepared any more when the next one reads what was
    // The last of all, for that may take a while: without a plugin the kubelet rejects pods for good, and the
    // next one serves as soon as this one has let go.
    host.reset();
  }

 private:
  void end_tasks() {
    shares_.stop_waiting();
    periodic_tasks_.end();
  }

  bool has_role(std::string_view role) const { return is_among(options_.roles, role); }

  /// Whether schedulers are told what they can choose among.
  bool chooses() const {
    return has_role(kDevicePlugin) && is_among(options_.report, "labels") && options_.feature_file.empty();
  }

  /// For whoever starts us anew when we hang.
  http::Page healthz() const {
    return {"text/plain; charset=utf-8",
            [this]() -> Result<std::string> {
              DROVER_CHECK_OK(periodic_tasks_.check(kHangs));
              return "ok\n";
            },
            true};
  }

  Status serve_health() {
    if (health_ || options_.health_address.empty()) return {};
    DROVER_TRY(const auto address, http::parse_listen_address(options_.health_address));
    DROVER_TRY(health_, http::PageServer::start(address, {{"/healthz", healthz()}}));
    return {};
  }

  kube::PluginHostOptions host_options() const {
    kube::PluginHostOptions options;
    options.folder = options_.kubelet + "/device-plugins";
    options.info = info;
    options.warn = warn;
    return options;
  }

  kube::dra::DriverOptions driver_options() {
    kube::dra::DriverOptions options;
    options.driver = options_.driver;
    options.node = options_.node_name;
    options.kubelet_folder = options_.kubelet;
    options.cdi_folder = options_.cdi_folder;
    options.sharing = options_.claim_sharing == "memory"  ? kube::dra::Sharing::kMemory
                      : options_.claim_sharing == "share" ? kube::dra::Sharing::kShare
                                                          : kube::dra::Sharing::kWhole;
    options.share_by = workload::parse_share_by(options_.share_by).value_or(workload::ShareBy::kAuto);
    options.info = info;
    options.warn = warn;
    options.prepared = [this](auto taken) { metrics_.prepared(taken); };
    options.take = [this](const std::set<std::string>& uuids) -> Status {
      DROVER_CHECK_OK(pool_.claim(uuids));
      return arrangements_->make_way(uuids);
    };
    return options;
  }

  share::HostShares::Options share_programs() {
    return {options_.state, [this] { return gpus_.sharing_programs(); }, warn};
  }

  /// Who has what by limits is known only when the kubelet has told.
  void keep_arrangements() {
    const auto kept = arrangements_->keep();
    const auto dropped =
        users_known_ ? arrangements_->drop_unused([this] { return pool_.holders(); }) : Status();
    arrangements_trouble_.report(kept ? dropped : kept);
  }

  /// What an earlier process gave away, before anybody is given anything: containers go on without us.
  void find_users() {
    replicas_trouble_.report(replicas_.take_up());
    const auto claimed = kube::dra::gpus_left_in_use(driver_options(), gpus_.inventory());
    if (claimed)
      pool_.found_claimed(*claimed);
    else
      warn(to_string(claimed.error()));
    refresh_users();
  }

  void check_runtime() {
    const auto runtime = kube::ask_runtime(options_.runtime_endpoint, kPatience);
    const auto fitness = runtime ? fitness_of(*runtime) : Failure(runtime.error());
    runtime_trouble_.report(fitness);
    const std::lock_guard lock(mutex_);
    if (runtime) cdi_ = runtime->cdi;
    runtime_words_ = fitness ? "" : to_string(fitness.error());
  }

  /// Tells both roles what the GPUs are like, and what the other one has given away; and the cluster. One
  /// thread's at a time.
  void offer() {
    kube::PluginDevices devices;
    auto missing = gpus_.missing_files();
    auto given_to_nobody = missing;
    if (has_role(kDevicePlugin)) {
      devices = plugin_devices();
      auto facts = gpus_.pool_facts(devices, cdi_);
      if (!facts.nodes.empty()) cdi_file_.keep(gpus_.plugin_specification(devices));
      given_to_nobody.insert(facts.troubles.begin(), facts.troubles.end());
      pool_.update(std::move(facts));
    }
    given_trouble_.report(
        check_given(given_to_nobody, gpus_.inventory().devices.size() + devices.parts.size()));
    {
      const std::lock_guard lock(mutex_);
      missing_ = std::move(missing);
      report_.update(state(std::move(devices)));
    }
    notify_claims();
  }

  /// What the GPUs are like, and what limits have of them now: the pool calls this before it gives one away.
  void notify_claims() {
    const std::lock_guard lock(mutex_);
    if (!driver_) return;
    auto view = gpus_.view();
    hindrances_.add(pool_.holders(), missing_, wall_clock(), view);
    driver_->update(std::move(view));
  }

  /// MIG devices only when it is known which of them are made for claims.
  kube::PluginDevices plugin_devices() {
    Result<std::set<gpu::MigPart>> made;
    if (has_role(kDra) && cdi_ == kube::CdiSupport::kYes) {
      const std::lock_guard lock(mutex_);
      made = driver_ ? driver_->mig_instances() : fail(ErrorKind::kUnavailable, "claims are not served yet");
    }
    auto devices = gpus_.plugin_devices(made.value_or(std::set<gpu::MigPart>()),
                                        made ? mig_strategy_ : kube::MigStrategy::kNone);
    mig_trouble_.report(devices.trouble.empty() ? Status() : fail(ErrorKind::kConflict, devices.trouble));
    return devices;
  }

  void tell_pods() {
    std::set<std::string> whole;
    for (const auto& device : kube::whole_gpus(gpus_.inventory(), pool_.offers()).devices)
      whole.insert(device.uuid);
    pods_.correct(whole);
  }

  /// With the mutex held.
  kube::NodeState state(kube::PluginDevices offered) const {
    kube::NodeState state;
    state.inventory = gpus_.inventory();
    state.whole = kube::whole_gpus(state.inventory, has_role(kDevicePlugin)
                                                        ? pool_.offers()
                                                        : kube::offer(state.inventory, {}, {}, missing_));
    state.offered = std::move(offered);
    state.mig = gpus_.mig();
    state.cdi = cdi_;
    state.runtime = runtime_words_;
    if (!has_role(kDra)) return state;
    state.claims = claims_words_;
    if (!driver_) return state;
    state.claims = why_not_served(driver_->state());
    return state;
  }

  /// What needs the API server begins when there is a way to it; claims wait for the container runtime too.
  void reach_cluster() {
    const bool reports = report_.needs_api();
    if (!api_ && (reports || has_role(kDra) || has_role(kSandboxes))) {
      auto api = find_api(options_);
      cluster_trouble_.report(
          api ? Status() : Failure(context(api.error(), "the cluster is not told of this node's GPUs")));
      if (!api) return;
      api_ = *api;
      if (reports) report_.reach(api_);
      if (is_among(options_.report, "events")) shares_.reach(api_);
      if (chooses()) pods_.follow(api_);
    }
    if (api_) sandboxes_.tell(*api_);
    const auto served = serve_claims();
    cluster_trouble_.report(served ? Status() : Failure(context(served.error(), "claims are not served")));
    const std::lock_guard lock(mutex_);
    claims_words_ = served ? "the container runtime does not do CDI" : to_string(served.error());
  }

  Status serve_claims() {
    if (!has_role(kDra) || cdi_ != kube::CdiSupport::kYes) return {};
    {
      const std::lock_guard lock(mutex_);
      if (driver_) return {};
    }
    DROVER_TRY(const auto version, kube::dra::served_version(*api_, options_.node_name));
    const auto options = driver_options();
    auto driver = std::make_unique<kube::dra::Driver>(
        options, kube::dra::claims_at(api_, version),
        kube::dra::slices_at(api_, version, options.driver, options.node),
        [this](bool guarded) { return gpus_.edits(guarded); }, gpus_.mig_instances(), arrangements_);
    const std::lock_guard lock(mutex_);
    driver_ = std::move(driver);
    return {};
  }

  kube::PodCalls pod_calls() {
    return {.idle = [this] { return idle_.look(); },
            .kill =
                [this](const auto& uid) {
                  return kube::kill_pod(options_.runtime_endpoint, uid, kKillPatience);
                }};
  }

  void end_claims() {
    std::unique_ptr<kube::dra::Driver> driver;
    {
      const std::lock_guard lock(mutex_);
      driver = std::move(driver_);
    }
  }

  void keep_shares() {
    kube::NodeShares shares;
    {
      const std::lock_guard lock(mutex_);
      if (driver_) shares.claims = driver_->shares();
    }
    {
      const std::lock_guard lock(users_mutex_);
      shares.uses = users_.containers();
    }
    replicas_.add_to(shares, pool_);
    shares_trouble_.report(shares_.look(shares));
    // Whose a container is that has just started, only the kubelet knows.
    if (shares_.wait_for_newcomer(kKubeletPause)) (void)look_at_users(kShortPatience);
  }

  void refresh_users() {
    const auto told = look_at_users(kPatience);
    kubelet_trouble_.report(told ? Status() : Failure(told.error()));
  }

  /// What the kubelet tells now; the pool is told of it.
  Result<kube::PodResources> look_at_users(std::chrono::milliseconds patience) {
    const std::lock_guard lock(users_mutex_);
    const auto asked = kube::Usage::Clock::now();
    auto told = kube::list_pod_resources(kube::pod_resources_socket(options_.kubelet), patience);
    if (!told) return told;
    // Later: whoever still runs now has not given back what the kubelet did not tell of.
    const auto running = kube::list_pod_uids(options_.runtime_endpoint, patience);
    users_.update(*told, running ? std::optional(*running) : std::nullopt, asked);
    forgotten_trouble_.report(check_nothing_is_forgotten(users_.containers()));
    if (!users_.known()) return told;
    pool_.saw(users_.containers(), asked);
    users_known_ = true;
    if (has_role(kDevicePlugin)) {
      sets_trouble_.report(sets_.saw(kube::sets_of(users_.containers(), pool_.offers()), asked));
      unheld_trouble_.report(replicas_.saw(users_.containers(), asked));
    }
    return told;
  }

  cli::KubeNodeOptions options_;
  PeriodicTasks periodic_tasks_;  ///< asked by pages that are there for longer than what it repeats
  kube::NodeReport report_;       ///< ends after the GPUs, which tell it
  KubeGpus gpus_;
  KubeShares shares_{options_, gpus_, warn};
  KubeMetrics metrics_{options_, DROVER_VERSION, gpus_, shares_, healthz()};
  kube::MigStrategy mig_strategy_;
  std::mutex users_mutex_;   ///< of look_at_users(), which may take a while
  kube::DeviceUsers users_;  ///< of look_at_users() alone
  kube::NodePods pods_;
  kube::GpuSets sets_{options_.cdi_folder};
  std::shared_ptr<KubeArrangements> arrangements_ = std::make_shared<KubeArrangements>(share_programs());
  std::atomic<bool> users_known_ = false;
  std::atomic<kube::CdiSupport> cdi_ = kube::CdiSupport::kUnknown;
  KubeReplicas replicas_{options_, gpus_, *arrangements_, cdi_, warn};
  kube::Pool pool_;
  KubeIdle idle_{options_, gpus_};
  KubeSandboxes sandboxes_{options_, DROVER_VERSION, pod_calls(), warn};
  std::shared_ptr<kube::Api> api_;  ///< of reach_cluster() alone
  CdiFile cdi_file_{options_.cdi_folder + "/k8s.device-plugin.nvidia.com-gpu.json"};
  LogOnce runtime_trouble_{warn}, kubelet_trouble_{warn}, cluster_trouble_{warn}, metrics_trouble_{warn},
      health_trouble_{warn}, mig_trouble_{warn}, forgotten_trouble_{warn}, given_trouble_{warn},
      sets_trouble_{warn}, shares_trouble_{warn}, arrangements_trouble_{warn}, replicas_trouble_{warn},
      unheld_trouble_{warn}, devices_trouble_{warn};
  std::mutex mutex_;                             ///< of what follows
  std::string runtime_words_;                    ///< what is wrong with the container runtime
  std::string claims_words_ = "it is starting";  ///< why claims are not served while there is no driver
  MissingFiles missing_;
  ClaimHindrances hindrances_{options_.driver};
  std::unique_ptr<kube::dra::Driver> driver_;  ///< ends before the others, which it asks
  std::unique_ptr<http::PageServer> health_;   ///< of serve_health() alone
};

Status run_node(cli::KubeNodeOptions options) {
  if (::geteuid() != 0)
    return fail(ErrorKind::kPermissionDenied, "'drover kube node' serves the kubelet, which only root may do",
                "start it with sudo, or in a privileged pod that runs as root");
  const EndSignals signals;
  if (options.node_name.empty()) options.node_name = host_name();
  DROVER_TRY(auto config, read_config(options.config));
  for (const auto* address : {&options.metrics_address, &options.health_address})
    if (!address->empty()) DROVER_CHECK_OK(http::parse_listen_address(*address));
  gpu::HealthWatchOptions health;
  DROVER_TRY(health.policy,
             gpu::XidPolicy::parse(options.disable_health_checks, options.enable_health_checks));
  ::umask(077);  // whoever starts it: what others may read has a mode of its own
  DROVER_TRY(const auto state, Directory::create(options.state, 0711));
  DROVER_CHECK_OK(check_trusted(options.state));  // container runtimes run a program that lies there
  DROVER_CHECK_OK(Directory::create(options.cdi_folder));
  HardwareOptions hardware_options{options.state, options.simulate, options.driver_root, {}};
  hardware_options.volume = false;  // the driver may come later
  hardware_options.host_driver_root = options.host_driver_root;
  DROVER_TRY(hardware_options.hook_program, place_cdi_hook(options.state));
  DROVER_TRY(hardware_options.guard,
             place_guard(options.state, {kube::dra::shares_folder(options.kubelet, options.driver),
                                         KubeReplicas::folder(options.state)}));
  DROVER_TRY(auto hardware, Hardware::open(hardware_options));
  Node node(options, std::move(hardware), std::move(config), std::move(health));
  DROVER_TRY(const auto lock, lock_node(state, options.kubelet, signals));
  if (!lock) return {};
  node.run(signals);
  return {};
}

}  // namespace

Status run_kube_node(const cli::KubeNodeOptions& options) {
  set_up_log(options.log);
  ::signal(SIGPIPE, SIG_IGN);
  kube::silence_grpc();
  return run_node(options);
}

}  // namespace drover
