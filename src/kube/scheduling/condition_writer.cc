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
  std::vector<std::string> news;
  for (auto& told : all) {
    there.insert(told.uid);
    const auto [found, is_new] = entries_.try_emplace(told.uid);
    if (is_new) news.push_back(told.uid);
    found->second.wanted = std::move(told);
  }
  std::erase_if(entries_, [&](const auto& entry) { return !there.contains(entry.first); });
  // Whoever comes now is told before the many that have waited for a word: somebody may look at it.
  if (due_.size() > 2 * entries_.size()) due_.clear();  // most are gone, and it is filled anew
  due_.insert(due_.end(), news.rbegin(), news.rend());
  changed_.notify_one();
}

void ConditionWriter::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  entries_.erase(uid);
}

bool ConditionWriter::is_news(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  return !entries_.contains(uid);
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

ConditionWriter::Done ConditionWriter::write(const Told& told, bool is_first) {
  if (told.object.resource != kPods) return write_group(told);
  // That it waits is new only once.
  const auto patch = condition_patch({"PodScheduled", "False", told.reason, told.message,
                                      is_first ? std::optional(wall_clock()) : std::nullopt});
  auto status = told.object;
  status.subresource = "status";
  const auto done = api_.write(status, PatchType::kStrategic, patch);
  return done || done.error().kind == ErrorKind::kNotFound ? Done::kWritten : Done::kFailed;
}

/// As it stands there, since its condition tells of the time when it changed.
ConditionWriter::Done ConditionWriter::write_group(const Told& told) {
  const auto group = api_.get(told.object);
  if (!group) return group.error().kind == ErrorKind::kNotFound ? Done::kStoodThere : Done::kFailed;
  if (text_at(*group, "/metadata/uid") != told.uid) return Done::kStoodThere;
  const auto patch =
      scheduler::pod_group_status(told.object.resource, *group, told.outcome, told.message, wall_clock());
  if (!patch) return Done::kStoodThere;
  auto status = told.object;
  status.subresource = "status";
  return api_.write(status, PatchType::kStrategic, *patch) ? Done::kWritten : Done::kFailed;
}

void ConditionWriter::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    auto* entry = next(Clock::now());
    if (entry == nullptr) {
      changed_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      continue;
    }
    const bool is_first = !entry->written;
    const auto told = entry->wanted;
    entry->written = told;
    entry->at = Clock::now();
    entry->pause = std::min(limits_.at_most, std::max(limits_.again, 2 * entry->pause));
    lock.unlock();
    const auto done = write(told, is_first);
    if (done != Done::kStoodThere) pause(limits_.between, stop);
    lock.lock();
    if (done != Done::kFailed) continue;
    // Once more after its pause; the Event says the same meanwhile.
    if (const auto found = entries_.find(told.uid); found != entries_.end()) found->second.written.reset();
  }
}

}  // namespace drover::kube
