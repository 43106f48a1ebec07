#pragma once

// What the daemon tells Prometheus of itself, beside the GPUs. Pure. docs/metrics.md has all of it.

#include <cstdint>
#include <map>
#include <optional>
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

/// A queue, without those below it.
struct QueueFacts {
  std::string path;
  std::size_t waiting = 0;  ///< tasks that are held back by nothing of their own
  double longest_wait = 0;  ///< of one of them, in seconds
  double used_gpus = 0;     ///< also by those below it
  std::optional<double> limit_gpus;
  std::optional<double> guaranteed_gpus;
};

/// A service, and how many of its instances are what.
struct AppFacts {
  std::string id;
  int wanted = 0;
  int running = 0;
  int healthy = 0;
  int unhealthy = 0;
};

struct DaemonFacts {
  std::string version;                       ///< of the program
  std::map<std::string, std::size_t> tasks;  ///< how many, by their state
  std::vector<QueueFacts> queues;
  std::vector<AppFacts> apps;
  std::vector<Sample> commits;     ///< of a histogram, in seconds
  std::size_t unsaved_events = 0;  ///< that wait until the journal can take them
  std::vector<Sample> lags;        ///< of a histogram, in seconds
  std::vector<PoolFacts> pools;
  std::map<int, std::uint64_t> answers;   ///< since the start, by HTTP status
  std::vector<Sample> answer_times;       ///< of a histogram, in seconds
  std::optional<std::size_t> pulls;       ///< of images, under way; none where no images are kept
  std::uint64_t refused_connections = 0;  ///< since the start
};

/// Always 1; the same for every program of ours.
Family build_family(const std::string& version);

/// Every metric of daemon_families(), in its order.
std::vector<Metric> daemon_catalogue();
std::vector<Family> daemon_families(const DaemonFacts& facts);

}  // namespace drover::metrics
