#pragma once

// The command line: `drover COMMAND …`. A client of the daemon's API and nothing more: what works on this
// machine itself (the daemon, the checks of doctor) comes in through Hooks.

#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/user_limits.h"
#include "cdi/specification.h"
#include "cli/gateway.h"

namespace drover::cli {

inline constexpr const char* kDefaultSocket = "/run/drover/drover.sock";

/// Of programs that serve.
struct LogOptions {
  std::string level = "info";   ///< and what is worse: "debug", "info", "warning", "error"
  std::string format = "text";  ///< or "json"
};

/// What `drover serve` was asked for; empty: not given.
struct ServeOptions {
  LogOptions log;
  std::string state = "/var/lib/drover";
  std::string socket = kDefaultSocket;
  std::string listen;                   ///< HOST:PORT
  bool insecure_listen = false;         ///< also where secrets go over a network, without TLS
  std::string anonymous;                ///< who those are that show no secret on TCP; "": nobody
  std::vector<std::string> host_names;  ///< that the daemon goes by on TCP besides the machine's own
  std::string engine = "local";         ///< where tasks run: "local", or on "kubernetes"
  std::string kubeconfig;  ///< of that cluster; "" for $KUBECONFIG, or the ServiceAccount of the pod
  std::string lease;       ///< there, in the pod's namespace: whoever has it runs; "": nobody else is there
  std::string scheduler = "drover";  ///< of that cluster, which places
  std::string helper_image;          ///< there, of this program; "": no files are fetched
  std::string sandboxes = "pod";     ///< there, who has them: "pod", or "node", which keeps them
  std::string agent_namespace;       ///< there, of the nodes' agents; "": that of the pod or kubeconfig
  std::string default_image;         ///< there, of tasks that name none; "": they are refused
  bool objects = false;              ///< there: objects of the cluster define apps, schedules and jobs
  std::string executor_endpoint;     ///< there, HOST:PORT where pods reach `listen`; "": they can't
  bool allow_host_paths = false;     ///< there: volumes may be folders of a node
  std::string simulate;              ///< profile: a name or a file
  std::string driver_root;           ///< where the driver's files are looked for
  std::string cdi_specification;     ///< file that is kept up to date; "": none
  std::vector<std::string> cdi_folders = {std::begin(cdi::kFolders), std::end(cdi::kFolders)};
  std::string runtime;                                ///< OCI runtime: a name or a path
  std::vector<std::string> containerizers = {"oci"};  ///< in the order in which they are tried
  std::string docker_socket = "/var/run/docker.sock";
  bool allow_privileged = false;
  bool selinux = false;                      ///< label containers where SELinux enforces
  std::uint32_t container_ids = 0x7F000000;  ///< first of the machine's, for root's containers; 0: none
  std::string network = "host";              ///< of tasks that name none: "host" or "bridge"
  std::vector<std::string> allow_devices;    ///< [WHO,...:]KIND[=NAME], of other vendors' CDI devices
  std::string gpu_strangers = "wait";        ///< a GPU that somebody else has open: "wait" or "ignore"
  std::vector<std::string> gpu_monitors;     ///< programs that may have any GPU open
  std::string share_time = "lend";           ///< of a GPU: "lend", "strict" or "free"
  std::string share_offence = "auto";        ///< by who holds more than his share: "auto", "report" or "kill"
  std::string images = "/srv/images";        ///< where images lie under the names that registries give them
  std::vector<std::string> insecure_registries;  ///< HOST[:PORT] that are spoken to without TLS
  std::vector<std::string> registry_certificates = {"/etc/docker/certs.d", "/etc/containers/certs.d"};
  std::uint64_t max_image_size = 256ULL << 30;  ///< bytes of one image, unpacked
  std::uint64_t max_image_files = 4'000'000;
  std::chrono::milliseconds keep_ended = std::chrono::hours(7 * 24);  ///< tasks that have ended
  std::chrono::milliseconds keep_events = std::chrono::hours(30 * 24);
  std::size_t max_events = 100'000;       ///< of which as many are kept, and a tenth more for a while
  std::uint64_t room_to_keep = 0;         ///< bytes; 0: a part of the disk of `state`
  std::uint64_t keep_free = 64ULL << 20;  ///< bytes that images leave on the file system of `state`
  std::string placement = "pack";         ///< which of several places: "pack", "spread" or "fragmentation"
  std::map<std::string, std::vector<std::string>> attributes;  ///< of this machine, by name
  std::optional<std::int64_t> milli_cpus_per_gpu;     ///< of tasks that name no CPUs; none: the GPU's part
  std::optional<std::uint64_t> memory_bytes_per_gpu;  ///< the same of memory
  UserLimits limits;                                  ///< what one user may take up
  bool marathon_strict = false;                       ///< no GPUs in DOCKER containers, as in Marathon
  /// Mesos frameworks that do not know GPUs are offered nothing of a machine that has some.
  bool filter_gpu_resources = true;
  /// How long an executor of a Mesos framework may take to subscribe, and to come again.
  std::chrono::milliseconds executor_registration_timeout = std::chrono::minutes(1);
  std::chrono::milliseconds executor_recovery_timeout = std::chrono::minutes(15);
};

/// What `drover kube node` was asked for; empty: not given.
/// Of `drover kube withdraw`.
struct KubeWithdrawOptions {
  std::string kubeconfig;  ///< "": $KUBECONFIG, or the ServiceAccount of the pod
  struct Lease {
    std::string name_space, name;  ///< "": none
  };
  Lease control_plane;  ///< that is to end, with its tasks
  Lease scheduler;      ///< that has ended: its lease is to go
};

struct KubeNodeOptions {
  LogOptions log;
  std::string node_name;   ///< the Node's; the machine's own when empty
  std::string kubeconfig;  ///< "" for $KUBECONFIG, or the ServiceAccount of the pod
  std::vector<std::string> roles = {"device-plugin", "dra"};
  std::string driver = "gpu.nvidia.com";  ///< of claims
  std::string claim_sharing = "none";     ///< what claims may have a part of: "none", "memory" or "share"
  std::string share_by = "auto";          ///< what keeps claims to it: "auto", "limits" or "none"
  std::string share_offence = "auto";     ///< as of ServeOptions
  std::string state = "/var/lib/kubelet/plugins/drover";
  std::string kubelet = "/var/lib/kubelet";  ///< the kubelet's root folder
  std::string config;                        ///< file, as NVIDIA's device plugin has it
  std::string runtime_endpoint = "/run/containerd/containerd.sock";  ///< of the container runtime
  std::string cdi_folder = "/var/run/cdi";                           ///< where specifications go
  std::string health_address;   ///< where it says whether it lives; "" for nowhere
  std::string metrics_address;  ///< where Prometheus asks: "127.0.0.1:9400"; "" for nowhere
  std::string disable_health_checks, enable_health_checks;  ///< XIDs, as NVIDIA's device plugin lists them
  std::vector<std::string> report = {"labels", "conditions", "events"};  ///< what the cluster is told
  std::string feature_file;      ///< where labels go instead of to the Node
  std::string simulate;          ///< profile: a name or a file
  std::string driver_root;       ///< where the driver's files are looked for
  std::string host_driver_root;  ///< the same folder's path on the node
  std::chrono::milliseconds keep_sandboxes = std::chrono::days(7);  ///< after their end
};

/// A cluster, and the scheduler of it: the one that runs, or that is asked about.
struct KubeClusterOptions {
  std::string kubeconfig;                       ///< as of KubeNodeOptions
  std::string name = "drover";                  ///< pods with this schedulerName are its own
  std::string gpu_resource = "nvidia.com/gpu";  ///< by which pods ask for whole GPUs
  std::string policy = "pack";                  ///< which of several nodes that fit: "pack", "spread"
};

struct KubeSchedulerOptions : KubeClusterOptions {
  LogOptions log;
  std::size_t writes = 32;      ///< to the API server at a time
  std::string lease_namespace;  ///< where the leader's Lease stands; "": in that of the pod or kubeconfig
  std::string lease_name;       ///< "": the scheduler's name and "-scheduler"
  std::string listen;           ///< for /metrics and /healthz; "" for nowhere
};

/// One prerequisite of this machine, as `drover doctor` tells it.
struct Check {
  enum class State { kFound, kWarning, kMissing };
  std::string name;
  State state = State::kFound;
  std::string found;  ///< what is there, or what is wrong
  std::string mend;   ///< what to do about it; "" when nothing
};

struct Hooks {
  std::string version;
  /// Runs until it is told to stop.
  std::function<Status(const ServeOptions&)> serve;
  /// Makes a backup the journal of a state folder. The result names the one that was there before; "" for
  /// none.
  std::function<Result<std::string>(const std::string& state, const std::string& backup, bool force)> restore;
  /// Runs until it is told to stop.
  std::function<Status(const KubeNodeOptions&)> kube_node;
  /// Runs until it is told to stop.
  std::function<Status(const KubeSchedulerOptions&)> kube_scheduler;
  /// From how many Nodes of a cluster Drover's labels and conditions were taken.
  std::function<Result<int>(const KubeWithdrawOptions& options)> kube_withdraw;
  /// Joins input and output to the agent of this node, until either ends.
  std::function<Status(const std::string& kubelet)> kube_sandboxes;
  /// What is, or would be, decided on a cluster: of a pod, [NAMESPACE/]NAME; of pods as somebody would make
  /// them; of all that wait.
  std::function<Result<nlohmann::json>(const KubeClusterOptions&, const std::string& pod)> kube_explain;
  std::function<Result<nlohmann::json>(const KubeClusterOptions&, const std::vector<nlohmann::json>& pods)>
      kube_plan;
  std::function<Result<nlohmann::json>(const KubeClusterOptions&)> kube_queues;
  /// What a context of a kubeconfig, or its current one for "", says of the API server; without a path.
  std::function<Result<Gateway>(const std::string& kubeconfig, const std::string& context)> api_server;
  std::function<std::vector<Check>()> doctor;
  /// What /v1/gpus?usage=true would say of this machine, without a daemon. Keeps what it needs between calls.
  std::function<Result<nlohmann::json>()> gpus_here;
  /// Of this machine's GPUs, with the driver's files below `driver_root`; "" for the machine's own.
  std::function<Result<cdi::Specification>(const std::string& driver_root)> cdi_specification;
};

/// Returns the exit status of the process (docs/cli.md has the table).
int run_cli(int argc, const char* const* argv, const Hooks& hooks);

}  // namespace drover::cli
