#pragma once

// Executors that frameworks of the Mesos API bring themselves, as the state keeps them. Values.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "control/resource_amounts.h"
#include "workload/task.h"

namespace drover::control {

/// One executor: a task of ours that is told by its framework, through us, what to run. Kept as long as that
/// task has not ended.
struct ExecutorRecord {
  std::string framework;
  std::string executor_id;  ///< the framework's own
  std::string id;           ///< Drover's, of its container
  std::string info;         ///< its ExecutorInfo, in JSON
  ResourceAmounts given;    ///< what its container has, for itself and for tasks
  int launches = 0;         ///< ever made on it
  bool registered = false;  ///< it has subscribed at least once
  /// When it is ended unless it has subscribed; Moment::steady. None: it is connected, or has not started.
  std::optional<TimePoint> due;
  bool timed_out = false;  ///< it is being ended for that
  std::string host = {};   ///< of a cluster, that of its agent: on another one there may be one of its id

  bool operator==(const ExecutorRecord&) const = default;
};

/// What is particular to a task that an executor runs.
struct ExecutorPart {
  int launch = 0;           ///< which of the executor's launches brought it
  bool in_group = false;    ///< with the others of that launch
  std::string info;         ///< its TaskInfo, in JSON
  ResourceAmounts amounts;  ///< of what the container has
  bool kill = false;        ///< its framework wants it to end
  std::optional<std::chrono::milliseconds> kill_grace = std::nullopt;
  /// The last updates of the executor, by their UUIDs: what it sends again is no other one.
  std::vector<std::string> heard = {};

  bool operator==(const ExecutorPart&) const = default;
};

/// One task, or those of a group, for an executor that runs or is to be started.
struct ExecutorLaunch {
  struct Task {
    std::string task_id;
    std::string name;
    std::string info;  ///< its TaskInfo, in JSON
    ResourceAmounts amounts;
  };
  std::string framework;
  std::string executor_id;
  std::string info;          ///< the ExecutorInfo, in JSON
  workload::Task container;  ///< what is started when it does not run yet; the id is made here
  ResourceAmounts given;     ///< what that container has: the executor's own, and those of the tasks
  bool in_group = false;
  std::vector<Task> tasks;
  std::string host = {};  ///< as ExecutorRecord
};

/// What an executor says of one of its tasks.
struct ExecutorUpdate {
  std::string task_id;
  std::string uuid;
  std::string state;
  TimePoint at{};
  std::string status;  ///< the TaskStatus, in JSON
};

/// How long executors may take.
struct ExecutorTimeouts {
  std::chrono::milliseconds registration = std::chrono::minutes(1);  ///< from its start to its subscription
  std::chrono::milliseconds recovery = std::chrono::minutes(15);     ///< to come again

  bool operator==(const ExecutorTimeouts&) const = default;
};

/// Key of an ExecutorRecord's row. No id has a '/'.
inline std::string executor_key(const std::string& framework, const std::string& executor_id,
                                const std::string& host = "") {
  return framework + "/" + executor_id + (host.empty() ? "" : "/" + host);
}
inline std::string key_of(const ExecutorRecord& executor) {
  return executor_key(executor.framework, executor.executor_id, executor.host);
}

}  // namespace drover::control
