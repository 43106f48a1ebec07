#include "kube/plugin/chosen_gpus.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>
#include <tuple>
#include <utility>

#include "kube/client/object.h"
#include "kube/gpu_topology.h"
#include "kube/scheduler/fields.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMostChosen = 64;
constexpr std::size_t kLongestChoice = 8192;
constexpr scheduler::Nanos kOne = 1'000'000'000;
constexpr int kMostAsked = 1'000'000;

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Empty for what no scheduler writes.
std::vector<std::string> read_choice(std::string_view text) {
  if (text.empty() || text.size() > kLongestChoice) return {};
  std::set<std::string> uuids;
  for (;;) {
    const auto end = text.find(',');
    const auto uuid = text.substr(0, end);
    if (uuid.empty() || !uuids.emplace(uuid).second || uuids.size() > kMostChosen) return {};
    if (end == std::string_view::npos) return {uuids.begin(), uuids.end()};
    text.remove_prefix(end + 1);
  }
}

NodePod::Container read_container(scheduler::FieldReader& reader, const json& container) {
  NodePod::Container made;
  for (const auto& [name, quantity] : reader.quantities(reader.object(container, "resources"), "limits"))
    if (name.find('/') != std::string::npos && quantity >= kOne)
      made.devices[name] = static_cast<int>(std::min<scheduler::Nanos>(quantity / kOne, kMostAsked));
  return made;
}

int asked(const NodePod::Container& container, const std::string& resource) {
  const auto found = container.devices.find(resource);
  return found == container.devices.end() ? 0 : found->second;
}

/// No pod has more devices at once.
int most_of(const NodePod& pod) {
  int sum = 0;
  for (const auto& container : pod.containers)
    for (const auto& [name, count] : container.devices) sum = std::min(sum + count, kMostAsked);
  return sum;
}

std::size_t count_of(const std::vector<std::string>& free, const std::vector<std::string>& must) {
  auto all = std::set<std::string>(free.begin(), free.end());
  all.insert(must.begin(), must.end());
  return all.size();
}

}  // namespace

Result<NodePod> read_node_pod(const json& object) {
  scheduler::FieldReader reader;
  const auto& metadata = reader.object(object, "metadata");
  NodePod pod{.name = {reader.text(metadata, "namespace"), reader.text(metadata, "name")},
              .uid = reader.text(metadata, "uid"),
              .version = number_in(reader.text(metadata, "resourceVersion"))};
  const auto phase = reader.text(reader.object(object, "status"), "phase");
  pod.ended =
      phase == "Succeeded" || phase == "Failed" || !reader.text(metadata, "deletionTimestamp").empty();
  pod.waits = !pod.ended && phase != "Running";
  const auto& spec = reader.object(object, "spec");
  for (const auto& container : reader.objects(spec, "initContainers")) {
    pod.containers.push_back(read_container(reader, container));
    pod.containers.back().starts_others = reader.text(container, "restartPolicy") != "Always";
  }
  for (const auto& container : reader.objects(spec, "containers"))
    pod.containers.push_back(read_container(reader, container));
  const auto annotations = reader.text_map(metadata, "annotations");
  if (const auto chosen = annotations.find(kChosenGpusAnnotation); chosen != annotations.end())
    pod.gpus = read_choice(chosen->second);
  if (std::cmp_greater(pod.gpus.size(), most_of(pod))) pod.gpus.clear();
  DROVER_CHECK_OK(reader.status("the pod"));
  return pod;
}

ChosenGpus::ChosenGpus(std::vector<NodePod> pods, PodResources told)
    : pods_(std::move(pods)), taken_in_(std::move(told.pods)) {
  std::ranges::sort(pods_, {}, [](const NodePod& pod) { return std::tie(pod.version, pod.name); });
  for (const auto& container : told.containers)
    for (const auto& use : container.devices) {
      auto& held = held_[{container.pod_namespace, container.pod}];
      held.devices.insert(use.device_ids.begin(), use.device_ids.end());
      ++held.containers[use.resource];
    }
}

