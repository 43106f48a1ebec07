#pragma once

// Services, groups and deployments as the state keeps them. Values.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/record.h"
#include "workload/service.h"

namespace drover::control {

/// How an instance ended last that nobody had asked to end.
struct ServiceFailure {
  std::string task_id;  ///< of the origin
  TaskState state = TaskState::kFailed;
  std::string message;
  TimePoint at{};
  std::string version;

  bool operator==(const ServiceFailure&) const = default;
};

struct ServiceRecord {
  workload::Service target;  ///< as people want it
  bool removed = false;      ///< people want it no more: it goes when its instances have ended
  /// As it is kept running now: deployments bring it to the target, step by step. Without id before its first
  /// deployment has come to it.
  workload::Service applied;
  std::vector<workload::Service> versions;  ///< earlier targets, the newest first; at most kMostVersions
  std::chrono::milliseconds backoff{0};     ///< the last delay; 0 when the last attempt went well
  TimePoint not_before{};  ///< of the next start, Moment::steady; the epoch: nothing is waited for
  std::optional<ServiceFailure> last_failure;

  bool operator==(const ServiceRecord&) const = default;
};
inline constexpr std::size_t kMostVersions = 25;

struct GroupRecord {
  std::vector<std::string> dependencies;  ///< absolute paths
  TimePoint version{};
  uid_t owner = 0;

  bool operator==(const GroupRecord&) const = default;
};

enum class DeploymentActionKind {
  kStart,    ///< a service that is new comes to be, with no instance yet
  kScale,    ///< another number of instances
  kRestart,  ///< every instance makes way for one of the new version
  kStop,     ///< a service goes, with all its instances
};

struct DeploymentAction {
  DeploymentActionKind kind{};
  std::string service;

  bool operator==(const DeploymentAction&) const = default;
};

/// The way of services from what they are to what they are to be: the actions of one step go on at the same
/// time, a step begins when the one before is done.
struct Deployment {
  std::string id;
  TimePoint version{};
  std::vector<std::vector<DeploymentAction>> steps;
  std::size_t step = 0;
  bool begun = false;  ///< whether the actions of `step` have been begun
  /// What the services were to be before it; none: it was not there.
  std::map<std::string, std::optional<workload::Service>> before;
  uid_t owner = 0;

  bool touches(const std::string& service) const { return before.contains(service); }
  bool operator==(const Deployment&) const = default;
};

}  // namespace drover::control
