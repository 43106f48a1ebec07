#include "kube_node/sandboxes.h"

#include <algorithm>
#include <utility>

namespace drover {
namespace {

constexpr std::chrono::minutes kTellAgain{1};
/// Measuring takes no more than this part of the time.
constexpr int kPartOfTime = 8;

}  // namespace

KubeSandboxes::KubeSandboxes(const cli::KubeNodeOptions& options, std::string version, kube::PodCalls pods,
                             std::function<void(const std::string& sentence)> log)
    : options_(options),
      is_on_(std::ranges::find(options.roles, "sandboxes") != options.roles.end()),
      version_(std::move(version)),
      pods_(std::move(pods)),
      log_(std::move(log)),
      trouble_(log_),
      tidy_trouble_(log_),
      label_trouble_(log_) {}

void KubeSandboxes::serve() {
  if (is_on_) trouble_.report(begin());
}

Status KubeSandboxes::begin() {
  if (!driver_) {
    DROVER_TRY(auto opened, kube::SandboxStore::open(options_.kubelet));
    const std::lock_guard lock(mutex_);
    if (!store_) store_.emplace(std::move(opened));
    DROVER_TRY(service_, kube::SandboxService::listen(*store_, pods_));
    driver_ = std::make_unique<kube::SandboxDriver>(
        kube::SandboxDriverOptions{options_.node_name, options_.kubelet, version_, log_}, *store_);
  }
  return driver_->keep();
}

kube::SandboxStore* KubeSandboxes::store() {
  const std::lock_guard lock(mutex_);
  return store_ ? &*store_ : nullptr;
}

void KubeSandboxes::tidy() {
  auto* const kept = store();
  const auto began = std::chrono::steady_clock::now();
  if (kept == nullptr || began < next_tidying_) return;
  tidy_trouble_.report(kept->tidy(wall_clock() - options_.keep_sandboxes));
  const auto ended = std::chrono::steady_clock::now();
  next_tidying_ = ended + kPartOfTime * (ended - began);
}

void KubeSandboxes::tell(kube::Api& api) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_telling_) return;
  if (is_on_) {
    const std::lock_guard lock(mutex_);
    if (!driver_ || !driver_->is_registered()) return;
  }
  const auto told = kube::label_sandboxes(api, options_.node_name, is_on_);
  label_trouble_.report(told ? Status()
                             : Failure(context(told.error(), "the cluster is not told of sandboxes")));
  if (told) next_telling_ = now + kTellAgain;
}

}  // namespace drover
