#include "api/mesos/routes.h"

#include <array>

#include "api/mesos/operator.h"
#include "api/mesos/scheduler.h"

namespace drover::api::mesos {
namespace {

constexpr bool kClosed = false;
constexpr bool kRaw = true;
/// A framework with very many tasks asks after all of them at once.
constexpr std::uint64_t kCallBytes = 16 << 20;

constexpr Route scheduler(std::string_view path) {
  return {"*", path, call_scheduler, kClosed, kRaw, kCallBytes};
}

/// The body is a form, not JSON.
constexpr Route teardown(std::string_view path) {
  return {"POST", path, at_once<post_teardown>, kClosed, kRaw};
}

constexpr std::array kRoutes = {
    scheduler("/api/v1/scheduler"),
    scheduler("/master/api/v1/scheduler"),
    scheduler("/api/v1/scheduler/"),
    scheduler("/master/api/v1/scheduler/"),
    teardown("/teardown"),
    teardown("/master/teardown"),
    Route{"GET", "/version", at_once<get_version>},
    Route{"GET", "/master/version", at_once<get_version>},
    Route{"GET", "/slave(1)/version", at_once<get_version>},
    Route{"GET", "/quota", at_once<get_quota>},
    Route{"GET", "/master/quota", at_once<get_quota>},
    Route{"GET", "/weights", at_once<get_weights>},
    Route{"GET", "/master/weights", at_once<get_weights>},
    Route{"GET", "/maintenance/schedule", at_once<get_maintenance>},
    Route{"GET", "/master/maintenance/schedule", at_once<get_maintenance>},
    Route{"GET", "/maintenance/status", at_once<get_maintenance>},
    Route{"GET", "/master/maintenance/status", at_once<get_maintenance>},
    Route{"GET", "/system/stats.json", at_once<get_system_stats>},
    Route{"GET", "/state", at_once<get_state>},
    Route{"GET", "/state.json", at_once<get_state>},
    Route{"GET", "/master/state", at_once<get_state>},
    Route{"GET", "/master/state.json", at_once<get_state>},
    Route{"GET", "/slaves", at_once<get_slaves>},
    Route{"GET", "/master/slaves", at_once<get_slaves>},
    Route{"GET", "/frameworks", at_once<get_frameworks>},
    Route{"GET", "/master/frameworks", at_once<get_frameworks>},
    Route{"GET", "/tasks", at_once<get_tasks>},
    Route{"GET", "/master/tasks", at_once<get_tasks>},
    Route{"GET", "/tasks.json", at_once<get_tasks>},
    Route{"GET", "/master/tasks.json", at_once<get_tasks>},
    Route{"GET", "/slaves.json", at_once<get_slaves>},
    Route{"GET", "/master/slaves.json", at_once<get_slaves>},
    Route{"GET", "/roles", at_once<get_roles>},
    Route{"GET", "/roles.json", at_once<get_roles>},
    Route{"GET", "/master/roles", at_once<get_roles>},
    Route{"GET", "/master/roles.json", at_once<get_roles>},
    Route{"GET", "/state-summary", at_once<get_state_summary>},
    Route{"GET", "/master/state-summary", at_once<get_state_summary>},
    Route{"GET", "/flags", at_once<get_flags>},
    Route{"GET", "/master/flags", at_once<get_flags>},
    Route{"GET", "/master/health", at_once<get_health>},
    Route{"GET", "/slave(1)/health", at_once<get_health>},
    Route{"GET", "/slave(1)/state", at_once<get_agent_state>},
    Route{"GET", "/slave(1)/state.json", at_once<get_agent_state>},
    Route{"GET", "/slave(1)/containers", at_once<get_containers>},
    Route{"GET", "/containers", at_once<get_containers>},
    Route{"GET", "/monitor/statistics", at_once<get_containers>},
    Route{"GET", "/monitor/statistics.json", at_once<get_containers>},
    Route{"GET", "/slave(1)/monitor/statistics", at_once<get_containers>},
    Route{"GET", "/slave(1)/monitor/statistics.json", at_once<get_containers>},
    Route{"GET", "/slave(1)/flags", at_once<get_flags>},
    Route{"GET", "/redirect", at_once<get_redirect>},
    Route{"GET", "/master/redirect", at_once<get_redirect>},
    Route{"GET", "/metrics/snapshot", at_once<get_metrics>},
    Route{"GET", "/files/debug", at_once<get_sandboxes>},
    Route{"GET", "/files/debug.json", at_once<get_sandboxes>},
    Route{"GET", "/files/browse", browse},
    Route{"GET", "/files/browse.json", browse},
    Route{"GET", "/files/read", read},
    Route{"GET", "/files/read.json", read},
    Route{"GET", "/files/download", download},
    Route{"GET", "/files/download.json", download},
};

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

}  // namespace drover::api::mesos
