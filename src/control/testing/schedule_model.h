#pragma once

// What schedules must do, told in short: which runs start, and why, given what the daemon was told and when.
// It shares no code with what it is compared with but the values.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "control/event.h"
#include "control/record.h"
#include "control/testing/schedule_times.h"
#include "workload/schedule.h"

namespace drover::control::testing {

/// Schedule, time of the run, attempt.
using ExpectedRun = std::tuple<std::string, TimePoint, int>;

class ScheduleModel {
 public:
  struct Retry {
    TimePoint not_before;
    int attempt;
    TimePoint due;
  };
  struct Entry {
    workload::Schedule schedule;
    std::optional<ScheduleTimes> times;
    TimePoint floor{};     ///< what lies before it had passed when these times were given
    TimePoint reckoned{};  ///< times until then have passed
    TimePoint looked{};    ///< when it was last seen what is due
    std::set<std::string> active;
    std::map<std::string, int> attempts;  ///< of the active ones
    std::map<std::string, TimePoint> dues;
    std::vector<Retry> retries;
    std::set<std::string> succeeded;
    std::uint64_t successes = 0, errors = 0;
    std::optional<TimePoint> last_success, last_error;
  };

  std::map<std::string, Entry> entries;
  std::int64_t timed = 0, late = 0, overlapping = 0, retried = 0, released = 0;

  /// What its people know of the definition that they send.
  void announce(const std::string& name, std::optional<ScheduleTimes> times) { announced_[name] = times; }

  /// The runs that start by this event, in order; `ended` are the runs that ended by it.
  std::vector<ExpectedRun> expect(const Event& event, const std::vector<TaskRecord>& ended, TimePoint now) {
    starts_.clear();
    std::visit([&](const auto& specific) { take(specific, now); }, event);
    for (const auto& task : ended) end(task, now);
    return starts_;
  }
  void started(const TaskRecord& task, const ExpectedRun& run) {
    auto& entry = entries.at(std::get<0>(run));
    entry.active.insert(task.task.id);
    entry.dues[task.task.id] = std::get<1>(run);
    entry.attempts[task.task.id] = std::get<2>(run);
  }

  /// The first thing that should have been done between these times and was not; "" when there is none.
  std::string overdue(TimePoint since, TimePoint until) const {
    for (const auto& [name, entry] : entries) {
      if (entry.times)
        if (const auto next = entry.times->next_from(std::max({entry.reckoned, entry.looked, since}) + 1ms);
            next && *next <= until)
          return "'" + name + "' did not run when it was due";
      for (const auto& retry : entry.retries)
        if (retry.not_before > std::max(entry.looked, since) && retry.not_before <= until)
          return "'" + name + "' was not tried again";
    }
    return "";
  }

 private:
  template <typename Other>
  void take(const Other&, TimePoint) {}

  void take(const event::ScheduleDefined& event, TimePoint now) {
    const auto& name = event.schedule.name;
    auto& entry = entries[name];
    if (entry.schedule.parents != event.schedule.parents) entry.succeeded.clear();
    entry.schedule = event.schedule;
    const auto& times = announced_.at(name);
    const bool same =
        times && entry.times && times->text() == entry.times->text() && times->zone() == entry.times->zone();
    if (!same) entry.floor = now - event.schedule.epsilon;
    entry.times = times;
    entry.looked = now;
    entry.retries.clear();
  }

  void take(const event::ScheduleRemoved& event, TimePoint now) {
    const auto gone = entries.extract(event.name);
    for (auto& [name, child] : entries) {
      auto& parents = child.schedule.parents;
      if (parents.erase(event.name) == 0) continue;
      child.succeeded.erase(event.name);
      parents.insert(gone.mapped().schedule.parents.begin(), gone.mapped().schedule.parents.end());
      if (!parents.empty()) continue;
      child.succeeded.clear();
      child.schedule.repetition = gone.mapped().schedule.repetition;
      child.schedule.time_zone = gone.mapped().schedule.time_zone;
      child.times = gone.mapped().times;
      child.floor = gone.mapped().floor;
      child.reckoned = std::max(child.reckoned, gone.mapped().reckoned);
      child.looked = now;
    }
  }

