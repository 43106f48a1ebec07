#pragma once

// Frameworks of the Mesos API and their tasks, as the state keeps them. Values.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "control/executor_record.h"
#include "workload/service.h"
#include "workload/task.h"

namespace drover::control {

struct FrameworkRecord {
  std::string name;
  std::string user;  ///< whom its tasks run as, where they do not say
  uid_t owner = 0;   ///< who subscribed
  std::string owner_name;
  std::string info;                              ///< its FrameworkInfo, in JSON
  std::chrono::milliseconds failover_timeout{};  ///< how long it may be away
  bool knows_gpus = false;                       ///< GPU_RESOURCES
  bool knows_partitions = false;                 ///< PARTITION_AWARE
  bool knows_killing = false;                    ///< TASK_KILLING_STATE
  TimePoint registered_at{};
  TimePoint reregistered_at{};
  std::optional<TimePoint> disconnected_at;  ///< none: it is there
  std::optional<TimePoint> remove_at;        ///< when it is removed unless it comes back; Moment::steady
  /// Its tasks were stopped; the row stays for a while, so that its id is not used again.
  std::optional<TimePoint> removed_at;

  bool operator==(const FrameworkRecord&) const = default;
};

/// What a framework is to be told of a task, until it has acknowledged it.
struct StatusUpdate {
  std::string uuid;
  std::string state;    ///< "TASK_RUNNING"
  std::string message;  ///< may be empty
  std::string reason;   ///< "REASON_CONTAINER_LIMITATION_MEMORY", or ""
  TimePoint at{};
  std::optional<bool> healthy =
      std::nullopt;  ///< of a task with a health check, once that has found something
  std::optional<int> check_status = std::nullopt;  ///< CheckResult::status of the last check that was made
  std::string status = "";  ///< the TaskStatus that an executor gave, in JSON; it says more

  bool operator==(const StatusUpdate&) const = default;
};

/// Kept from the launch until the last update was acknowledged.
struct FrameworkTask {
  std::string framework;
  std::string task_id;  ///< the framework's own
  std::string id;       ///< Drover's; of the executor's container, where that is the framework's own
  std::string name;
  std::string executor_id;
  std::string told;                   ///< state of the last update that was made; "" before the first
  std::vector<StatusUpdate> updates;  ///< not acknowledged, oldest first
  int update_count = 0;               ///< ever made
  std::optional<workload::HealthCheck> health_check = std::nullopt;
  std::optional<workload::HealthCheck> check = std::nullopt;  ///< of which its framework is only told
  std::optional<int> check_status = std::nullopt;             ///< as in StatusUpdate
  std::optional<ExecutorPart> within = std::nullopt;          ///< of one that an executor runs

  bool operator==(const FrameworkTask&) const = default;
};

/// One task of a launch, or one member of a task group.
struct FrameworkLaunch {
  std::string executor_id;
  workload::Task task;  ///< its origin names the framework and the framework's own id; the id is made here
  std::optional<workload::HealthCheck> health_check = std::nullopt;
  std::optional<workload::HealthCheck> check = std::nullopt;
};

/// Which check a result is of, where a task of a framework has both.
inline constexpr int kHealthCheck = 0;
inline constexpr int kGeneralCheck = 1;

/// Key of a FrameworkTask's row.
inline std::string framework_task_key(const std::string& framework, const std::string& task_id) {
  return framework + "/" + task_id;
}

}  // namespace drover::control
