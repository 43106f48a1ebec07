#include "kube_node/metrics.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "kube/usage/attribution.h"
#include "kube/usage/node_metrics.h"
#include "metrics/gpu_metrics.h"
#include "node.h"

namespace drover {
namespace {

/// Less than the ten seconds that Prometheus waits, in all.
constexpr std::chrono::seconds kPatienceOfPage{2};

}  // namespace

template <typename Value>
void KubeMetrics::Source<Value>::on_answer(Result<Value> answer) {
  up = answer.has_value();
  if (answer) last = std::move(*answer);
}

KubeMetrics::KubeMetrics(const cli::KubeNodeOptions& options, std::string version, KubeGpus& gpus,
                         const KubeShares& shares, http::Page healthz)
    : options_(options),
      version_(std::move(version)),
      gpus_(gpus),
      shares_(shares),
      healthz_(std::move(healthz)) {}

Status KubeMetrics::listen() {
  const std::lock_guard lock(mutex_);
  if (server_ || options_.metrics_address.empty()) return {};
  DROVER_TRY(const auto address, http::parse_listen_address(options_.metrics_address));
  std::map<std::string, http::Page> pages;
  pages["/metrics"] = {metrics::kContentType, [this] { return page(); }};
  pages["/healthz"] = healthz_;
  DROVER_TRY(server_, http::PageServer::start(address, std::move(pages)));
  spdlog::info("Metrics are told at http://{}/metrics", to_string(server_->address()));
  return {};
}

std::string KubeMetrics::page() {
  const auto start = std::chrono::steady_clock::now();
  // First: who has started to use a GPU since then is not told of, and who is, is known to the others by now.
  metrics::MachineFacts machine{options_.node_name, gpus_.inventory(), gpus_.health(), gpus_.usage(), {}, {},
                                gpus_.mig()};
  kubelet_.on_answer(kube::list_pod_resources(kube::pod_resources_socket(options_.kubelet), kPatienceOfPage)
                         .map([](kube::PodResources&& told) { return std::move(told.containers); }));
  runtime_.on_answer(kube::list_containers(options_.runtime_endpoint, kPatienceOfPage));
  const auto running = runtime_.last.value_or(std::vector<kube::RunningContainer>{});
  machine.holders = kube::gpu_holders(machine.inventory, machine.mig, {options_.driver, options_.node_name},
                                      kubelet_.last.value_or(std::vector<kube::ContainerUse>{}),
                                      runtime_.up ? runtime_.last : std::nullopt);
  machine.processes = metrics::read_processes("/proc", machine.usage, kube::owner_by_cgroup(running));
  shares_.add_to(machine);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  auto families =
      kube::node_families({version_, kubelet_.up, runtime_.up, taken.count(), prepares_.samples()});
  std::ranges::move(metrics::gpu_families(machine), std::back_inserter(families));
  return metrics::write(families);
}

}  // namespace drover
