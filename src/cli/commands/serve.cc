#include <fmt/format.h>

#include <charconv>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

// Below are the machine's own, and the last of all means nobody.
constexpr std::uint32_t kFirstContainerId = 65536;
constexpr std::uint32_t kLastContainerId = UINT32_MAX - 65536;

/// As CLI11 asks for it: what is wrong with it, or "".
std::string check_container_id(const std::string& text) {
  std::uint32_t id = 0;
  const auto* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, id);
  const bool is_number = error == std::errc() && end == last;
  if (is_number && (id == 0 || (id >= kFirstContainerId && id <= kLastContainerId))) return "";
  return fmt::format("'{}' is neither 0 nor an id from {} to {}", text, kFirstContainerId, kLastContainerId);
}

Result<int> serve(Context& context, const ServeOptions& options) {
  auto chosen = options;
  chosen.socket = context.endpoint.socket;
  DROVER_CHECK_OK(context.hooks->serve(chosen));
  return 0;
}

/// Several values of one name are several things that the machine is.
void take_attributes(const std::vector<std::string>& words, ServeOptions& options) {
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      throw CLI::ValidationError("--attribute", "'" + word + "' is not of the form NAME=VALUE");
    options.attributes[word.substr(0, equals)].push_back(word.substr(equals + 1));
  }
}

void take_limits(const std::vector<std::string>& words, ServeOptions& options) {
  for (const auto& word : words)
    if (const auto set = set_limit(options.limits, word); !set)
      throw CLI::ValidationError("--limit", to_string(set.error()));
}

CLI::Option* add_size(CLI::App& command, const std::string& name, std::uint64_t& bytes,
                      const std::string& help) {
  const auto take = [name, &bytes](const std::string& text) {
    const auto parsed = parse_bytes(text);
    if (!parsed || *parsed == 0)
      throw CLI::ValidationError(name, "'" + text + "' is no size, which is written as 20G or 512MiB");
    bytes = *parsed;
  };
  return command.add_option_function<std::string>(name, take, help)
      ->type_name("SIZE")
      ->default_str(format_bytes(bytes));
}

void add_serve_tcp(CLI::App& command, ServeOptions& options) {
  command.add_option("--listen", options.listen, "Also serve on TCP; each request shows a secret")
      ->type_name("HOST:PORT");
  command.add_flag("--insecure-listen", options.insecure_listen,
                   "Let --listen name an address that is not loopback, where secrets go without TLS");
  command
      .add_option("--anonymous", options.anonymous,
                  "On TCP, take those who show no secret for this user; only on a loopback address")
      ->type_name("USER");
  command
      .add_option("--host-name", options.host_names,
                  "On TCP, another name that requests may call this server by; may be repeated")
      ->type_name("NAME");
}

void add_serve_cluster(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--kubeconfig", options.kubeconfig,
                  "How to reach the cluster; $KUBECONFIG or the pod's ServiceAccount otherwise")
      ->type_name("FILE");
  command
      .add_option(
          "--lease", options.lease,
          "On a cluster, run only while this Lease is ours, in the namespace of the pod or kubeconfig")
      ->type_name("NAME");
  command.add_option("--scheduler", options.scheduler, "The cluster's scheduler that places tasks")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--default-image", options.default_image,
                  "On a cluster, the image of tasks that name none; they are refused otherwise")
      ->type_name("IMAGE");
  command
      .add_option(
          "--helper-image", options.helper_image,
          "On a cluster, an image of Drover, which fetches the files of tasks; none are fetched otherwise")
      ->type_name("IMAGE");
  command
      .add_option("--sandboxes", options.sandboxes,
                  "On a cluster, where sandboxes are: pod, which they end with, or node, which keeps them")
      ->check(one_of({"pod", "node"}))
      ->type_name("pod|node")
      ->capture_default_str();
  command
      .add_option(
          "--agent-namespace", options.agent_namespace,
          "On a cluster, where the nodes' agents are; the namespace of the pod or kubeconfig when not "
          "given")
      ->type_name("NAMESPACE");
  command
      .add_option("--executor-endpoint", options.executor_endpoint,
                  "On a cluster, where the executors of frameworks reach --listen from their pods; there are "
                  "none otherwise")
      ->type_name("HOST:PORT");
  command.add_flag("--objects", options.objects,
                   "On a cluster, run what its objects App, Schedule and Job define");
  command.add_flag("--allow-host-paths", options.allow_host_paths,
                   "On a cluster, let tasks have folders of their node");
}

void add_serve_engine(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--engine", options.engine,
                  "Where tasks run: local, on this machine, or kubernetes, as pods of a cluster")
      ->check(one_of({"local", "kubernetes"}))
      ->type_name("local|kubernetes")
      ->capture_default_str();
  const auto others = command.get_options().size();
  add_serve_cluster(command, options);
  auto of_cluster = command.get_options();
  of_cluster.erase(of_cluster.begin(), of_cluster.begin() + static_cast<std::ptrdiff_t>(others));
  command.parse_complete_callback([&options, of_cluster] {
    if (options.engine == "kubernetes") return;
    for (const auto* option : of_cluster)
      if (option->count() > 0)
        throw CLI::ValidationError(option->get_name(),
                                   "it is about a cluster, and tasks run on this machine; say '--engine "
                                   "kubernetes' too, or leave it out");
  });
}

