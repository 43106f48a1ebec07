#pragma once

// What the daemon tells Prometheus of itself, beside the GPUs. Pure. docs/metrics.md has all of it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "metrics/exposition.h"

namespace drover::metrics {

/// Threads for work that may block.
struct PoolFacts {
  std::string name;
  std::size_t running = 0;
  std::size_t waiting = 0;
};

struct DaemonFacts {
  std::string version;                       ///< of the program
  std::map<std::string, std::size_t> tasks;  ///< how many, by their state
  std::vector<Sample> commits;               ///< of a histogram, in seconds
  std::size_t unsaved_events = 0;            ///< that wait until the journal can take them
  std::vector<Sample> lags;                  ///< of a histogram, in seconds
  std::vector<PoolFacts> pools;
  std::map<int, std::uint64_t> answers;   ///< since the start, by HTTP status
  std::uint64_t refused_connections = 0;  ///< since the start
};

/// Always 1; the same for every program of ours.
Family build_family(const std::string& version);

/// Every metric of daemon_families(), in its order.
std::vector<Metric> daemon_catalogue();
std::vector<Family> daemon_families(const DaemonFacts& facts);

}  // namespace drover::metrics
