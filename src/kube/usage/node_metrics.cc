#include "kube/usage/node_metrics.h"

#include "metrics/daemon_metrics.h"

namespace drover::kube {
namespace {

using metrics::Metric;
using metrics::Type;

constexpr Metric kSourceUp{
    "drover_source_up", Type::kGauge,
    "1 if the kubelet, or the container runtime, told who has what; else it is as before"};
constexpr Metric kPrepares{"drover_kube_prepare_seconds", Type::kHistogram,
                           "How long it took to prepare a claim for the kubelet, or to refuse it"};
constexpr Metric kSeconds{"drover_scrape_seconds", Type::kGauge, "How long it took to find all this out"};

}  // namespace

std::vector<Metric> node_catalogue() {
  return {kSourceUp, kSeconds, kPrepares};
}

std::vector<metrics::Family> node_families(const ScrapeFacts& facts) {
  return {metrics::build_family(facts.version),
          {&kSourceUp,
           {{{{"source", "kubelet"}}, facts.kubelet_up ? 1.0 : 0.0},
            {{{"source", "container-runtime"}}, facts.runtime_up ? 1.0 : 0.0}}},
          {&kSeconds, {{{}, facts.seconds}}},
          {&kPrepares, facts.prepares}};
}

}  // namespace drover::kube
