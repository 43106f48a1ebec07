// Checks of tasks: of their health, and such as are only told.

#include <fmt/format.h>

#include <cmath>

#include "api/mesos/task_info.h"
#include "workload/service.h"

namespace drover::api::mesos {
namespace {

using std::chrono::milliseconds;
using workload::CheckKind;

/// The two kinds, as messages of Mesos call them.
struct Kind {
  std::string_view name;
  std::string_view message;
};
constexpr Kind kOfHealth{"health check", "HealthCheck"};
constexpr Kind kGeneral{"check", "CheckInfo"};

Failure refused(const Kind& kind, std::string_view what) {
  return fail(ErrorKind::kInvalid, fmt::format("Task uses invalid {}: {}", kind.name, what));
}

Result<milliseconds> time_of(const Kind& kind, double seconds, std::string_view name) {
  constexpr double kLongest = 1e9;
  if (!(seconds >= 0)) return refused(kind, fmt::format("Expecting '{}' to be non-negative", name));
  return milliseconds(std::llround(std::min(seconds, kLongest) * 1000));
}

/// A port of the task: where it has a network of its own, that is one which is forwarded.
Status set_port(const Kind& kind, std::uint32_t port, const workload::Task& task,
                workload::HealthCheck& check) {
  if (port == 0 || port > 65535) return refused(kind, fmt::format("'port' is {}", port));
  const auto& ports = task.network.ports;
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].container_port == static_cast<int>(port)) {
      check.port_index = static_cast<int>(i);
      return {};
    }
  if (task.network.mode == workload::NetworkMode::kBridge)
    return refused(kind, fmt::format("The container's port {} is not mapped to one of the machine", port));
  check.port = static_cast<int>(port);
  return {};
}

Status set_kind(const Kind& kind, const v1::HealthCheck& written, const workload::Task& task,
                workload::HealthCheck& check) {
  switch (written.type()) {
    case v1::HealthCheck::COMMAND: {
      if (!written.has_command())
        return refused(kind, fmt::format("Expecting 'command' to be set for COMMAND {}", kind.name));
      check.kind = CheckKind::kCommand;
      check.command = words_of(written.command());
      if (check.command.empty())
        return refused(kind, fmt::format("Command {} must contain 'shell command'", kind.name));
      return {};
    }
    case v1::HealthCheck::HTTP:
      if (!written.has_http())
        return refused(kind, fmt::format("Expecting 'http' to be set for HTTP {}", kind.name));
      check.kind = written.http().scheme() == "https" ? CheckKind::kHttps : CheckKind::kHttp;
      check.path = written.http().path().empty() ? "/" : written.http().path();
      if (!check.path.starts_with('/'))
        return refused(kind,
                       fmt::format("The path '{}' of HTTP {} must start with '/'", check.path, kind.name));
      if (const auto trouble = workload::path_trouble(check.path); !trouble.empty())
        return refused(kind, fmt::format("The path of HTTP {} {}", kind.name, trouble));
      check.ipv6 = written.http().protocol() == v1::NetworkInfo::IPv6;
      return set_port(kind, written.http().port(), task, check);
    case v1::HealthCheck::TCP:
      if (!written.has_tcp())
        return refused(kind, fmt::format("Expecting 'tcp' to be set for TCP {}", kind.name));
      check.kind = CheckKind::kTcp;
      check.ipv6 = written.tcp().protocol() == v1::NetworkInfo::IPv6;
      return set_port(kind, written.tcp().port(), task, check);
    case v1::HealthCheck::UNKNOWN:
      break;
  }
  return refused(kind, fmt::format("{} must specify 'type'", kind.message));
}

Result<std::optional<workload::HealthCheck>> read_written(const Kind& kind, const v1::HealthCheck& written,
                                                          const workload::Task& task) {
  workload::HealthCheck check;
  DROVER_CHECK_OK(set_kind(kind, written, task, check));
  DROVER_TRY(check.delay, time_of(kind, written.delay_seconds(), "delay_seconds"));
  DROVER_TRY(check.interval, time_of(kind, written.interval_seconds(), "interval_seconds"));
  DROVER_TRY(check.timeout, time_of(kind, written.timeout_seconds(), "timeout_seconds"));
  DROVER_TRY(check.grace_period, time_of(kind, written.grace_period_seconds(), "grace_period_seconds"));
  check.interval = std::max(check.interval, milliseconds(1000));
  if (check.timeout.count() == 0) check.timeout = milliseconds(static_cast<std::int64_t>(1e9));
  check.max_consecutive_failures =
      static_cast<int>(std::min<std::uint32_t>(written.consecutive_failures(), 1'000'000));
  return std::optional(std::move(check));
}

/// The same in the words of the other.
v1::HealthCheck health_check_of(const v1::CheckInfo& check) {
  v1::HealthCheck same;
  v1::HealthCheck::Type type = v1::HealthCheck::UNKNOWN;
  v1::HealthCheck::Type_Parse(v1::CheckInfo::Type_Name(check.type()), &type);
  same.set_type(type);
  same.set_delay_seconds(check.delay_seconds());
  same.set_interval_seconds(check.interval_seconds());
  same.set_timeout_seconds(check.timeout_seconds());
  if (check.has_command()) *same.mutable_command() = check.command().command();
  if (check.has_http()) {
    same.mutable_http()->set_port(check.http().port());
    same.mutable_http()->set_path(check.http().path());
  }
  if (check.has_tcp()) same.mutable_tcp()->set_port(check.tcp().port());
  return same;
}

}  // namespace

Result<std::optional<workload::HealthCheck>> read_health_check(const v1::TaskInfo& info,
                                                               const workload::Task& task) {
  if (!info.has_health_check()) return std::optional<workload::HealthCheck>();
  return read_written(kOfHealth, info.health_check(), task);
}

Result<std::optional<workload::HealthCheck>> read_check(const v1::TaskInfo& info,
                                                        const workload::Task& task) {
  if (!info.has_check()) return std::optional<workload::HealthCheck>();
  return read_written(kGeneral, health_check_of(info.check()), task);
}

}  // namespace drover::api::mesos
