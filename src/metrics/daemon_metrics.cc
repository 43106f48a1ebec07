#include "metrics/daemon_metrics.h"

namespace drover::metrics {
namespace {

constexpr Metric kBuildInfo{"drover_build_info", Type::kGauge, "Always 1: which version this is"};
constexpr Metric kTaskCounts{"drover_tasks", Type::kGauge, "Tasks that are known, by their state"};
constexpr Metric kCommits{"drover_journal_commit_seconds", Type::kHistogram,
                          "How long it took to write a change into the journal, until it was on the disk"};
constexpr Metric kUnsavedEvents{"drover_journal_unsaved_events", Type::kGauge,
                                "What has happened and could not be written into the journal yet"};
constexpr Metric kControlLag{"drover_control_lag_seconds", Type::kHistogram,
                             "How late the thread that decides came to what was due, once a second"};
constexpr Metric kPoolRunning{"drover_pool_running", Type::kGauge, "Work that may block and is being done"};
constexpr Metric kPoolWaiting{"drover_pool_waiting", Type::kGauge, "Work that waits for a thread"};
constexpr Metric kApiAnswers{"drover_api_answers_total", Type::kCounter,
                             "Answers of the API, by their HTTP status"};
constexpr Metric kRefusedConnections{"drover_api_refused_connections_total", Type::kCounter,
                                     "Connections that were closed at once: too many were open"};

template <typename Count>
Family by(const Metric& metric, const char* label, const std::map<std::string, Count>& counts) {
  Family family{&metric, {}};
  for (const auto& [name, count] : counts)
    family.samples.push_back({{{label, name}}, static_cast<double>(count)});
  return family;
}

}  // namespace

Family build_family(const std::string& version) {
  return {&kBuildInfo, {{{{"version", version}}, 1}}};
}

std::vector<Metric> daemon_catalogue() {
  return {kBuildInfo,   kTaskCounts,  kCommits,    kUnsavedEvents,     kControlLag,
          kPoolRunning, kPoolWaiting, kApiAnswers, kRefusedConnections};
}

std::vector<Family> daemon_families(const DaemonFacts& facts) {
  std::map<std::string, std::size_t> running, waiting;
  for (const auto& pool : facts.pools) {
    running[pool.name] = pool.running;
    waiting[pool.name] = pool.waiting;
  }
  std::map<std::string, std::uint64_t> answers;
  for (const auto& [status, count] : facts.answers) answers[std::to_string(status)] = count;
  return {build_family(facts.version),
          by(kTaskCounts, "state", facts.tasks),
          {&kCommits, facts.commits},
          {&kUnsavedEvents, {{{}, static_cast<double>(facts.unsaved_events)}}},
          {&kControlLag, facts.lags},
          by(kPoolRunning, "pool", running),
          by(kPoolWaiting, "pool", waiting),
          by(kApiAnswers, "code", answers),
          {&kRefusedConnections, {{{}, static_cast<double>(facts.refused_connections)}}}};
}

}  // namespace drover::metrics
