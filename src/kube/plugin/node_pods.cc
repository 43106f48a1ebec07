#include "kube/plugin/node_pods.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/json_text.h"
#include "kube/gpu_topology.h"

namespace drover::kube {
namespace {

// Before the kubelet is asked again, which has just started or answers so many a second.
constexpr std::chrono::milliseconds kPause{50};

std::string selector_of(const std::string& node) {
  return "spec.nodeName=" + node;
}

}  // namespace

NodePods::NodePods(NodePodsOptions options) : options_(std::move(options)), trouble_(options_.warn) {}

void NodePods::follow(std::shared_ptr<Api> api) {
  const std::lock_guard lock(mutex_);
  api_ = std::move(api);
  InformerOptions<NodePod> following;
  following.selection = {.resource = kPods, .field_selector = selector_of(options_.node)};
  following.read = read_node_pod;
  following.on_change = [this](const Change<NodePod>& change) { note(change); };
  following.on_trouble = [warn = options_.warn](const Error& error) {
    if (warn) warn(to_string(context(error, "GPUs that were chosen for pods are not known")));
  };
  informer_.emplace(*api_, std::move(following));
}

void NodePods::note(const Change<NodePod>& change) {
  const std::lock_guard lock(mutex_);
  if (!change.now)
    bound_.erase(change.before->uid);
  else
    bound_.try_emplace(change.now->uid, change.now->version);
}

std::shared_ptr<Api> NodePods::api() const {
  const std::lock_guard lock(mutex_);
  return api_;
}

std::vector<NodePod> NodePods::known() const {
  std::vector<NodePod> pods;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, pod] : informer_->objects()) {
    pods.push_back(*pod);
    if (const auto bound = bound_.find(pod->uid); bound != bound_.end()) pods.back().version = bound->second;
  }
  return pods;
}

Result<std::vector<NodePod>> NodePods::ask(Api& api) const {
  std::vector<NodePod> pods;
  const auto take = [&](const nlohmann::json& item) {
    if (auto pod = read_node_pod(item)) pods.push_back(std::move(*pod));
  };
  DROVER_CHECK_OK(api.send({.verb = "list",
                            .path = {kPods},
                            .query = {{"fieldSelector", selector_of(options_.node)}},
                            .patience = options_.patience},
                           {}, take));
  const std::lock_guard lock(mutex_);
  for (auto& pod : pods)
    if (const auto bound = bound_.find(pod.uid); bound != bound_.end()) pod.version = bound->second;
  return pods;
}

DeviceHint NodePods::hint(const DeviceQuestion& question) {
  const auto api = this->api();
  if (!api) return {};
  const auto told = ask_kubelet();
  auto hint = ChosenGpus(known(), told.value_or(PodResources())).hint(question);
  if (hint.is_known || !told) return hint;
  if (auto pods = ask(*api)) hint = ChosenGpus(std::move(*pods), *told).hint(question);
  return hint;
}

/// Without it nobody can be taken for the one who asks.
Result<PodResources> NodePods::ask_kubelet() const {
  const auto end = std::chrono::steady_clock::now() + options_.patience;
  auto told = options_.resources();
  for (; !told && std::chrono::steady_clock::now() < end; told = options_.resources())
    std::this_thread::sleep_for(kPause);
  return told;
}

void NodePods::correct(const std::set<std::string>& gpus) {
  const auto api = this->api();
  if (!api) return;
  auto pods = known();
  if (pods.empty()) return;
  auto told = options_.resources();
  if (!told) return;  // who asks them all the time tells of it
  const auto corrections = ChosenGpus(std::move(pods), std::move(*told)).corrections(gpus);
  if (corrections.empty()) return;
  const auto running = options_.pod_uids();
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(corrected_, [&](const auto& one) { return now - one.second >= options_.again; });
  Status outcome;
  for (const auto& correction : corrections) {
    if (running)
      if (const auto uid = running->find(correction.pod);
          uid != running->end() && uid->second != correction.uid)
        continue;
    if (!corrected_.emplace(correction.uid, now).second) continue;
    if (auto written = write(*api, correction); !written) outcome = std::move(written);
  }
  trouble_.report(outcome);
}

/// Fine when the pod is gone, or another.
Status NodePods::write(Api& api, const ChoiceCorrection& correction) const {
  const nlohmann::json patch = {
      {"metadata",
       {{"uid", correction.uid},
        {"annotations",
         {{std::string(kChosenGpusAnnotation), fmt::format("{}", fmt::join(correction.gpus, ","))}}}}}};
  const auto done = api.send({.verb = "patch",
                              .path = {kPods, correction.pod.name_space, correction.pod.name},
                              .content_type = "application/merge-patch+json",
                              .body = to_text(patch),
                              .patience = options_.patience});
  if (done) return {};
  const auto kind = done.error().kind;
  if (kind == ErrorKind::kNotFound || kind == ErrorKind::kConflict || kind == ErrorKind::kInvalid) return {};
  return Failure(context(done.error(), "pods are not told which GPUs they have"));
}

}  // namespace drover::kube
