#pragma once

// Services on the machine of testing/machine.h.

#include <algorithm>
#include <string>
#include <vector>

#include "control/instances.h"
#include "control/testing/machine.h"

namespace drover::control::testing {

inline workload::Service service(const std::string& id, int instances, int gpus = 0) {
  workload::Service result;
  result.id = id;
  result.task = task("", gpus);
  result.task.name = id.substr(id.rfind('/') + 1);
  result.instances = instances;
  return result;
}

struct Services : Machine {
  using Machine::Machine;

  Status put(workload::Service service, bool force = false) {
    return on(event::ServicesChanged{.put = {std::move(service)}, .force = force}, now);
  }
  Status remove(const std::string& id) { return on(event::ServicesChanged{.removed = {id}}, now); }
  void tick() { (void)on(event::Tick{}, now); }

  /// Of its tasks that have not ended.
  std::vector<const TaskRecord*> instances(const std::string& id) const {
    std::vector<const TaskRecord*> result;
    const auto found = state.by_origin.find({workload::OriginKind::kService, id});
    if (found == state.by_origin.end()) return result;
    for (const auto& task : found->second)
      if (!is_final(state.tasks.at(task).state)) result.push_back(&state.tasks.at(task));
    std::ranges::sort(result, {}, &TaskRecord::sequence);
    return result;
  }
  std::size_t in(const std::string& id, TaskState wanted) const {
    return static_cast<std::size_t>(
        std::ranges::count(instances(id), wanted, [](const auto* task) { return task->state; }));
  }
  /// Containers do at once what they are asked to, until nothing is asked any more.
  void obey() {
    while (true) {
      std::vector<Event> events;
      for (const auto& [id, record] : state.tasks) {
        if (record.state == TaskState::kStarting) events.push_back(event::Started{id, now});
        if (record.state == TaskState::kStopping) events.push_back(event::Ended{id, ended(143, true)});
      }
      if (events.empty()) return;
      for (const auto& event : events) (void)on(event, now);
    }
  }
  void fails(const std::string& task, int status = 1) {
    (void)on(event::Ended{task, ended(status, false)}, now);
  }
  workload::Ending ended(int status, bool stopped) const {
    auto ending = exited(status, stopped);
    ending.finished_at = now;
    return ending;
  }
  void check(const std::string& task, bool passed, int index = 0) {
    (void)on(event::Checked{{.task = task, .check = index, .passed = passed, .why = "refused", .at = now}},
             now);
  }

  TimePoint now = kNow;
};

}  // namespace drover::control::testing
