#pragma once

// The page that Prometheus reads on a node of a cluster: puts the GPUs, the kubelet, the container runtime
// and /proc together (docs/metrics.md). Thread safe.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "http/page_server.h"
#include "kube/kubelet/container_runtime.h"
#include "kube/kubelet/pod_resources.h"
#include "kube_node/gpus.h"
#include "kube_node/shares.h"
#include "metrics/histogram.h"

namespace drover {

class KubeMetrics {
 public:
  /// Serves nothing yet. `gpus` and `shares` outlive it. `healthz`: whether the program lives, as of the page
  /// of that name.
  KubeMetrics(const cli::KubeNodeOptions& options, std::string version, KubeGpus& gpus,
              const KubeShares& shares, http::Page healthz);

  /// Listens at the address of the options, unless it does already, or the options have none.
  Status listen();
  /// Counts a claim that was prepared, or refused. Never blocks for long.
  void prepared(std::chrono::duration<double> taken) { prepares_.observe(taken.count()); }

 private:
  /// What somebody told last, and whether he told it when he was asked last.
  template <typename Value>
  struct Source {
    std::optional<Value> last;
    bool up = false;

    void on_answer(Result<Value> answer);
  };

  std::string page();

  const cli::KubeNodeOptions options_;
  const std::string version_;
  KubeGpus& gpus_;
  const KubeShares& shares_;
  const http::Page healthz_;
  metrics::Histogram prepares_{metrics::kDurations};
  Source<std::vector<kube::ContainerUse>> kubelet_;  ///< this and the next: page()'s
  Source<std::vector<kube::RunningContainer>> runtime_;
  std::mutex mutex_;                          ///< of the server
  std::unique_ptr<http::PageServer> server_;  ///< ends first: it asks for pages
};

}  // namespace drover
