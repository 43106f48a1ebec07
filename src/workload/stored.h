#pragma once

// The stored JSON of parts of a task and of a service. For `.cc` files.

#include "base/json_types.h"
#include "workload/network.h"
#include "workload/origin.h"
#include "workload/schedule.h"
#include "workload/service.h"
#include "workload/task.h"

namespace drover::workload {

NLOHMANN_JSON_SERIALIZE_ENUM(NetworkMode, {{NetworkMode::kHost, "host"}, {NetworkMode::kBridge, "bridge"}})
NLOHMANN_JSON_SERIALIZE_ENUM(PortProtocol, {{PortProtocol::kTcp, "tcp"},
                                            {PortProtocol::kUdp, "udp"},
                                            {PortProtocol::kBoth, "both"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Port, name, protocol, container_port, host_port, labels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Network, mode, ports)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Fetch, uri, extract, executable, cache, output_file)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Volume, container_path, host_path, read_only)
NLOHMANN_JSON_SERIALIZE_ENUM(OriginKind, {{OriginKind::kPerson, "person"},
                                          {OriginKind::kService, "service"},
                                          {OriginKind::kSchedule, "schedule"},
                                          {OriginKind::kFramework, "framework"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Origin, kind, name, task_id, version)

NLOHMANN_JSON_SERIALIZE_ENUM(CheckKind, {{CheckKind::kHttp, "http"},
                                         {CheckKind::kHttps, "https"},
                                         {CheckKind::kTcp, "tcp"},
                                         {CheckKind::kCommand, "command"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HealthCheck, kind, path, port, port_index, ipv6,
                                                ignore_http_1xx, command, delay, interval, timeout,
                                                grace_period, max_consecutive_failures)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ReadinessCheck, name, https, path, port_index, interval,
                                                timeout, ready_statuses, preserve_last_response)
NLOHMANN_JSON_SERIALIZE_ENUM(ConstraintKind, {{ConstraintKind::kUnique, "UNIQUE"},
                                              {ConstraintKind::kCluster, "CLUSTER"},
                                              {ConstraintKind::kGroupBy, "GROUP_BY"},
                                              {ConstraintKind::kLike, "LIKE"},
                                              {ConstraintKind::kUnlike, "UNLIKE"},
                                              {ConstraintKind::kMaxPer, "MAX_PER"},
                                              {ConstraintKind::kIs, "IS"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PlacementConstraint, attribute, kind, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Backoff, initial, factor, longest)

/// A task stands as encode() writes it.
inline void to_json(nlohmann::json& value, const Task& task) {
  value = encode(task);
}
inline void from_json(const nlohmann::json& value, Task& task) {
  auto decoded = decode_task(value);
  if (!decoded) throw std::invalid_argument(decoded.error().message);
  task = std::move(*decoded);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Service, id, task, instances, health_checks, readiness,
                                                minimum_health, maximum_over_capacity, backoff, constraints,
                                                dependencies, oldest_first, version, last_scaling_at,
                                                last_config_change_at, definition)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Schedule, name, task, shell, repetition, time_zone, parents,
                                                retries, concurrent, disabled, soft_error, epsilon, webhook,
                                                definition)

}  // namespace drover::workload
