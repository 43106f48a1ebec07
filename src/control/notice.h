#pragma once

// What decisions tell whoever listens: the event streams of the APIs are made of these. Values.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/health.h"
#include "control/record.h"
#include "control/schedule_record.h"
#include "control/service_record.h"

namespace drover::control {

namespace notice {
/// A task came to be, or came to another state. It may have been forgotten since.
struct TaskMoved {
  TaskRecord record;
  std::optional<TaskState> before;
};
/// event::Noted, when its task is there.
struct Noted {
  std::string kind;
  std::optional<TaskRecord> record;
  std::string message;
};
struct HealthChanged {
  std::string task;  ///< its own id, not that of its origin
  std::string service;
  bool alive = false;
};
struct CheckFailed {
  std::string task;
  std::string service;
  int check = 0;
};
/// It will be killed, for its health.
struct UnhealthyKilled {
  std::string task;
  std::string service;
  std::string why;
};
/// New definitions took over: of these services and groups.
struct DefinitionsChanged {
  std::vector<std::string> services;
  std::vector<std::string> groups;
  TimePoint version{};
};
struct ServiceTerminated {
  std::string service;
};
/// A step begins.
struct DeploymentStep {
  Deployment deployment;
};
struct DeploymentStepDone {
  Deployment deployment;  ///< with the step that was done
};
struct DeploymentEnded {
  Deployment deployment;
  bool success = false;  ///< else it was given up
};
/// There is something to tell a framework of a task: the first of its updates is another one.
struct StatusUpdated {
  std::string framework;
  std::string task_id;  ///< the framework's own
};
/// The last task of a group has ended, or the container of an executor of the framework's own. Not told
/// again.
struct ExecutorEnded {
  std::string framework;
  std::string executor;
  int exit_status = 0;
  std::string host = {};  ///< as ExecutorRecord
};
/// There is something to tell an executor of the framework's own: a task, or that one is to end.
struct ExecutorPending {
  std::string framework;
  std::string executor;
  std::string host = {};  ///< as ExecutorRecord
};
struct FrameworkRemoved {
  std::string framework;
};
/// A run of a schedule ended, or could not start.
struct ScheduleRunEnded {
  std::string schedule;
  ScheduleEntry entry;
  bool last_attempt = false;  ///< else it will be tried again
};
}  // namespace notice

using Notice = std::variant<notice::TaskMoved, notice::Noted, notice::HealthChanged, notice::CheckFailed,
                            notice::UnhealthyKilled, notice::DefinitionsChanged, notice::ServiceTerminated,
                            notice::DeploymentStep, notice::DeploymentStepDone, notice::DeploymentEnded,
                            notice::StatusUpdated, notice::ExecutorEnded, notice::ExecutorPending,
                            notice::FrameworkRemoved, notice::ScheduleRunEnded>;

}  // namespace drover::control
