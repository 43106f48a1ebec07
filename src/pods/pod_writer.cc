#include "pods/pod_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "container/environment.h"
#include "container/fetch/fetcher.h"
#include "kube/sandboxes/names.h"
#include "kube/scheduler/gangs/member.h"
#include "kube/scheduler/gpu_request.h"
#include "kube/scheduler/sharing/pod_queue.h"
#include "pods/gpu_claim.h"
#include "pods/pod_place.h"
#include "pods/pod_view.h"
#include "workload/resource_fields.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using workload::Task;
namespace scheduler = kube::scheduler;

using container::kSandboxMount;
constexpr const char* kSandboxVolume = "sandbox";
constexpr std::size_t kLongestLabel = 63;
constexpr int kMostOfClaim = 32;             ///< as Kubernetes has it
const std::string kGangService = "drover-";  // a name that begins with a letter
/// Forms of images that only the machine knows which the daemon runs on.
constexpr std::array<std::string_view, 5> kLocalImages = {
    "oci:", "docker-archive:", "rootfs:", "variants:", "/"};

/// What Cluster Autoscaler and Karpenter ask before they take a node away that has little to do.
constexpr std::array<std::pair<const char*, const char*>, 2> kLeaveAlone{
    {{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"}, {"karpenter.sh/do-not-disrupt", "true"}}};

/// Kubernetes replaces $(NAME) in what a container is given; "$$" is a plain "$" to it.
std::string as_it_is(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '$' ? "$$" : std::string(1, c);
  return escaped;
}

/// With commas between.
std::string for_each_gpu(const workload::Resources& wanted, const std::string& text) {
  return fmt::format(
      "{}", fmt::join(std::vector<std::string>(static_cast<std::size_t>(wanted.gpu_count()), text), ","));
}

class PodWriter {
 public:
  PodWriter(const PodOrder& order, const PodSettings& settings)
      : order_(order), task_(order.task), settings_(settings) {}

  tl::expected<json, std::vector<Error>> write() {
    container_ = {{"name", kContainer}};
    spec_ = {{"schedulerName", settings_.scheduler},
             {"restartPolicy", "Never"},
             {"enableServiceLinks", false},
             {"automountServiceAccountToken", false}};
    image();
    command();
    environment();
    resources();
    rights();
    volumes();
    files();
    network();
    ending();
    input();
    what_there_is_not();
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    spec_["containers"] = json::array({std::move(container_)});
    auto metadata = this->metadata();
    if (needs_claim(task_.resources))
      refer_to_claim(task_, settings_.journal, metadata, spec_, spec_["containers"][0]);
    write_place(task_, order_.node_rules, spec_, metadata["labels"]);
    return json{
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec_)}};
  }

 private:
  void refuse(std::string path, std::string message, std::string hint = "") {
    mistakes_.push_back({ErrorKind::kUnsupported, std::move(message), std::move(hint), std::move(path)});
  }

  std::string name_of_pod() const { return pod_name(task_.id, order_.attempt); }

  json metadata() const {
    json labels = {{"app.kubernetes.io/managed-by", "drover"},
                   {kTaskLabel, task_.id},
                   {kAttemptLabel, std::to_string(order_.attempt)},
                   {kJournalLabel, settings_.journal}};
    json annotations = {{"drover.dev/name", task_.name}};
    // An instance of an app is replaced elsewhere; what others have done so far would be lost.
    if (task_.origin.kind != workload::OriginKind::kService)
      for (const auto& [name, value] : kLeaveAlone) annotations[name] = value;
    labels[scheduler::kQueueLabel] = scheduler::queue_name(task_.queue);
    if (auto request = scheduler::write_gpu_request(task_.resources); !request.empty())
      annotations[scheduler::kGpuRequestAnnotation] = std::move(request);
    if (task_.gang) {
      labels[scheduler::kGangName] = task_.gang->id;
      labels[scheduler::kGangRank] = std::to_string(task_.gang->rank);
      annotations[scheduler::kGangSize] = std::to_string(task_.gang->size);
      annotations[scheduler::kGangArrangement] = workload::to_string(task_.gang->arrangement);
    }
    return {{"name", name_of_pod()},
            {"namespace", name_space_of(task_.owner_name, task_.owner, settings_)},
            {"labels", std::move(labels)},
            {"annotations", std::move(annotations)},
            {"finalizers", json::array({kFinalizer})}};
  }

  void image() {
    const auto image = task_.image.value_or(settings_.default_image);
    if (image.empty())
      return refuse("/image",
                    "on a cluster a task needs an image: there is no machine whose files it could run on",
                    "name one, as registries have it");
    if (std::ranges::any_of(kLocalImages, [&](auto form) { return image.starts_with(form); }))
      return refuse(
          "/image",
          fmt::format("'{}' is on one machine, and the nodes of a cluster get images from registries", image),
          "push it to a registry, and name it there");
    container_["image"] = image;
    container_["imagePullPolicy"] = task_.pull == PullPolicy::kAlways  ? "Always"
                                    : task_.pull == PullPolicy::kNever ? "Never"
                                                                       : "IfNotPresent";
  }

  void command() {
    if (task_.command.empty()) return;
    json words = json::array();
    for (const auto& word : task_.command) words.push_back(as_it_is(word));
    container_[task_.bypass_entrypoint ? "command" : "args"] = std::move(words);
  }

  void environment() {
    json all = json::array();
    auto values = order_.environment;
    values.try_emplace("MESOS_SANDBOX", kSandboxMount);
    // Where it will be, nobody knows yet.
    const bool is_told =
        task_.origin.kind != workload::OriginKind::kPerson && !task_.environment->contains("HOST");
    if (is_told) {
      values.erase("HOST");
      all.push_back({{"name", "HOST"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
    }
    for (const auto& [name, value] : values)
      if (order_.secrets.contains(name))
        all.push_back(
            {{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", name_of_pod()}, {"key", name}}}}}});
      else
        all.push_back({{"name", name}, {"value", as_it_is(value)}});
    container_["env"] = std::move(all);
  }

  void resources() {
    const auto& wanted = task_.resources;
    json requests = {{"cpu", fmt::format("{}m", wanted.milli_cpus)},
                     {"memory", std::to_string(wanted.memory_bytes)}};
    json limits = json::object();
    if (const auto cpus = task_.most_milli_cpus(); cpus > 0) limits["cpu"] = fmt::format("{}m", cpus);
    if (const auto memory = task_.most_memory_bytes(); memory > 0) limits["memory"] = std::to_string(memory);
    if (const auto gpus = wanted.gpu_count(); gpus > 0 && !needs_claim(wanted))
      limits[settings_.gpu_resource] = requests[settings_.gpu_resource] = std::to_string(gpus);
    container_["resources"] = {{"requests", std::move(requests)}, {"limits", std::move(limits)}};
    if (wanted.nic == workload::Preference::kRequire)
      refuse("/nic", "on a cluster nobody knows so far which network cards are near which GPUs",
             "leave it out");
    if (needs_claim(wanted) && !settings_.claims)
      refuse(
          wanted.group.empty() ? "/gpu_share" : "/group",
          "shares of GPUs and groups need claims of devices, which this cluster's Kubernetes does not have",
          "ask for whole GPUs, without a group, or use Kubernetes 1.36 or a newer one");
    if (wanted.gpu_count() > kMostOfClaim && needs_claim(wanted))
      refuse("/gpus",
             fmt::format("a claim is of {} GPUs at most, and {} are asked for", kMostOfClaim,
                         wanted.gpu_count()),
             "ask for fewer");
  }

  void rights() {
    const auto& user = task_.user;
    json pod = {
        {"runAsUser", user.uid}, {"runAsGroup", user.gid}, {"seccompProfile", {{"type", "RuntimeDefault"}}}};
    if (!user.groups.empty()) pod["supplementalGroups"] = user.groups;
    // The sandbox is a volume of its own, which is root's at first.
    if (user.uid != 0) pod["fsGroup"] = user.gid;
    spec_["securityContext"] = std::move(pod);
    json own = {{"allowPrivilegeEscalation", false}};
    if (task_.read_only) own["readOnlyRootFilesystem"] = true;
    if (user.uid != 0) {
      own["runAsNonRoot"] = true;
      own["capabilities"]["drop"] = json::array({"ALL"});
    }
    container_["securityContext"] = std::move(own);
  }

  /// One that the node keeps is only where it can be kept.
  json sandbox() {
    if (!settings_.node_sandboxes) return {{"name", kSandboxVolume}, {"emptyDir", json::object()}};
    spec_["nodeSelector"][kube::kSandboxLabel] = "true";
    const auto owner = fmt::format("{}:{}", task_.user.uid, task_.user.gid);
    return {
        {"name", kSandboxVolume},
        {"csi", {{"driver", kube::kSandboxDriver}, {"volumeAttributes", {{kube::kSandboxOwner, owner}}}}}};
  }

  void volumes() {
    json mounts = json::array({{{"name", kSandboxVolume}, {"mountPath", kSandboxMount}}});
    json all = json::array({sandbox()});
    if (!task_.volumes.empty() && !settings_.host_paths)
      refuse("/volumes", "this cluster lets no task have folders of its node", "leave the volumes out");
    for (const auto& volume : task_.volumes) {
      const auto name = fmt::format("host-{}", all.size());
      const bool absolute = volume.container_path.starts_with('/');
      mounts.push_back({{"name", name},
                        {"mountPath", absolute ? volume.container_path
                                               : fmt::format("{}/{}", kSandboxMount, volume.container_path)},
                        {"readOnly", volume.read_only}});
      all.push_back({{"name", name}, {"hostPath", {{"path", volume.host_path}}}});
    }
    container_["volumeMounts"] = std::move(mounts);
    spec_["volumes"] = std::move(all);
    container_["workingDir"] = task_.working_directory.empty() ? kSandboxMount : task_.working_directory;
  }

  /// Brought by a container of their own, with the task's rights, before it begins.
  void files() {
    if (task_.fetch.empty()) return;
    if (settings_.helper_image.empty())
      return refuse("/fetch", "on this cluster no files are fetched: no image is named that could do it",
                    "start 'drover serve' with --helper-image, or put the files into the task's image");
    for (const auto& file : task_.fetch)
      if (!file.uri.starts_with("http://") && !file.uri.starts_with("https://"))
        return refuse("/fetch",
                      fmt::format("'{}' is on one machine, and a task may be on any node", file.uri),
                      "name a server's, by http or https");
    const container::FetchSpec order{.files = task_.fetch, .user = task_.user};
    auto resources = container_["resources"];
    for (const auto* amounts : {"requests", "limits"}) resources[amounts].erase(settings_.gpu_resource);
    resources.erase("claims");
    spec_["initContainers"] = json::array(
        {{{"name", "files"},
          {"image", settings_.helper_image},
          {"imagePullPolicy", "IfNotPresent"},
          {"command", {"/usr/bin/drover", "fetcher", "--into", kSandboxMount}},
          {"env", json::array({{{"name", container::kFetchOrder}, {"value", as_it_is(encode(order))}}})},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"resources", std::move(resources)},
          {"securityContext", container_["securityContext"]},
          {"volumeMounts", json::array({container_["volumeMounts"][0]})}}});
  }

  void network() {
    const bool host = task_.network.mode == workload::NetworkMode::kHost;
    const auto& wanted = task_.network.ports;
    if (wanted.empty()) return;  // the network of a pod does for it
    // Who names ports of the machine is to be found at those; all others have an address of their own.
    if (host && std::ranges::any_of(wanted, [](const auto& port) { return port.host_port != 0; }))
      spec_["hostNetwork"] = true;
    json ports = json::array();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto& port = wanted[i];
      const int number = i < order_.ports.size() ? order_.ports[i] : port.host_port;
      json written = {{"containerPort", host || port.container_port == 0 ? number : port.container_port}};
      if (port.host_port != 0 || spec_.contains("hostNetwork")) written["hostPort"] = number;
      for (const auto& [protocol, other] :
           {std::pair("TCP", workload::PortProtocol::kUdp), {"UDP", workload::PortProtocol::kTcp}}) {
        if (port.protocol == other) continue;
        written["protocol"] = protocol;
        ports.push_back(written);
      }
    }
    container_["ports"] = std::move(ports);
  }

  void ending() {
    spec_["terminationGracePeriodSeconds"] =
        std::chrono::ceil<std::chrono::seconds>(std::max(task_.grace, std::chrono::milliseconds(1000)))
            .count();
    if (const auto name = priority_class(task_.priority); !name.empty()) spec_["priorityClassName"] = name;
  }

  /// Without a terminal its end can be told only by the end of the connection.
  void input() {
    if (!task_.terminal && !task_.takes_input) return;
    container_["stdin"] = true;
    container_["tty"] = task_.terminal.has_value();
    container_["stdinOnce"] = !task_.terminal;
  }

  void what_there_is_not() {
    if (task_.privileged) refuse("/privileged", "on a cluster no task is privileged", "leave it out");
    if (!task_.devices.empty())
      refuse("/devices", "on a cluster no devices of other vendors are given so far", "leave them out");
    if (task_.batch.idle_timeout && !settings_.node_sandboxes)
      refuse("/idle_timeout", "nobody looks whether GPUs do nothing", kIdleHint);
    if (task_.processes)
      refuse("/processes", "on a cluster the nodes say how many processes a task may have", "leave it out");
    if (!task_.name_space.empty())
      refuse("/namespace", "on a cluster the user's own namespace is the task's", "leave it out");
  }

  const PodOrder& order_;
  const Task& task_;
  const PodSettings& settings_;
  json container_, spec_;
  std::vector<Error> mistakes_;
};

}  // namespace

bool is_dns_label(std::string_view text) {
  const auto inside = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= kLongestLabel && std::ranges::all_of(text, inside) &&
         text.front() != '-' && text.back() != '-';
}

std::string pod_name(const std::string& task, int attempt) {
  return fmt::format("{}-{}", task, attempt);
}

std::string name_space_of(const std::string& user, uid_t uid, const PodSettings& settings) {
  auto name = settings.name_space_prefix + user;
  // What DNS does not take goes by its number: no two users are one there.
  return is_dns_label(name) && !user.starts_with("uid-")
             ? name
             : fmt::format("{}uid-{}", settings.name_space_prefix, uid);
}

std::map<std::string, std::string> environment_of(container::Launch launch, const PodSettings& settings) {
  std::map<std::string, std::string> environment;
  if (auto& gang = launch.gang) {
    gang->first_address =
        gang_address(gang->id, name_space_of(launch.task.owner_name, launch.task.owner, settings));
    for (std::size_t rank = 0; rank < gang->hosts.size(); ++rank)
      gang->hosts[rank] = pod_name(fmt::format("{}-{}", gang->id, rank), launch.attempt);
    environment = container::gang_environment(*gang);
  }
  for (const auto& [name, value] : *launch.task.environment) environment[name] = value;
  for (const auto& [name, value] : container::own_environment(launch, nullptr, container::kSandboxMount))
    environment[name] = value;
  // Whoever gives it its GPUs says which; who has none is to see none, whatever the image says.
  const auto& wanted = launch.task.resources;
  if (wanted.gpu_count() > 0) environment.erase("NVIDIA_VISIBLE_DEVICES");
  // How much of a GPU's memory a part of it has depends on which one it gets.
  if (wanted.share.memory_bytes > 0)
    environment["DROVER_GPU_MEMORY"] = for_each_gpu(wanted, std::to_string(wanted.share.memory_bytes));
  else if (!wanted.share.whole())
    environment["DROVER_GPU_SHARE"] = for_each_gpu(wanted, fmt::format("{:g}", wanted.share.milli / 1000.0));
  return environment;
}

std::string gang_address(const std::string& gang, const std::string& name_space) {
  return fmt::format("{}{}.{}.svc", kGangService, gang, name_space);
}

namespace {

json owned_by(const json& metadata) {
  return json::array(
      {{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", metadata.at("name")}, {"uid", metadata.at("uid")}}});
}

}  // namespace

json write_secret(const json& pod, const std::map<std::string, std::string>& values) {
  const auto& of = pod.at("metadata");
  json metadata = {{"name", of.at("name")},
                   {"namespace", of.at("namespace")},
                   {"labels", {{"app.kubernetes.io/managed-by", "drover"}}}};
  if (of.contains("uid")) metadata["ownerReferences"] = owned_by(of);
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", std::move(metadata)},
          {"type", "Opaque"},
          {"stringData", values}};
}

json write_gang_service(const json& first) {
  const auto& metadata = first.at("metadata");
  const auto gang = metadata.at("labels").at(scheduler::kGangName).get<std::string>();
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", kGangService + gang},
            {"namespace", metadata.at("namespace")},
            {"labels", {{"app.kubernetes.io/managed-by", "drover"}}},
            {"ownerReferences", owned_by(metadata)}}},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector",
             {{kTaskLabel, metadata.at("labels").at(kTaskLabel)},
              {kAttemptLabel, metadata.at("labels").at(kAttemptLabel)}}}}}};
}

std::string priority_class(int priority) {
  return priority == 0 ? "" : fmt::format("drover-{}{}", priority < 0 ? "minus-" : "", std::abs(priority));
}

Error join(const std::vector<Error>& mistakes) {
  auto whole = mistakes.front();
  for (std::size_t i = 1; i < mistakes.size(); ++i) whole.message += "; " + mistakes[i].message;
  return whole;
}

Status check_task(const Task& task, const std::vector<workload::NodeRule>& rules,
                  const PodSettings& settings) {
  DROVER_CHECK_OK(check_place(task, rules));
  const std::map<std::string, std::string> environment;
  const auto pod = write_pod({.task = task, .environment = environment, .node_rules = rules}, settings);
  return pod ? Status() : Failure(join(pod.error()));
}

tl::expected<json, std::vector<Error>> write_pod(const PodOrder& order, const PodSettings& settings) {
  return PodWriter(order, settings).write();
}

}  // namespace drover::pods