void add_serve_gpu(CLI::App& command, ServeOptions& options) {
  command.add_option("--simulate", options.simulate, "Offer simulated GPUs: a profile's name, or a file")
      ->type_name("PROFILE");
  command.add_option("--driver-root", options.driver_root, "Where to look for the driver's files")
      ->type_name("DIR");
  command
      .add_option("--cdi-specification", options.cdi_specification,
                  "Keep a CDI specification of the GPUs in this file, for other container engines")
      ->type_name("FILE");
  command
      .add_option("--cdi-folder", options.cdi_folders,
                  "Where CDI specifications of other vendors are; may be repeated, and the later goes first")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_serve_container(CLI::App& command, ServeOptions& options) {
  command.add_option("--runtime", options.runtime, "OCI runtime to use; found by trying when not given")
      ->type_name("NAME");
  command
      .add_option("--containerizers", options.containerizers,
                  "Who may run tasks, first choice first: oci, docker or both")
      ->delimiter(',')
      ->check(one_of({"oci", "docker", "mesos"}))
      ->type_name("LIST")
      ->default_str("oci");
  command.add_option("--docker-socket", options.docker_socket, "Where the Docker Engine answers")
      ->type_name("PATH")
      ->capture_default_str();
  command.add_flag("--selinux", options.selinux,
                   "Where SELinux enforces, run containers with an image as container_t");
  command
      .add_option(
          "--container-ids", options.container_ids,
          "First of the 65536 users and groups of the machine that those of root's containers with an "
          "image are; 0: root in them is root of the machine")
      ->check(check_container_id)
      ->type_name("ID")
      ->capture_default_str();
  command
      .add_option("--network", options.network,
                  "Network of tasks that name none: host, the machine's, or bridge, one of their own")
      ->check(one_of({"host", "bridge"}))
      ->type_name("host|bridge")
      ->capture_default_str();
  command.add_flag("--allow-privileged", options.allow_privileged,
                   "Let tasks be privileged, which see all GPUs; for containers of a Docker Engine");
}

void add_serve_device(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--allow-device", options.allow_devices,
                  "Who may have which devices of other vendors: users, @groups, or everybody when there is "
                  "nothing before the ':'; may be repeated, and otherwise only root has any")
      ->type_name("[WHO,...:]KIND[=NAME]");
  command
      .add_option("--gpu-strangers", options.gpu_strangers,
                  "What to do about a GPU that somebody has open who was not given it: wait or ignore")
      ->check(one_of({"wait", "ignore"}))
      ->type_name("wait|ignore")
      ->capture_default_str();
  command
      .add_option("--gpu-monitor", options.gpu_monitors,
                  "A program that may have any GPU open, whoever runs it; may be repeated")
      ->type_name("NAME");
}

void add_serve_share(CLI::App& command, ServeOptions& options) {
  command
      .add_option(
          "--share-time", options.share_time,
          "What a share of a GPU says of its time: lend what others do not want, strict, or nothing at "
          "all: free")
      ->check(one_of({"lend", "strict", "free"}))
      ->type_name("lend|strict|free")
      ->capture_default_str();
  command
      .add_option("--share-offence", options.share_offence,
                  "What becomes of a task that holds more of a shared GPU's memory than it was given: report "
                  "it, kill the task, or kill it where it has gone round the guard and report it elsewhere")
      ->check(one_of({"auto", "report", "kill"}))
      ->type_name("auto|report|kill")
      ->capture_default_str();
}

void add_serve_image(CLI::App& command, ServeOptions& options) {
  command
      .add_option("--images", options.images, "Where images lie under their names: see 'drover run --image'")
      ->type_name("DIR")
      ->capture_default_str();
  command
      .add_option("--insecure-registry", options.insecure_registries,
                  "A registry to speak to without TLS; may be repeated")
      ->type_name("HOST[:PORT]");
  command
      .add_option("--registry-certificates", options.registry_certificates,
                  "Where certificates for single registries are, in folders HOST:PORT; may be repeated")
      ->type_name("DIR")
      ->capture_default_str();
  add_size(command, "--max-image-size", options.max_image_size, "What one image may hold when unpacked");
  command
      .add_option("--max-image-files", options.max_image_files,
                  "How many files, links and folders one image may have")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""))
      ->type_name("N")
      ->capture_default_str();
  add_size(command, "--keep-free", options.keep_free, "What images leave free on the file system of --state");
}