  void take(const event::ScheduleRunRequested& event, TimePoint now) { start(event.name, now, 0); }
  void take(const event::ScheduleKilled& event, TimePoint) { entries.at(event.name).retries.clear(); }
  void take(const event::ScheduleMarked& event, TimePoint now) {
    entries.at(event.name).retries.clear();
    succeed(event.name, now, now);
  }

  void take(const event::Tick&, TimePoint now) {
    std::vector<std::string> trying;
    for (auto& [name, entry] : entries)
      if (std::ranges::any_of(entry.retries, [&](const auto& retry) { return retry.not_before <= now; }))
        trying.push_back(name);
    for (auto& [name, entry] : entries) {
      entry.looked = now;
      if (entry.times) run_due(name, entry, now);
    }
    for (const auto& name : trying) {
      auto& entry = entries.at(name);
      std::vector<Retry> due;
      std::erase_if(entry.retries, [&](const auto& retry) {
        if (retry.not_before <= now) due.push_back(retry);
        return retry.not_before <= now;
      });
      for (const auto& retry : due)
        if (start(name, retry.due, retry.attempt)) ++retried;
    }
  }

  void run_due(const std::string& name, Entry& entry, TimePoint now) {
    const auto first = entry.times->first_from(std::max(entry.reckoned + 1ms, entry.floor));
    if (!first || entry.times->at(*first) > now) return;
    for (auto k = *first; entry.times->has(k) && entry.times->at(k) <= now; ++k) {
      if (entry.schedule.disabled) continue;
      if (now - entry.times->at(k) > entry.schedule.epsilon)
        ++late;
      else if (start(name, entry.times->at(k), 0))
        ++timed;
    }
    entry.reckoned = now;
  }

  bool start(const std::string& name, TimePoint due, int attempt) {
    auto& entry = entries.at(name);
    const bool overlaps = !entry.active.empty() || std::ranges::any_of(starts_, [&](const auto& run) {
      return std::get<0>(run) == name;
    });
    if (!entry.schedule.concurrent && overlaps) {
      ++overlapping;
      return false;
    }
    if (!entry.schedule.concurrent) entry.retries.clear();
    starts_.emplace_back(name, due, attempt);
    return true;
  }

  void end(const TaskRecord& task, TimePoint now) {
    const auto& name = task.task.origin.name;
    const auto found = entries.find(name);
    if (found == entries.end() || found->second.active.erase(task.task.id) == 0) return;
    auto& entry = found->second;
    const auto attempt = entry.attempts.at(task.task.id);
    const auto due = entry.dues.at(task.task.id);
    entry.attempts.erase(task.task.id);
    entry.dues.erase(task.task.id);
    if (task.state == TaskState::kFinished) return succeed(name, *task.finished_at, now);
    if (task.state == TaskState::kKilled) return;
    const bool was_well =
        !entry.last_error || (entry.last_success && *entry.last_success >= *entry.last_error);
    if (attempt < entry.schedule.retries && was_well && !entry.schedule.disabled) {
      constexpr std::array<std::chrono::seconds, 5> kDelays = {5s, 10s, 20s, 40s, 60s};
      entry.retries.push_back(
          {now + kDelays.at(static_cast<std::size_t>(std::min(attempt, 4))), attempt + 1, due});
      return;
    }
    ++entry.errors;
    entry.last_error = *task.finished_at;
    if (entry.schedule.soft_error) release(name, now);
  }

  void succeed(const std::string& name, TimePoint at, TimePoint now) {
    auto& entry = entries.at(name);
    ++entry.successes;
    entry.last_success = at;
    release(name, now);
  }

  void release(const std::string& name, TimePoint now) {
    for (auto& [child, entry] : entries) {
      if (!entry.schedule.parents.contains(name)) continue;
      entry.succeeded.insert(name);
      if (entry.succeeded != entry.schedule.parents) continue;
      entry.succeeded.clear();
      if (!entry.schedule.disabled && start(child, now, 0)) ++released;
    }
  }

  std::map<std::string, std::optional<ScheduleTimes>> announced_;
  std::vector<ExpectedRun> starts_;
};

}  // namespace drover::control::testing
