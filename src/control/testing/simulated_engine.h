#pragma once

// Containers that only pretend: they start late or never, end by themselves, take their time to stop, and are
// told of late, twice, or not at all while the daemon is away; they live on without it.

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/controller.h"

namespace drover::control::testing {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}
inline bool chance(Random& random, int in_thousand) {
  return pick(random, 0, 999) < in_thousand;
}

/// How often what goes wrong, each in a thousand.
struct Faults {
  int launch_fails = 30;
  int notified_twice = 100;
  int lost = 5;      ///< a shim dies: nobody can say how its task ended
  int fails = 300;   ///< an end by itself is that of a failure
  bool ends = true;  ///< also tasks that serve come to an end by themselves
};

class SimulatedEngine {
 public:
  /// Does something later.
  using Later = std::function<void(std::chrono::milliseconds, std::function<void()>)>;
  /// Brings an event to the daemon, if there is one.
  using Notify = std::function<void(const Event&)>;

  SimulatedEngine(Random& random, Later later, Notify notify, std::function<TimePoint()> now)
      : random_(random), later_(std::move(later)), notify_(std::move(notify)), now_(std::move(now)) {}

  void launch(const TaskRecord& record) {
    const auto& id = record.task.id;
    const auto known = containers_.find(id);
    if (known != containers_.end() && known->second.attempt >= attempt_of(record)) return;  // idempotent
    if (chance(random_, faults.launch_fails))
      return notify_late(event::LaunchFailed{id, {ErrorKind::kUnavailable, "no image"}, attempt_of(record)});
    containers_[id] = {.attempt = attempt_of(record)};
    const auto kind = record.task.origin.kind;
    later_(delay(), [this, id, kind, attempt = attempt_of(record)] { start(id, attempt, kind); });
  }

  void stop(const std::string& id, bool force) {
    const auto found = containers_.find(id);
    if (found == containers_.end()) return;
    found->second.stopped = true;
    const auto attempt = found->second.attempt;
    later_(force ? std::chrono::milliseconds(10) : delay(), [this, id, attempt] { end(id, attempt, 143); });
  }

  /// What the daemon hears of a task when it comes back.
  std::vector<Event> recover(const TaskRecord& record) {
    const auto& id = record.task.id;
    const auto found = containers_.find(id);
    if (found == containers_.end() || found->second.attempt != attempt_of(record))
      return {event::NeverStarted{id}};
    const auto& container = found->second;
    std::vector<Event> events;
    if (container.running || container.ending)
      events.push_back(event::Started{id, container.started_at, container.attempt});
    if (container.ending)
      events.push_back(event::Ended{id, *container.ending, container.attempt});
    else
      events.push_back(event::StillAlive{id});
    return events;
  }
  /// Ends what the daemon does not know.
  void forget_others(const std::function<bool(const std::string&)>& known) {
    std::erase_if(containers_, [&](const auto& entry) { return !known(entry.first); });
  }
  void forget(const std::string& id) { containers_.erase(id); }

  std::vector<std::string> running() const {
    std::vector<std::string> ids;
    for (const auto& [id, container] : containers_)
      if (container.running) ids.push_back(id);
    return ids;
  }

  Faults faults;
  std::int64_t starts = 0;

 private:
  struct Container {
    int attempt = 0;
    bool running = false;
    bool stopped = false;
    TimePoint started_at{};
    std::optional<workload::Ending> ending;
  };

  std::chrono::milliseconds delay() { return std::chrono::milliseconds(pick(random_, 0, 30'000)); }

  static std::chrono::milliseconds longest(workload::OriginKind kind) {
    if (kind == workload::OriginKind::kService) return std::chrono::hours(48);
    return kind == workload::OriginKind::kSchedule ? std::chrono::minutes(30) : std::chrono::hours(2);
  }

  void start(const std::string& id, int attempt, workload::OriginKind kind) {
    const auto found = containers_.find(id);
    if (found == containers_.end() || found->second.attempt != attempt || found->second.ending) return;
    found->second.running = true;
    found->second.started_at = now_();
    ++starts;
    notify_late(event::Started{id, now_(), attempt});
    later_(std::chrono::milliseconds(pick(random_, 100, longest(kind).count())), [this, id, attempt, kind] {
      if (kind != workload::OriginKind::kService || faults.ends)
        end(id, attempt, chance(random_, faults.fails) ? 1 : 0);
    });
  }

  void end(const std::string& id, int attempt, int status) {
    const auto found = containers_.find(id);
    if (found == containers_.end() || found->second.attempt != attempt || found->second.ending) return;
    auto& container = found->second;
    container.running = false;
    workload::Ending ending;
    ending.exit_status = status;
    ending.stopped = container.stopped;
    ending.lost = chance(random_, faults.lost);
    if (ending.lost) ending.message = "its shim died";
    ending.finished_at = now_();
    container.ending = ending;
    notify_late(event::Ended{id, ending, attempt});
  }

  void notify_late(const Event& event) {
    const int times = chance(random_, faults.notified_twice) ? 2 : 1;
    for (int i = 0; i < times; ++i)
      later_(std::chrono::milliseconds(pick(random_, 0, i == 0 ? 500 : 100'000)),
             [this, event] { notify_(event); });
  }

  Random& random_;
  Later later_;
  Notify notify_;
  std::function<TimePoint()> now_;
  std::map<std::string, Container> containers_;
};

}  // namespace drover::control::testing