void add_gpu_share(CLI::App& command, ServeOptions& options) {
  const auto take_cpus = [&options](const std::string& text) {
    const auto parsed = parse_milli_cpus(text);
    if (!parsed) throw CLI::ValidationError("--cpus-per-gpu", to_string(parsed.error()));
    options.milli_cpus_per_gpu = *parsed;
  };
  command
      .add_option_function<std::string>("--cpus-per-gpu", take_cpus,
                                        "CPUs for each GPU of a task that does not say how many it needs")
      ->type_name("X")
      ->default_str("the GPU's part of the machine");
  const auto take_memory = [&options](const std::string& text) {
    const auto parsed = parse_bytes(text);
    if (!parsed || *parsed == 0)
      throw CLI::ValidationError("--mem-per-gpu",
                                 "'" + text + "' is no size, which is written as 20G or 512MiB");
    options.memory_bytes_per_gpu = *parsed;
  };
  command
      .add_option_function<std::string>("--mem-per-gpu", take_memory,
                                        "Memory for each GPU of a task that does not say how much it needs")
      ->type_name("SIZE")
      ->default_str("the GPU's part of the machine");
}

void add_keep(CLI::App& command, const std::string& name, std::chrono::milliseconds& time,
              const std::string& usual, const std::string& help) {
  const auto take = [name, &time](const std::string& text) {
    constexpr std::chrono::minutes kLeast{10};  // so long people can read what a task left
    const auto parsed = parse_duration(text);
    if (!parsed) throw CLI::ValidationError(name, to_string(parsed.error()));
    if (*parsed < kLeast) throw CLI::ValidationError(name, "it is 10m at least");
    time = *parsed;
  };
  command.add_option_function<std::string>(name, take, help)->type_name("TIME")->default_str(usual);
}

void add_retention(CLI::App& command, ServeOptions& options) {
  add_keep(command, "--keep-ended", options.keep_ended, "7d",
           "How long tasks that have ended are kept, with what is in their sandboxes");
  add_keep(command, "--keep-events", options.keep_events, "30d", "How long events are kept");
  command
      .add_option("--max-events", options.max_events,
                  "How many events are kept; beyond it those go who have most, oldest first")
      ->check(CLI::Validator(CLI::Range(100, 10'000'000)).description(""))
      ->type_name("N")
      ->capture_default_str();
}

void add_serve_sharing(CLI::App& command, ServeOptions& options) {
  add_gpu_share(command, options);
  add_retention(command, options);
  add_size(
      command, "--room-to-keep", options.room_to_keep,
      "When less is free on the file system of --state, unused images go, and then the oldest ended tasks")
      ->default_str("a twentieth of it, 4 GiB at most");
  command
      .add_option("--placement", options.placement,
                  "Where work goes that fits in several places: pack, spread or fragmentation. On a "
                  "cluster its scheduler's --policy, by which 'plan' foretells")
      ->check(one_of({"pack", "spread", "fragmentation"}))
      ->type_name("pack|spread|fragmentation")
      ->capture_default_str();
  command
      .add_option_function<std::vector<std::string>>(
          "--attribute", [&options](const auto& words) { take_attributes(words, options); },
          "Something that work may ask for; may be repeated")
      ->type_name("NAME=VALUE");
  command
      .add_option_function<std::vector<std::string>>(
          "--limit", [&options](const auto& words) { take_limits(words, options); },
          "What one user, and all, may take up, by the names of docs/limits.md; may be repeated")
      ->type_name("NAME=VALUE");
  command.add_flag("--marathon-strict", options.marathon_strict,
                   "Refuse what Marathon itself refuses: GPUs in containers of type DOCKER");
  command
      .add_option("--filter-gpu-resources", options.filter_gpu_resources,
                  "Offer a machine with GPUs only to Mesos frameworks that know GPUs")
      ->type_name("true|false")
      ->default_str("true");
  add_duration(command, "--executor-registration-timeout", options.executor_registration_timeout,
               "How long an executor of a Mesos framework may take from its start to its subscription");
  add_duration(command, "--executor-recovery-timeout", options.executor_recovery_timeout,
               "How long it may be away, for example while the daemon is");
}

}  // namespace

void add_log_flags(CLI::App& command, LogOptions& options) {
  command.add_option("--log-level", options.level, "What is logged at least: debug, info, warning or error")
      ->check(one_of({"debug", "info", "warning", "error"}))
      ->type_name("debug|info|warning|error")
      ->capture_default_str();
  command.add_option("--log-format", options.format, "How lines are logged: text, or json")
      ->check(one_of({"text", "json"}))
      ->type_name("text|json")
      ->capture_default_str();
}

void add_serve(CLI::App& app, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = app.add_subcommand("serve", "Run the daemon of this machine, in the foreground");
  command->add_option("--state", options->state, "Folder for everything that the daemon keeps")
      ->type_name("DIR")
      ->capture_default_str();
  add_log_flags(*command, options->log);
  for (const auto add : {add_serve_tcp, add_serve_engine, add_serve_gpu, add_serve_container,
                         add_serve_device, add_serve_share, add_serve_image, add_serve_sharing})
    add(*command, *options);
  on_call(command, context, options, serve);
}

}  // namespace drover::cli
