// Pods whose place is decided, and that are bound when their volumes are.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/shorten.h"
#include "base/units.h"
#include "kube/scheduler/predicates.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {
namespace {

constexpr auto kUntilTriedAgain = std::chrono::seconds(10);

bool is_to_be_had_on(const Volume& volume, const Cluster& cluster, const std::string& name) {
  const auto node = cluster.nodes().find(name);
  return node != cluster.nodes().end() && node->second.node &&
         (!volume.node_terms || matches(*volume.node_terms, node->second.node->labels, ""));
}

struct Progress {
  bool bound = false;
  std::string lost = {};  ///< why it will never be, in words; "": it may
};

/// Of one claim. What is removed again, having been told once, has failed: so its provisioner says.
Progress progress_of(VolumeDecision& decision, const Cluster& cluster, const std::string& node) {
  const auto name = shortened(decision.claim);
  const auto* const claim = cluster.volume_claim(decision.name_space, decision.claim);
  if (claim == nullptr || claim->uid != decision.claim_uid)
    return {false, fmt::format("its PersistentVolumeClaim '{}' is gone", name)};
  if (claim->bound) {
    const auto* const volume = cluster.volume(claim->volume_name);
    if (volume == nullptr) return {};  // it is told of late
    if (is_to_be_had_on(*volume, cluster, node)) return {true, ""};
    return {false,
            fmt::format("the volume of its PersistentVolumeClaim '{}' cannot be had on '{}'", name, node)};
  }
  if (decision.volume.empty()) {
    if (claim->selected_node == node)
      decision.told = true;
    else if (decision.told)
      return {false,
              fmt::format("no volume could be made for its PersistentVolumeClaim '{}' on '{}'", name, node)};
    return {};
  }
  const auto* const volume = cluster.volume(decision.volume);
  if (volume == nullptr || (volume->owner && !is_owner(*volume->owner, *claim)))
    return {false,
            fmt::format("the PersistentVolume '{}' is gone, or another's", shortened(decision.volume))};
  return {};
}

}  // namespace

/// For its claims that are not bound: from now on that counts.
void Scheduler::keep_volumes(Known& known, std::vector<VolumeDecision> volumes, const std::string& node) {
  known.volumes = std::move(volumes);
  for (const auto& decision : known.volumes) cluster_.keep(decision, node);
  if (!known.volumes.empty()) eligible_.note_all();
}

void Scheduler::drop_volumes(Known& known) {
  if (known.volumes.empty()) return;
  for (const auto& decision : std::exchange(known.volumes, {})) cluster_.drop(decision);
  eligible_.note_all();
  changed_ = true;
}

/// False when none of its pods has to wait for volumes.
bool Scheduler::begin_volumes(const Start& start, TimePoint now, Round& round) {
  const auto before = round.volumes.size();
  for (const auto& binding : start.bindings)
    if (const auto& volumes = pods_.at(binding.pod.uid).volumes; !volumes.empty())
      round.volumes.push_back({binding.pod, binding.node, volumes});
  if (round.volumes.size() == before) return false;
  const auto until = now + options_.volume_patience;
  volume_waits_.push_back({start, until});
  round.retry_at = std::min(round.retry_at.value_or(until), until);
  return true;
}

/// What is bound starts, all of a gang together; what cannot be is planned anew.
void Scheduler::end_volumes(TimePoint now, Round& round, const OnStart& on_start) {
  std::erase_if(volume_waits_, [&](const VolumeWait& wait) {
    bool all = true;
    std::string lost;
    for (const auto& binding : wait.start.bindings) {
      const auto found = pods_.find(binding.pod.uid);
      if (found == pods_.end() || !found->second.decided || found->second.node != binding.node) {
        lost = "a pod that was to start together with it is gone, or could not be given its volumes";
        break;
      }
      for (auto& decision : found->second.volumes) {
        auto progress = progress_of(decision, cluster_, binding.node);
        all = all && progress.bound;
        if (lost.empty()) lost = std::move(progress.lost);
      }
    }
    if (lost.empty() && !all && now >= wait.until)
      lost = fmt::format("its volumes were not there within {}", format_duration(options_.volume_patience));
    if (!lost.empty()) {
      end_wait(wait, lost, now, round);
      return true;
    }
    if (!all) {
      round.retry_at = std::min(round.retry_at.value_or(wait.until), wait.until);
      for (const auto& binding : wait.start.bindings)
        hold({binding.pod.uid}, placement::Dimension::kHeld,
             fmt::format("has room on '{}', and waits until its volumes are bound there", binding.node),
             round);
      return false;
    }
    for (const auto& binding : wait.start.bindings) drop_volumes(pods_.at(binding.pod.uid));
    tell_start(wait.start, round, on_start);
    return true;
  });
}

void Scheduler::end_wait(const VolumeWait& wait, const std::string& why, TimePoint now, Round& round) {
  const auto again = now + kUntilTriedAgain;
  for (const auto& binding : wait.start.bindings) {
    const auto found = pods_.find(binding.pod.uid);
    if (found == pods_.end() || !found->second.decided || found->second.node != binding.node) continue;
    round.volume_undos.push_back({{binding.pod, binding.node, found->second.volumes}, why});
    found->second.not_before = again;
    take_back(binding.pod.uid);
  }
}

}  // namespace drover::kube::scheduler
