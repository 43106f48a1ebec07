#pragma once

// What the cluster's scheduler would do with the pods that tasks would be: the cluster is read once, and
// asked by the same pure call that places. Nothing is written, not even tried. Blocks, and not without end.

#include <chrono>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kube/client/api.h"
#include "kube/client/server_version.h"
#include "placement/cluster.h"
#include "placement/forecast.h"
#include "pods/pod_writer.h"

namespace drover::pods {

struct ForecastOptions {
  PodSettings pods;
  kube::ServerVersion version;
  placement::NodePolicy policy = placement::NodePolicy::kPack;  ///< the scheduler's
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

/// One task, or a gang by rank; with their ids. Errors are those of write_pod() and of kube::read_cluster().
Result<placement::Forecast> forecast(kube::Api& api, const std::vector<workload::Task>& tasks,
                                     const ForecastOptions& options, TimePoint now);

}  // namespace drover::pods
