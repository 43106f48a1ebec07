#pragma once

// A recorded cluster: nodes, and pods that want to run on them. Read from comma-separated files as in
// bench/data/openb. A wrong file is refused whole, with file, line and column.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::bench {

inline constexpr int kGpuMilli = 1000;
inline constexpr int kMaxGpus = 8;  ///< of one node
inline constexpr int kMaxModels = 32;

/// All resources of one node. `free_milli` says what is left of each GPU.
struct TraceNode {
  std::string name;
  std::int64_t milli_cpus = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  int model = 0;  ///< index into Trace::models
};

/// What pods ask for; pods that ask for the same share one.
struct PodShape {
  std::int64_t milli_cpus = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  int gpu_milli = 0;         ///< of each GPU; less than 1000 only when gpus is 1; 0 when gpus is 0
  std::uint32_t models = 0;  ///< bit set of allowed models; 0: any

  bool shares() const { return gpus == 1 && gpu_milli < kGpuMilli; }
  std::int64_t demand() const { return std::int64_t{gpus} * gpu_milli; }
  bool allows(int model) const { return models == 0 || (models >> model & 1) != 0; }
  auto operator<=>(const PodShape&) const = default;
};

struct Trace {
  std::vector<TraceNode> nodes;
  std::vector<std::string> models;
  std::vector<PodShape> shapes;  ///< ascending
  std::vector<int> pods;         ///< shape of each pod, by the pods' names

  std::int64_t capacity() const;            ///< milli-GPU of all nodes
  std::vector<double> frequencies() const;  ///< [shape]: parts of all pods
};

/// Of its pods those that want whole GPUs, or none.
Trace without_shares(const Trace& trace);

/// Reads `folder`/openb_node_list_gpu_node.csv and `folder`/openb_pod_list_`list`.csv.
Result<Trace> read_trace(const std::string& folder, const std::string& list);

}  // namespace drover::bench
