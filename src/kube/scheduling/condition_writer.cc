#include "kube/scheduling/condition_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/pause.h"

namespace drover::kube {

nlohmann::json condition_patch(const PodCondition& condition) {
  nlohmann::json written{{"type", condition.type},
                         {"status", condition.status},
                         {"reason", condition.reason},
                         {"message", condition.message}};
  if (condition.since)
    written["lastTransitionTime"] = format_time(std::chrono::floor<std::chrono::seconds>(*condition.since));
  return {{"status", {{"conditions", nlohmann::json::array({std::move(written)})}}}};
}

ConditionWriter::ConditionWriter(Api& api, ConditionLimits limits)
    : api_(api), limits_(limits), thread_([this](const std::stop_token& stop) { run(stop); }) {}

ConditionWriter::~ConditionWriter() = default;

void ConditionWriter::update(std::vector<Told> all) {
  const std::lock_guard lock(mutex_);
  std::unordered_set<std::string> there;
  for (auto& told : all) {
    there.insert(told.pod.uid);
    auto& entry = entries_[told.pod.uid];
    entry.pod = std::move(told.pod);
    entry.reason = std::move(told.reason);
    entry.wanted = std::move(told.message);
  }
  std::erase_if(entries_, [&](const auto& entry) { return !there.contains(entry.first); });
  changed_.notify_one();
}

void ConditionWriter::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  entries_.erase(uid);
}

bool ConditionWriter::is_news(const Told& told) const {
  const std::lock_guard lock(mutex_);
  return !entries_.contains(told.pod.uid);
}

ConditionWriter::Entry* ConditionWriter::next(Clock::time_point now) {
  const auto is_due = [&](const Entry& entry) {
    return entry.wanted != entry.written && now - entry.at >= entry.pause;
  };
  if (due_.empty()) {
    for (const auto& [uid, entry] : entries_)
      if (is_due(entry)) due_.push_back(uid);
    std::ranges::sort(due_, std::greater<>(), [this](const auto& uid) { return entries_.at(uid).at; });
  }
  while (!due_.empty()) {
    const auto found = entries_.find(due_.back());
    due_.pop_back();
    if (found != entries_.end() && is_due(found->second)) return &found->second;
  }
  return nullptr;
}

void ConditionWriter::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    auto* entry = next(Clock::now());
    if (entry == nullptr) {
      changed_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      continue;
    }
    // That it waits is new only once.
    const auto since = entry->written.empty() ? std::optional(wall_clock()) : std::nullopt;
    entry->written = entry->wanted;
    entry->at = Clock::now();
    entry->pause = std::min(limits_.at_most, std::max(limits_.again, 2 * entry->pause));
    const auto pod = entry->pod;
    const auto patch = condition_patch({"PodScheduled", "False", entry->reason, entry->wanted, since});
    lock.unlock();
    // When it fails it is written with the next change: the Event says the same meanwhile.
    (void)api_.patch({kPods, pod.name_space, pod.name, "status"}, PatchType::kStrategic, patch);
    pause(limits_.between, stop);
    lock.lock();
  }
}

}  // namespace drover::kube
