#include "cli/commands/on_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/definitions/document.h"
#include "cli/definitions/files.h"
#include "cli/flags.h"
#include "cli/printable.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// It could run, but not now.
constexpr int kWaitsOnCluster = 1;

/// Of a request: what a pod has too.
const std::set<std::string> kOfPods{"gpus",   "cpus",  "memory", "queue",   "namespace", "name",
                                    "labels", "image", "gang",   "command", "user",      "working_directory",
                                    "env"};

std::string quantity(double cpus) {
  return fmt::format("{}m", static_cast<std::int64_t>(cpus * 1000 + 0.5));
}

void report_unread(const json& answer) {
  for (const auto& warning : answer.value("warnings", json::array()))
    report(printable(warning.get<std::string>()));
}

std::string place_in_queue(const json& pod) {
  if (pod.value("place", 0) == 0) return "";
  return fmt::format(" at place {} of {}", pod.value("place", 0), pod.value("of", 0)) + ", queue " +
         pod.value("queue", "");
}

/// "Pod team/train waits at place 2 of 3, queue default", and below it what its condition says.
std::string told_of(const json& pod, bool planned) {
  const auto state = pod.value("state", "");
  auto text = "Pod " + pod.value("pod", "");
  if (state == "waits")
    text += (planned ? " would wait" : " waits") + place_in_queue(pod);
  else if (state == "starts")
    text += " would start now on " + pod.value("node", "");
  else if (state == "bound")
    text += " is on " + pod.value("node", "");
  else
    text += planned ? " would not start now" : " is not planned";
  text += "\n";
  if (const auto gpus = pod.value("gpus", std::vector<std::string>()); !gpus.empty())
    text += fmt::format("  with GPU {}\n", fmt::join(gpus, ", "));
  for (const auto& end : pod.value("ends", json::array()))
    text += "  would end: " + end.get<std::string>() + "\n";
  if (const auto message = pod.value("message", ""); !message.empty()) text += "  " + message + "\n";
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    shown += printable(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return shown;
}

Result<std::vector<json>> pods_of_file(const std::string& file) {
  DROVER_TRY(const auto text, read_definition_text(file));
  auto documents = parse_documents(text, false);
  if (!documents)
    return fail(ErrorKind::kInvalid,
                fmt::format("{}:{}: {}", file, documents.error().place.line, documents.error().message),
                documents.error().hint);
  std::vector<json> pods;
  for (auto& document : *documents) {
    if (document.value.is_object() && document.value.value("kind", "") == "List")
      for (auto& item : document.value["items"]) pods.push_back(std::move(item));
    else
      pods.push_back(std::move(document.value));
  }
  if (pods.empty()) return fail(ErrorKind::kInvalid, fmt::format("{}: there is no Pod in it", file));
  return pods;
}

}  // namespace

void add_kube_cluster_flags(CLI::App& command, KubeClusterOptions& options) {
  command.add_option("--kubeconfig", options.kubeconfig, "How to reach the API server, outside of a pod")
      ->type_name("FILE");
  command.add_option("--scheduler-name", options.name, "The schedulerName of pods that it decides for")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--gpu-resource", options.gpu_resource, "The resource by which pods ask for GPUs")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--policy", options.policy,
                  "Of several nodes that fit: the fullest, the emptiest, or the one where the least is lost "
                  "for others")
      ->check(one_of({"pack", "spread", "fragmentation"}))
      ->type_name("pack|spread|fragmentation")
      ->capture_default_str();
}

void add_on_cluster_flags(CLI::App& command, OnCluster& options, bool by_switch) {
  constexpr const char* kGroup = "On a Kubernetes cluster";
  CLI::Option* asked = nullptr;
  if (by_switch) {
    asked = command.add_flag("--kube", options.asked, "Of a Kubernetes cluster, with your own rights there");
    asked->group(kGroup);
  }
  const auto before = command.get_options();
  add_kube_cluster_flags(command, options);
  for (auto* option : command.get_options()) {
    if (std::ranges::find(before, option) != before.end()) continue;
    option->group(kGroup);
    if (asked != nullptr) option->needs(asked);
  }
}

Result<std::vector<json>> pods_of_flags(const TaskFlags& flags, const std::vector<std::string>& command,
                                        const KubeClusterOptions& cluster) {
  DROVER_TRY(const auto request, task_request(flags, command));
  for (const auto& [field, value] : request.items())
    if (!kOfPods.contains(field))
      return Failure(in_flags({ErrorKind::kUnsupported, "it is not known on a cluster",
                               "write a Pod that says it, and name the file with -f", "/" + field}));
  json limits = json::object();
  if (request.contains("gpus")) {
    if (!request["gpus"].is_number_integer())
      return Failure(in_flags({ErrorKind::kUnsupported, "pods ask for whole GPUs",
                               "ask for other devices in a claim, and name the file with -f", "/gpus"}));
    limits[cluster.gpu_resource] = request["gpus"];
  }
  if (request.contains("cpus")) limits["cpu"] = quantity(request["cpus"].get<double>());
  if (request.contains("memory")) limits["memory"] = request["memory"];
  json metadata{{"generateName", request.value("name", "planned") + "-"}};
  if (request.contains("namespace")) metadata["namespace"] = request["namespace"];
  if (request.contains("labels")) metadata["labels"] = request["labels"];
  if (request.contains("queue")) metadata["labels"]["drover/queue"] = request["queue"];
  const json container{
      {"name", "task"}, {"image", request.value("image", "none")}, {"resources", {{"limits", limits}}}};
  const json spec{{"schedulerName", cluster.name}, {"containers", {container}}};
  const int size = request.value("/gang/size"_json_pointer, 1);
  if (request.contains("gang")) {
    metadata["labels"]["drover/gang"] = "drover-plan";
    metadata["annotations"]["drover/gang-size"] = std::to_string(size);
  }
  return std::vector<json>(static_cast<std::size_t>(std::clamp(size, 1, 1000)),
                           {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}});
}

Result<int> explain_pod(Context& context, const OnCluster& options, const std::string& pod, bool as_json) {
  DROVER_TRY(const auto answer, context.hooks->kube_explain(options, pod));
  report_unread(answer);
  if (as_json)
    print_json(answer);
  else
    print(told_of(answer, false));
  return 0;
}

Result<int> plan_pods(Context& context, const OnCluster& options, const std::string& file,
                      const TaskFlags& flags, bool as_json) {
  auto pods = file.empty() ? pods_of_flags(flags, context.command, options) : pods_of_file(file);
  if (!pods) return Failure(pods.error());
  DROVER_TRY(const auto answer, context.hooks->kube_plan(options, *pods));
  report_unread(answer);
  if (as_json) {
    print_json(answer);
  } else {
    std::string said;
    for (auto pod : answer.at("pods")) {
      if (pod.value("message", "") == said) pod.erase("message");  // of a gang it is said once
      if (pod.contains("message")) said = pod["message"].get<std::string>();
      print(told_of(pod, true));
    }
  }
  return answer.value("starts_now", false) ? 0 : kWaitsOnCluster;
}

Result<json> list_queues_of_cluster(Context& context, const OnCluster& options) {
  DROVER_TRY(auto answer, context.hooks->kube_queues(options));
  report_unread(answer);
  return answer;
}

}  // namespace drover::cli
