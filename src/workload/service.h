#pragma once

// A service: so many instances of one task that are kept running. Values; what they mean over time is
// control's.

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "workload/task.h"

namespace drover::workload {

enum class CheckKind { kHttp, kHttps, kTcp, kCommand };

/// Tells again and again whether an instance is well. Defaults are Marathon's.
struct HealthCheck {
  CheckKind kind = CheckKind::kHttp;
  std::string path = "/";
  int port = 0;        ///< that number, as seen from where the check is made; 0: by `port_index`
  int port_index = 0;  ///< into the task's ports
  bool ipv6 = false;
  bool ignore_http_1xx = false;
  std::vector<std::string> command;         ///< kCommand: runs inside the container; 0 is well
  std::chrono::milliseconds delay{15'000};  ///< after the start of the task, to the first check
  std::chrono::milliseconds interval{60'000};
  std::chrono::milliseconds timeout{20'000};
  std::chrono::milliseconds grace_period{
      300'000};                      ///< after the start: failures before the first success do not count
  int max_consecutive_failures = 3;  ///< then it is killed; 0: never

  bool operator==(const HealthCheck&) const = default;
};

/// Why no check can ask a server for this path, as "must begin with a slash"; "" when it can.
std::string_view path_trouble(std::string_view path);

/// Tells when a new instance may take the place of an old one.
struct ReadinessCheck {
  std::string name = "readinessCheck";
  bool https = false;
  std::string path = "/";
  int port_index = 0;
  std::chrono::milliseconds interval{30'000};
  std::chrono::milliseconds timeout{10'000};
  std::vector<int> ready_statuses{200};
  bool preserve_last_response = false;

  bool operator==(const ReadinessCheck&) const = default;
};

enum class ConstraintKind { kUnique, kCluster, kGroupBy, kLike, kUnlike, kMaxPer, kIs };

/// Where instances may be, by an attribute of the machine; "hostname" is its name.
struct PlacementConstraint {
  std::string attribute;
  ConstraintKind kind = ConstraintKind::kUnique;
  std::string value;  ///< "" when it was left out

  bool operator==(const PlacementConstraint&) const = default;
};

/// How long a service that fails waits before the next attempt: grows with each failure, until an instance
/// runs well.
struct Backoff {
  std::chrono::milliseconds initial{1'000};
  double factor = 1.15;
  std::chrono::milliseconds longest{300'000};

  bool operator==(const Backoff&) const = default;
};

struct Service {
  std::string id;  ///< absolute path: "/shop/web"
  Task task;       ///< what each instance is; without id and origin
  int instances = 1;
  std::vector<HealthCheck> health_checks;
  std::optional<ReadinessCheck> readiness;
  /// While a new version takes over, at least this part of the instances stays well …
  double minimum_health = 1;
  /// … and at most this part is there in addition.
  double maximum_over_capacity = 1;
  Backoff backoff;
  std::vector<PlacementConstraint> constraints;
  std::vector<std::string> dependencies;  ///< absolute paths of services or groups that are to be up before
  bool oldest_first = false;              ///< who goes first when there are too many; else the youngest
  TimePoint version{};  ///< when it was defined; no two definitions of a service have the same
  TimePoint last_scaling_at{};
  TimePoint last_config_change_at{};
  /// The normalised definition as the API that it came by shows it, a JSON object as text, without what is
  /// above: instances, version and the two times.
  std::string definition;

  bool operator==(const Service&) const = default;
};

/// What instances are started anew for: not their number, nor times, nor what their groups are started after.
bool same_configuration(const Service& a, const Service& b);

/// As stored in the journal; decode_service(encode(service)) == service.
nlohmann::json encode(const Service& service);
Result<Service> decode_service(const nlohmann::json& value);

}  // namespace drover::workload
