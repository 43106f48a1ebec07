#pragma once

// Plays recorded jobs against a cluster, event by event: an arrival, or an end. Deterministic.

#include <functional>
#include <vector>

#include "placement/run_times.h"
#include "recorded.h"

namespace drover::bench {

/// What a discipline sees, and what it answers.
struct Scene {
  placement::Cluster& cluster;
  const std::vector<placement::Job>& waiting;  ///< by arrival
  const std::vector<placement::RunningJob>& running;
  const std::vector<RecordedJob>& recorded;  ///< by sequence
  TimePoint now;
};
using Discipline = std::function<std::vector<placement::Start>(const Scene& scene)>;

/// Strictly in order of arrival.
std::vector<placement::Start> first_come_first_served(const Scene& scene);
/// Whoever fits, in order of arrival: nobody waits for the sake of anybody.
std::vector<placement::Start> whoever_fits(const Scene& scene);
/// Whoever fits, from the shortest; it knows what nobody can know.
std::vector<placement::Start> shortest_first(const Scene& scene);
/// placement::plan(), as Drover's daemon asks it.
std::vector<placement::Start> drover_queue(const Scene& scene);

struct Outcome {
  std::vector<double> waits;        ///< seconds from arrival to start, by sequence
  std::vector<double> completions;  ///< seconds from arrival to end, by sequence
  double gpu_use = 0;               ///< part of all GPUs that was held, from the first arrival to the last
  std::size_t decisions = 0;        ///< how often the discipline was asked
};

/// What is known of how long jobs run.
enum class Known {
  kNothing,
  kHistory,     ///< how long jobs of the same size have run that have ended
  kTimeLimits,  ///< each says truly how long it runs
};

Outcome replay(const placement::Cluster& cluster, const std::vector<RecordedJob>& recorded,
               const Discipline& discipline, Known known);

}  // namespace drover::bench
