#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/commands/on_cluster.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

Result<int> run_node(Context& context, const KubeNodeOptions& options) {
  DROVER_CHECK_OK(context.hooks->kube_node(options));
  return 0;
}

void add_node_role(CLI::App& command, KubeNodeOptions& options) {
  command
      .add_option("--roles", options.roles, "What to be: device-plugin, dra, sandboxes; several with commas")
      ->delimiter(',')
      ->check(one_of({"device-plugin", "dra", "sandboxes"}))
      ->type_name("LIST")
      ->default_str("device-plugin,dra");
  command.add_option("--driver-name", options.driver, "The driver that claims name")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--claim-sharing", options.claim_sharing,
                  "What claims may have a part of: none, memory or share")
      ->check(one_of({"none", "memory", "share"}))
      ->type_name("none|memory|share")
      ->capture_default_str();
  command
      .add_option(
          "--share-by", options.share_by,
          "What holds pods to a part of a GPU: the strongest that there is (auto), the guard, without "
          "which a claim is refused (limits), or nothing (none)")
      ->check(one_of({"auto", "limits", "none"}))
      ->type_name("auto|limits|none")
      ->capture_default_str();
  command
      .add_option("--share-offence", options.share_offence,
                  "What becomes of a container that holds more of a shared GPU's memory than it was given: "
                  "report it, kill it, or kill it where it has gone round the guard and report it elsewhere")
      ->check(one_of({"auto", "report", "kill"}))
      ->type_name("auto|report|kill")
      ->capture_default_str();
  command.add_option("--config", options.config, "How GPUs are named and shared: a file of NVIDIA's plugin")
      ->envname("CONFIG_FILE")
      ->type_name("FILE");
}

void add_node_place(CLI::App& command, KubeNodeOptions& options) {
  command.add_option("--state", options.state, "Folder for what is kept; the same path on the node itself")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_option("--kubelet-root", options.kubelet, "The kubelet's folder")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_option("--runtime-endpoint", options.runtime_endpoint, "The container runtime's socket")
      ->type_name("PATH")
      ->capture_default_str();
  command.add_option("--cdi-folder", options.cdi_folder, "Where CDI specifications are written")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_node_sandboxes(CLI::App& command, KubeNodeOptions& options) {
  add_duration(command, "--keep-sandboxes", options.keep_sandboxes,
               "So long after its end a sandbox is kept that nobody has removed");
}

void add_node_report(CLI::App& command, KubeNodeOptions& options) {
  command
      .add_option("--health-address", options.health_address,
                  "Say here, at /healthz, whether the program lives; nowhere when not given")
      ->type_name("HOST:PORT");
  command
      .add_option("--metrics-address", options.metrics_address,
                  "Tell Prometheus of the GPUs here; nowhere when not given")
      ->type_name("HOST:PORT");
  command
      .add_option("--disable-health-checks", options.disable_health_checks,
                  "XIDs that take no GPU out: numbers, 'xids' or 'all'")
      ->envname("DP_DISABLE_HEALTHCHECKS")
      ->type_name("LIST");
  command
      .add_option("--enable-health-checks", options.enable_health_checks,
                  "XIDs that do so all the same; wins over the other list")
      ->envname("DP_ENABLE_HEALTHCHECKS")
      ->type_name("LIST");
  command
      .add_option("--report", options.report,
                  "What the cluster is told of the GPUs: labels, conditions, events, or none")
      ->delimiter(',')
      ->check(one_of({"labels", "conditions", "events", "none"}))
      ->type_name("LIST")
      ->default_str("labels,conditions,events");
  command
      .add_option("--feature-file", options.feature_file,
                  "Write labels to a file for node-feature-discovery, and not to the Node")
      ->type_name("FILE");
}

void add_node_driver(CLI::App& command, KubeNodeOptions& options) {
  command.add_option("--simulate", options.simulate, "Offer simulated GPUs: a profile's name, or a file")
      ->type_name("PROFILE");
  auto* root =
      command.add_option("--driver-root", options.driver_root, "Where to look for the driver's files")
          ->type_name("DIR");
  command
      .add_option("--host-driver-root", options.host_driver_root,
                  "The path of that folder on the node, when this runs in a container")
      ->needs(root)
      ->type_name("DIR");
}

void add_node(CLI::App& group, Context& context) {
  auto options = std::make_shared<KubeNodeOptions>();
  auto* command = group.add_subcommand("node", "Offer this node's GPUs to its kubelet, in the foreground");
  command->add_option("--node-name", options->node_name, "The Node's name; the machine's own when not given")
      ->envname("NODE_NAME")
      ->type_name("NAME");
  add_log_flags(*command, options->log);
  command->add_option("--kubeconfig", options->kubeconfig, "How to reach the API server, outside of a pod")
      ->type_name("FILE");
  for (const auto add : {add_node_role, add_node_place, add_node_sandboxes, add_node_report, add_node_driver})
    add(*command, *options);
  on_call(command, context, options, run_node);
}

Result<int> run_scheduler(Context& context, const KubeSchedulerOptions& options) {
  DROVER_CHECK_OK(context.hooks->kube_scheduler(options));
  return 0;
}

void add_scheduler(CLI::App& group, Context& context) {
  auto options = std::make_shared<KubeSchedulerOptions>();
  auto* command =
      group.add_subcommand("scheduler", "Decide which pods of the cluster run where, in the foreground");
  add_kube_cluster_flags(*command, *options);
  command->add_option("--writes", options->writes, "So many writes to the API server at a time")
      ->check(CLI::Range(1, 512))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option(
          "--lease-namespace", options->lease_namespace,
          "Where the Lease stands by which one of several leads; the namespace of the pod when not given")
      ->type_name("NAMESPACE");
  command
      ->add_option("--lease-name", options->lease_name,
                   "How it is called; the scheduler's name and '-scheduler' when not given")
      ->type_name("NAME");
  command->add_option("--listen", options->listen, "Serve /metrics and /healthz here; nowhere when not given")
      ->type_name("HOST:PORT");
  add_log_flags(*command, options->log);
  on_call(command, context, options, run_scheduler);
}

struct WithdrawFlags {
  std::string kubeconfig, control_plane, scheduler;
};

Result<KubeWithdrawOptions::Lease> read_lease(const std::string& text) {
  if (text.empty()) return KubeWithdrawOptions::Lease{};
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' names no lease", text),
                "name it with its namespace: drover/drover-control-plane");
  return KubeWithdrawOptions::Lease{text.substr(0, slash), text.substr(slash + 1)};
}