const ChosenGpus::Held& ChosenGpus::held_by(const NodePod& pod) const {
  static const Held kNothing;
  const auto found = held_.find(pod.name);
  return found == held_.end() ? kNothing : found->second;
}

bool ChosenGpus::may_ask(const NodePod& pod, const DeviceQuestion& question) const {
  int lasting = 0;
  bool asks = false;
  for (const auto& container : pod.containers) {
    const int count = asked(container, question.resource);
    asks = asks || count == question.size;
    if (count > 0 && !container.starts_others) ++lasting;
  }
  const auto& served = held_by(pod).containers;
  const auto shown = served.find(question.resource);
  return taken_in_.contains(pod.name) && asks && (shown == served.end() || shown->second < lasting);
}

bool ChosenGpus::has_all(const NodePod& pod) const {
  std::map<std::string, int> lasting;
  for (const auto& container : pod.containers)
    for (const auto& [name, count] : container.devices)
      if (!container.starts_others) ++lasting[name];
  const auto& served = held_by(pod).containers;
  return !served.empty() &&
         std::ranges::all_of(served, [&](const auto& shown) { return shown.second >= lasting[shown.first]; });
}

/// Where another has got them, what was chosen for that one is left for this; and so on.
std::vector<std::string> ChosenGpus::choice_of(const NodePod& pod) const {
  auto choice = pod.gpus;
  for (std::size_t i = 0; i < pods_.size() && !choice.empty(); ++i) {
    const std::set<std::string> wanted(choice.begin(), choice.end());
    const auto taker = std::ranges::find_if(pods_, [&](const NodePod& other) {
      return other.uid != pod.uid && !other.ended && held_by(other).devices == wanted;
    });
    if (taker == pods_.end()) return choice;
    if (taker->gpus.size() != choice.size() || taker->gpus == choice) break;
    choice = taker->gpus;
  }
  return pod.gpus;
}

/// Of several that may be the one, the kubelet has turned away those that came before.
DeviceHint ChosenGpus::hint(const DeviceQuestion& question) const {
  DeviceHint hint;
  for (const auto& pod : std::views::reverse(pods_)) {
    if (!pod.waits || has_all(pod)) continue;
    const auto choice = choice_of(pod);
    if (!hint.is_known && may_ask(pod, question)) {
      hint.is_known = true;
      hint.take = choice;
    } else {
      hint.leave.insert(choice.begin(), choice.end());
    }
  }
  return hint;
}

std::vector<ChoiceCorrection> ChosenGpus::corrections(const std::set<std::string>& gpus) const {
  std::vector<ChoiceCorrection> of_waiting, of_served;
  for (const auto& pod : pods_) {
    if (pod.ended) continue;
    const auto& held = held_by(pod);
    if (held.containers.empty() && pod.waits) {
      if (auto choice = choice_of(pod); choice != pod.gpus)
        of_waiting.push_back({pod.name, pod.uid, std::move(choice)});
      continue;
    }
    std::vector<std::string> truth;
    std::ranges::set_intersection(held.devices, gpus, std::back_inserter(truth));
    if (!truth.empty() && truth != pod.gpus && has_all(pod))
      of_served.push_back({pod.name, pod.uid, std::move(truth)});
  }
  std::ranges::move(of_served, std::back_inserter(of_waiting));
  return of_waiting;
}

std::vector<std::string> narrowed(const std::vector<std::string>& free, const std::vector<std::string>& must,
                                  int size, const DeviceHint& hint) {
  auto chosen = free;
  std::erase_if(chosen, [&](const auto& id) { return std::ranges::find(hint.take, id) == hint.take.end(); });
  if (std::cmp_greater_equal(count_of(chosen, must), size)) return chosen;
  auto rest = free;
  std::erase_if(rest, [&](const auto& id) { return hint.leave.contains(id); });
  return std::cmp_greater_equal(count_of(rest, must), size) ? rest : free;
}

}  // namespace drover::kube
