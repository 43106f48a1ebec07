#pragma once

// The recorded cluster of bench/openb in an API server: its nodes, and its pods in the order of arrival. What
// shares a GPU is left out, since limits ask for whole ones. Blocks.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "kube/client/api.h"

namespace drover::bench {

struct RecordedOptions {
  std::string data = DROVER_BENCH_DATA "/openb";
  std::string list = "default";
  std::uint64_t seed = 42;  ///< of the order of arrival
  std::string name_space = {};
  std::string scheduler = {};
};
/// Percent of all GPUs that are allocated when the pods that have come want 100% and 130% of them.
Result<nlohmann::json> make_recorded_cluster(kube::Api& api, const RecordedOptions& options);

}  // namespace drover::bench