Result<int> run_withdraw(Context& context, const WithdrawFlags& flags) {
  KubeWithdrawOptions options;
  options.kubeconfig = flags.kubeconfig;
  DROVER_TRY(options.control_plane, read_lease(flags.control_plane));
  DROVER_TRY(options.scheduler, read_lease(flags.scheduler));
  DROVER_TRY(const auto nodes, context.hooks->kube_withdraw(options));
  print(fmt::format("Nodes that Drover has left: {}\n", nodes));
  return 0;
}

void add_withdraw(CLI::App& group, Context& context) {
  auto flags = std::make_shared<WithdrawFlags>();
  auto* command =
      group.add_subcommand("withdraw", "Take from the cluster what stays when Drover has been uninstalled");
  command->add_option("--kubeconfig", flags->kubeconfig, "How to reach the API server, outside of a pod")
      ->type_name("FILE");
  command
      ->add_option("--control-plane", flags->control_plane,
                   "End the control plane that has this lease, too, and its tasks")
      ->type_name("NAMESPACE/LEASE");
  command->add_option("--scheduler", flags->scheduler, "Remove the lease of a scheduler that has ended, too")
      ->type_name("NAMESPACE/LEASE");
  on_call(command, context, flags, run_withdraw);
}

Result<int> run_sandboxes(Context& context, const std::string& kubelet) {
  DROVER_CHECK_OK(context.hooks->kube_sandboxes(kubelet));
  return 0;
}

/// For the control plane, which calls it in the agent's pod: not among the commands that are told of.
void add_sandboxes(CLI::App& group, Context& context) {
  auto kubelet = std::make_shared<std::string>(KubeNodeOptions().kubelet);
  auto* command = group.add_subcommand("sandboxes", "Speak with the agent of this node about its sandboxes");
  command->group("");
  command->add_option("--kubelet-root", *kubelet, "The kubelet's folder")
      ->envname("KUBELET_ROOT")
      ->type_name("DIR")
      ->capture_default_str();
  on_call(command, context, kubelet, run_sandboxes);
}

}  // namespace

void add_kube(CLI::App& app, Context& context) {
  auto* group = app.add_subcommand("kube", "GPUs on a Kubernetes cluster: node, scheduler, withdraw");
  group->require_subcommand(1);
  add_node(*group, context);
  add_scheduler(*group, context);
  add_withdraw(*group, context);
  add_sandboxes(*group, context);
}

}  // namespace drover::cli
