#include "kube_node/shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "kube/usage/attribution.h"
#include "share_facts.h"

namespace drover {
namespace {

constexpr std::chrono::seconds kRuntimePatience{2};
constexpr std::size_t kMostVerdicts = 1000;  ///< that wait

bool is_same(const share::Shares& one, const share::Shares& other) {
  return std::tie(one.gpus, one.allowances, one.guarded) ==
         std::tie(other.gpus, other.allowances, other.guarded);
}

}  // namespace

KubeShares::KubeShares(const cli::KubeNodeOptions& options, KubeGpus& gpus,
                       std::function<void(const std::string&)> warn)
    : options_(options),
      gpus_(gpus),
      warn_(std::move(warn)),
      judge_([this](const std::stop_token& stop) { keep_judging(stop); }),
      watch_([this] { return gpus_.nvml(); }, punishment_of(options.share_offence),
             [this](std::vector<share::Verdict> verdicts) {
               const std::lock_guard lock(mutex_);
               // While the runtime does not answer. Whoever still holds too much is told of again.
               if (verdicts_.size() >= kMostVerdicts) return;
               std::ranges::move(verdicts, std::back_inserter(verdicts_));
               news_.notify_all();
             }) {}

void KubeShares::reach(std::shared_ptr<kube::Api> api) {
  const std::lock_guard lock(mutex_);
  if (events_) return;
  api_ = std::move(api);
  events_ = std::make_unique<kube::EventRecorder>(*api_, kube::EventSource{.host = options_.node_name},
                                                  [this](const Error& error) { warn_(to_string(error)); });
}

kube::EventRecorder* KubeShares::events() const {
  const std::lock_guard lock(mutex_);
  return events_.get();
}

Status KubeShares::look(const kube::NodeShares& node) {
  if (node.empty() && watched_.gpus.empty()) return {};
  DROVER_TRY(const auto running, kube::list_containers(options_.runtime_endpoint, kRuntimePatience));
  const auto pods = kube::pod_shares(node, {options_.driver, options_.node_name}, running);
  auto shares = kube::watched_shares(gpus_.inventory(), pods, running);
  shares.owners = [this, owners = std::move(shares.owners)] { return noticing(owners()); };
  bool is_news = !is_same(shares, watched_);
  {
    const std::lock_guard lock(mutex_);
    is_news = is_news || running != running_;
    running_ = running;
  }
  if (is_news) watch_.set(shares);
  watched_ = std::move(shares);
  // Whoever could not be told is told when the cluster is reached.
  if (events() != nullptr) tell(pods);
  return {};
}

gpu::TaskOf KubeShares::noticing(gpu::TaskOf task_of) {
  return [this, task_of = std::move(task_of)](std::string_view cgroups) {
    auto task = task_of(cgroups);
    if (!task.empty()) return task;
    const std::lock_guard lock(mutex_);
    if (newcomers_.see(cgroups)) {
      newcomer_ = true;
      news_.notify_all();
    }
    return task;
  };
}

bool KubeShares::wait_for_newcomer(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, patience, [this] { return newcomer_ || stopped_; });
  return std::exchange(newcomer_, false);
}

void KubeShares::stop_waiting() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  news_.notify_all();
}

void KubeShares::tell(const std::vector<kube::PodShare>& shares) {
  decltype(told_) told;
  for (const auto& share : shares) {
    if (share.about.name.empty()) continue;
    const auto& [key, is_new] = told.emplace(share.name, share.about);
    if (is_new && !told_.contains(*key)) tell(share);
  }
  told_ = std::move(told);
}

void KubeShares::tell(const kube::PodShare& pod) const {
  std::vector<std::string> parts;
  for (const auto& limit : pod.limits)
    parts.push_back(fmt::format("{} of {}", format_bytes(limit.bytes), in_words(limit.gpu)));
  const auto share = fmt::format("{}", fmt::join(parts, ", "));
  const bool guarded = !pod.pages.empty();
  events()->record(
      pod.about,
      {.reason = guarded ? "ShareGuarded" : "ShareCounted",
       .message =
           guarded ? fmt::format("pods see as the whole card, and are refused more than, {}", share)
                   : fmt::format("nothing holds pods to {}: the log of 'drover kube node' says why", share)});
}

void KubeShares::keep_judging(const std::stop_token& stop) {
  for (;;) {
    std::vector<share::Verdict> verdicts;
    std::vector<kube::RunningContainer> running;
    {
      std::unique_lock lock(mutex_);
      if (!news_.wait(lock, stop, [this] { return !verdicts_.empty(); })) return;
      verdicts.swap(verdicts_);
      running = running_;
    }
    for (const auto& verdict : verdicts)
      if (const auto container = std::ranges::find(running, verdict.task, &kube::RunningContainer::id);
          container != running.end())
        judge(verdict, *container);
  }
}

void KubeShares::judge(const share::Verdict& verdict, const kube::RunningContainer& container) const {
  const bool ends = verdict.kind == share::Verdict::Kind::kEnd;
  const auto words = in_words(verdict) + (ends ? ": it is ended" : "");
  warn_(fmt::format("the container '{}' of the pod '{}/{}' {}", container.container, container.pod_namespace,
                    container.pod, words));
  tell(container, fmt::format("the container '{}' {}", container.container, words));
  if (!ends) return;
  if (const auto ended = kube::kill_container(options_.runtime_endpoint, container.id, kRuntimePatience);
      !ended)
    warn_(to_string(ended.error()));
}

void KubeShares::tell(const kube::RunningContainer& container, const std::string& words) const {
  if (events() == nullptr) return;
  events()->record(
      {.kind = "Pod", .name_space = container.pod_namespace, .name = container.pod, .uid = container.pod_uid},
      {.warning = true, .reason = "GpuShareExceeded", .message = words});
}

/// "held 9.3 GiB of GPU 2 and may hold 8 GiB"
std::string KubeShares::in_words(const share::Verdict& verdict) const {
  const auto* who = verdict.allowance.tasks.size() > 1 ? "and the others with its claim held" : "held";
  return fmt::format("{} {} of {} and may hold {}", who, format_bytes(verdict.held),
                     in_words(verdict.allowance.gpu), format_bytes(verdict.allowance.bytes));
}

std::string KubeShares::in_words(const std::string& gpu) const {
  for (const auto& device : gpus_.inventory().devices)
    if (device.uuid == gpu) return fmt::format("GPU {}", device.index);
  return gpu;
}

void KubeShares::add_to(metrics::MachineFacts& facts) const {
  std::vector<kube::RunningContainer> running;
  {
    const std::lock_guard lock(mutex_);
    running = running_;
  }
  const auto owner_of = [&](const std::string& id) -> std::optional<metrics::Owner> {
    const auto found = std::ranges::find(running, id, &kube::RunningContainer::id);
    return found == running.end() ? std::nullopt : std::optional(kube::owner_of(*found));
  };
  add_shares(watch_.figures(), owner_of, facts);
}

}  // namespace drover
