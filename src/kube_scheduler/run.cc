#include "kube_scheduler/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>

#include "base/end_signals.h"
#include "base/units.h"
#include "http/page_server.h"
#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "kube/client/server_version.h"
#include "kube/scheduling/cluster_watch.h"
#include "kube/scheduling/loop.h"
#include "kube_scheduler/options.h"
#include "leadership.h"
#include "log_setup.h"
#include "metrics/exposition.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr auto kListing = 5min;  ///< of all pods of a large cluster
constexpr auto kHangs = 2min;    ///< what should take seconds

void warn(const std::string& sentence) {
  spdlog::warn("{}", sentence);
}

std::string metrics_page(const kube::SchedulingCounts& counts) {
  using metrics::Metric;
  using metrics::Type;
  static constexpr Metric kRounds{"drover_scheduler_rounds_total", Type::kCounter,
                                  "How often it was decided what runs"};
  static constexpr Metric kDeciding{"drover_scheduler_deciding_seconds_total", Type::kCounter,
                                    "How long that took"};
  static constexpr Metric kBound{"drover_scheduler_bound_total", Type::kCounter,
                                 "Pods that were bound to a node"};
  static constexpr Metric kRefused{"drover_scheduler_refused_total", Type::kCounter,
                                   "Decisions that could not be written"};
  static constexpr Metric kEvicted{"drover_scheduler_evicted_total", Type::kCounter,
                                   "Pods that were ended for others"};
  static constexpr Metric kWaiting{"drover_scheduler_waiting", Type::kGauge, "Pods that wait"};
  constexpr double kMicroseconds = 1e6;
  const auto family = [](const Metric& metric, std::uint64_t value, double parts = 1) {
    return metrics::Family{&metric, {{{}, static_cast<double>(value) / parts}}};
  };
  return metrics::write({family(kRounds, counts.rounds),
                         family(kDeciding, counts.deciding_microseconds, kMicroseconds),
                         family(kBound, counts.bound), family(kRefused, counts.refused),
                         family(kEvicted, counts.evicted), family(kWaiting, counts.waiting)});
}

/// For whoever starts us anew when we hang.
Result<std::string> health_page(const kube::SchedulingCounts& counts) {
  const auto since = std::chrono::steady_clock::now() - counts.turned.load();
  if (since > kHangs)
    return fail(ErrorKind::kTimeout,
                fmt::format("nothing has been decided for {}",
                            format_duration(std::chrono::floor<std::chrono::seconds>(since))));
  return "ok\n";
}

Result<std::unique_ptr<http::PageServer>> serve_pages(const std::string& address,
                                                      const kube::SchedulingCounts& counts) {
  if (address.empty()) return nullptr;
  DROVER_TRY(const auto listen, http::parse_listen_address(address));
  return http::PageServer::start(
      listen, {{"/metrics",
                {metrics::kContentType, [&counts]() -> Result<std::string> { return metrics_page(counts); }}},
               {"/healthz", {"text/plain; charset=utf-8", [&counts] { return health_page(counts); }, true}}});
}

kube::SchedulingOptions scheduling_options(const cli::KubeSchedulerOptions& options,
                                           const kube::ServerVersion& version) {
  kube::SchedulingOptions scheduling;
  scheduling.scheduler = scheduler_options(options, version);
  scheduling.writes = options.writes;
  scheduling.warn = warn;
  return scheduling;
}

kube::LeaseOptions lease_options(const cli::KubeSchedulerOptions& options, const std::string& name_space) {
  return lease_of(options.lease_namespace.empty() ? name_space : options.lease_namespace,
                  options.lease_name.empty() ? options.name + "-scheduler" : options.lease_name);
}

Status run(const cli::KubeSchedulerOptions& options) {
  const EndSignals signals;
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  const auto lease = lease_options(options, config.name_space);
  DROVER_TRY(const auto api, kube::ApiClient::open(std::move(config)));
  DROVER_TRY(const auto version, kube::server_version(*api));
  kube::SchedulingCounts counts;
  DROVER_TRY(const auto pages, serve_pages(options.listen, counts));
  Leadership leadership(*api, lease);
  auto scheduling = scheduling_options(options, version);
  scheduling.may_write = [&leadership] { return leadership.is_leader(); };
  kube::SchedulingLoop loop(*api, counts, std::move(scheduling));
  const kube::ClusterWatch watch(*api, loop, version, warn);
  DROVER_CHECK_OK(watch.wait_until_listed(kListing));
  bool begun = false;
  while (!signals.came_within(begun ? std::chrono::milliseconds(1h) : 20ms)) {
    if (begun || !leadership.may_begin()) continue;
    begun = true;
    loop.begin();
    spdlog::info("Scheduling pods with schedulerName '{}'", options.name);
  }
  spdlog::info("Stopping; pods go on where they are");
  return {};
}

}  // namespace

Status run_kube_scheduler(const cli::KubeSchedulerOptions& options) {
  set_up_log(options.log);
  ::signal(SIGPIPE, SIG_IGN);
  return run(options);
}

}  // namespace drover
