#include "api/mesos/routes.h"

#include <array>

#include "api/mesos/executor.h"
#include "api/mesos/operator.h"
#include "api/mesos/operator_api.h"
#include "api/mesos/scheduler.h"

namespace drover::api::mesos {
namespace {

constexpr bool kClosed = false;
constexpr bool kRaw = true;
/// A framework with very many tasks asks after all of them at once.
constexpr std::uint64_t kCallBytes = 16 << 20;
/// An executor that comes again brings its tasks, and what of them was not acknowledged.
constexpr std::uint64_t kExecutorCallBytes = 8 << 20;

constexpr Route scheduler(std::string_view path) {
  return {"*", path, call_scheduler, kClosed, kRaw, kCallBytes};
}

constexpr Route executor(std::string_view path) {
  return {"*", path, call_executor, kClosed, kRaw, kExecutorCallBytes, true};
}

constexpr Route calling(std::string_view path, Handler handler) {
  return {"*", path, handler, kClosed, kRaw};
}

/// What Mesos lets anybody read it answers whatever the method is, and reads no body.
constexpr Route reading(std::string_view path, Handler handler) {
  return {"*", path, handler, kClosed, kRaw};
}

/// The body is a form, not JSON.
constexpr Route teardown(std::string_view path) {
  return {"POST", path, post_teardown, kClosed, kRaw};
}

constexpr std::array kRoutes = {
    scheduler("/api/v1/scheduler"),
    scheduler("/master/api/v1/scheduler"),
    executor("/api/v1/executor"),
    executor("/slave(1)/api/v1/executor"),
    calling("/api/v1", call_master),
    calling("/master/api/v1", call_master),
    calling("/slave(1)/api/v1", call_agent),
    teardown("/teardown"),
    teardown("/master/teardown"),
    reading("/version", at_once<get_version>),
    reading("/master/version", at_once<get_version>),
    reading("/slave(1)/version", at_once<get_version>),
    Route{"GET", "/quota", at_once<get_quota>},
    Route{"GET", "/master/quota", at_once<get_quota>},
    Route{"GET", "/weights", at_once<get_weights>},
    Route{"GET", "/master/weights", at_once<get_weights>},
    Route{"GET", "/maintenance/schedule", at_once<get_maintenance>},
    Route{"GET", "/master/maintenance/schedule", at_once<get_maintenance>},
    Route{"GET", "/maintenance/status", at_once<get_maintenance>},
    Route{"GET", "/master/maintenance/status", at_once<get_maintenance>},
    reading("/system/stats.json", at_once<get_system_stats>),
    reading("/state", beside<from_snapshot<write_state>>),
    reading("/state.json", beside<from_snapshot<write_state>>),
    reading("/master/state", beside<from_snapshot<write_state>>),
    reading("/master/state.json", beside<from_snapshot<write_state>>),
    reading("/slaves", beside<from_snapshot<write_slaves>>),
    reading("/master/slaves", beside<from_snapshot<write_slaves>>),
    reading("/frameworks", beside<from_snapshot<write_frameworks>>),
    reading("/master/frameworks", beside<from_snapshot<write_frameworks>>),
    reading("/tasks", beside<from_snapshot<write_tasks>>),
    reading("/master/tasks", beside<from_snapshot<write_tasks>>),
    reading("/tasks.json", beside<from_snapshot<write_tasks>>),
    reading("/master/tasks.json", beside<from_snapshot<write_tasks>>),
    reading("/slaves.json", beside<from_snapshot<write_slaves>>),
    reading("/master/slaves.json", beside<from_snapshot<write_slaves>>),
    reading("/roles", beside<from_snapshot<write_roles>>),
    reading("/roles.json", beside<from_snapshot<write_roles>>),
    reading("/master/roles", beside<from_snapshot<write_roles>>),
    reading("/master/roles.json", beside<from_snapshot<write_roles>>),
    reading("/state-summary", beside<from_snapshot<write_state_summary>>),
    reading("/master/state-summary", beside<from_snapshot<write_state_summary>>),
    reading("/flags", at_once<get_flags>),
    reading("/master/flags", at_once<get_flags>),
    reading("/master/health", at_once<get_health>),
    reading("/slave(1)/health", at_once<get_health>),
    reading("/slave(1)/state", beside<from_snapshot<write_agent_state>>),
    reading("/slave(1)/state.json", beside<from_snapshot<write_agent_state>>),
    reading("/slave(1)/containers", beside<from_snapshot<write_containers>>),
    reading("/containers", beside<from_snapshot<write_containers>>),
    reading("/monitor/statistics", beside<from_snapshot<write_containers>>),
    reading("/monitor/statistics.json", beside<from_snapshot<write_containers>>),
    reading("/slave(1)/monitor/statistics", beside<from_snapshot<write_containers>>),
    reading("/slave(1)/monitor/statistics.json", beside<from_snapshot<write_containers>>),
    reading("/slave(1)/flags", at_once<get_flags>),
    reading("/redirect", at_once<get_redirect>),
    reading("/master/redirect", at_once<get_redirect>),
    reading("/metrics/snapshot", beside<from_snapshot<write_metrics>>),
    reading("/files/debug", beside<list_sandboxes>),
    reading("/files/debug.json", beside<list_sandboxes>),
    reading("/files/browse", browse),
    reading("/files/browse.json", browse),
    reading("/files/read", read),
    reading("/files/read.json", read),
    reading("/files/download", download),
    reading("/files/download.json", download),
};

}  // namespace

std::span<const Route> routes() {
  return kRoutes;
}

}  // namespace drover::api::mesos
