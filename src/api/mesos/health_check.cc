// Health checks of tasks.

#include <fmt/format.h>

#include <cmath>

#include "api/mesos/task_info.h"
#include "workload/service.h"

namespace drover::api::mesos {
namespace {

using std::chrono::milliseconds;
using workload::CheckKind;

Failure refused(std::string_view what) {
  return fail(ErrorKind::kInvalid, fmt::format("Task uses invalid health check: {}", what));
}

Result<milliseconds> time_of(double seconds, std::string_view name) {
  constexpr double kLongest = 1e9;
  if (!(seconds >= 0)) return refused(fmt::format("Expecting '{}' to be non-negative", name));
  return milliseconds(std::llround(std::min(seconds, kLongest) * 1000));
}

/// A port of the task: where it has a network of its own, that is one which is forwarded.
Status set_port(std::uint32_t port, const workload::Task& task, workload::HealthCheck& check) {
  if (port == 0 || port > 65535) return refused(fmt::format("'port' is {}", port));
  const auto& ports = task.network.ports;
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].container_port == static_cast<int>(port)) {
      check.port_index = static_cast<int>(i);
      return {};
    }
  if (task.network.mode == workload::NetworkMode::kBridge)
    return refused(fmt::format("The container's port {} is not mapped to one of the machine", port));
  check.port = static_cast<int>(port);
  return {};
}

Status set_kind(const v1::HealthCheck& written, const workload::Task& task, workload::HealthCheck& check) {
  switch (written.type()) {
    case v1::HealthCheck::COMMAND: {
      if (!written.has_command()) return refused("Expecting 'command' to be set for COMMAND health check");
      check.kind = CheckKind::kCommand;
      check.command = words_of(written.command());
      if (check.command.empty()) return refused("Command health check must contain 'shell command'");
      return {};
    }
    case v1::HealthCheck::HTTP:
      if (!written.has_http()) return refused("Expecting 'http' to be set for HTTP health check");
      check.kind = written.http().scheme() == "https" ? CheckKind::kHttps : CheckKind::kHttp;
      check.path = written.http().path().empty() ? "/" : written.http().path();
      if (!check.path.starts_with('/'))
        return refused(fmt::format("The path '{}' of HTTP health check must start with '/'", check.path));
      if (const auto trouble = workload::path_trouble(check.path); !trouble.empty())
        return refused(fmt::format("The path of HTTP health check {}", trouble));
      check.ipv6 = written.http().protocol() == v1::NetworkInfo::IPv6;
      return set_port(written.http().port(), task, check);
    case v1::HealthCheck::TCP:
      if (!written.has_tcp()) return refused("Expecting 'tcp' to be set for TCP health check");
      check.kind = CheckKind::kTcp;
      check.ipv6 = written.tcp().protocol() == v1::NetworkInfo::IPv6;
      return set_port(written.tcp().port(), task, check);
    case v1::HealthCheck::UNKNOWN:
      break;
  }
  return refused("HealthCheck must specify 'type'");
}

}  // namespace

Result<std::optional<workload::HealthCheck>> read_health_check(const v1::TaskInfo& info,
                                                               const workload::Task& task) {
  if (!info.has_health_check()) return std::optional<workload::HealthCheck>();
  const auto& written = info.health_check();
  workload::HealthCheck check;
  DROVER_CHECK_OK(set_kind(written, task, check));
  DROVER_TRY(check.delay, time_of(written.delay_seconds(), "delay_seconds"));
  DROVER_TRY(check.interval, time_of(written.interval_seconds(), "interval_seconds"));
  DROVER_TRY(check.timeout, time_of(written.timeout_seconds(), "timeout_seconds"));
  DROVER_TRY(check.grace_period, time_of(written.grace_period_seconds(), "grace_period_seconds"));
  check.interval = std::max(check.interval, milliseconds(1000));
  if (check.timeout.count() == 0) check.timeout = milliseconds(static_cast<std::int64_t>(1e9));
  check.max_consecutive_failures =
      static_cast<int>(std::min<std::uint32_t>(written.consecutive_failures(), 1'000'000));
  return std::optional(std::move(check));
}

}  // namespace drover::api::mesos
