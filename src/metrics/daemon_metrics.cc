#include "metrics/daemon_metrics.h"

namespace drover::metrics {
namespace {

constexpr Metric kBuildInfo{"drover_build_info", Type::kGauge, "Always 1: which version this is"};
constexpr Metric kTaskCounts{"drover_tasks", Type::kGauge, "Tasks that are known, by their state"};
constexpr Metric kQueueWaiting{"drover_queue_waiting", Type::kGauge,
                               "Tasks that wait in the queue, and for nothing but their resources"};
constexpr Metric kQueueWait{"drover_queue_longest_wait_seconds", Type::kGauge,
                            "How long the oldest of these has waited; 0 when there is none"};
constexpr Metric kQueueUsed{"drover_queue_used_gpus", Type::kGauge,
                            "GPUs that the running tasks of the queue and of those below it have"};
constexpr Metric kQueueLimit{"drover_queue_limit_gpus", Type::kGauge, "GPUs that they may have at most"};
constexpr Metric kQueueGuaranteed{"drover_queue_guaranteed_gpus", Type::kGauge,
                                  "GPUs that they get back from others when they want them"};
constexpr Metric kAppWanted{"drover_app_wanted_instances", Type::kGauge, "Instances that the app is to have"};
constexpr Metric kAppRunning{"drover_app_running_instances", Type::kGauge, "Instances of it that run"};
constexpr Metric kAppHealthy{"drover_app_healthy_instances", Type::kGauge,
                             "Instances of it that pass all their health checks"};
constexpr Metric kAppUnhealthy{"drover_app_unhealthy_instances", Type::kGauge,
                               "Instances of it that fail one"};
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
constexpr Metric kAnswerTimes{"drover_api_answer_seconds", Type::kHistogram,
                              "How long an answer of the API took to begin, once the request was there"};
constexpr Metric kPulls{"drover_image_pulls", Type::kGauge,
                        "Images that people have asked for and that are being pulled or loaded"};
constexpr Metric kRefusedConnections{"drover_api_refused_connections_total", Type::kCounter,
                                     "Connections that were closed at once: too many were open"};

template <typename Count>
Family by(const Metric& metric, const char* label, const std::map<std::string, Count>& counts) {
  Family family{&metric, {}};
  for (const auto& [name, count] : counts)
    family.samples.push_back({{{label, name}}, static_cast<double>(count)});
  return family;
}

/// What each of `all` says of `field`.
template <typename Of, typename Value>
Family each(const Metric& metric, const char* label, const std::vector<Of>& all, std::string Of::* name,
            Value Of::* field) {
  Family family{&metric, {}};
  for (const auto& one : all)
    if (const std::optional<double> value = one.*field)
      family.samples.push_back({{{label, one.*name}}, *value});
  return family;
}

void add_work(const DaemonFacts& facts, std::vector<Family>& families) {
  const auto queues = [&](const Metric& metric, auto field) {
    families.push_back(each(metric, "queue", facts.queues, &QueueFacts::path, field));
  };
  queues(kQueueWaiting, &QueueFacts::waiting);
  queues(kQueueWait, &QueueFacts::longest_wait);
  queues(kQueueUsed, &QueueFacts::used_gpus);
  queues(kQueueLimit, &QueueFacts::limit_gpus);
  queues(kQueueGuaranteed, &QueueFacts::guaranteed_gpus);
  const auto apps = [&](const Metric& metric, int AppFacts::* field) {
    families.push_back(each(metric, "app", facts.apps, &AppFacts::id, field));
  };
  apps(kAppWanted, &AppFacts::wanted);
  apps(kAppRunning, &AppFacts::running);
  apps(kAppHealthy, &AppFacts::healthy);
  apps(kAppUnhealthy, &AppFacts::unhealthy);
}

}  // namespace

Family build_family(const std::string& version) {
  return {&kBuildInfo, {{{{"version", version}}, 1}}};
}

std::vector<Metric> daemon_catalogue() {
  return {kBuildInfo,    kTaskCounts,      kQueueWaiting,  kQueueWait,          kQueueUsed,
          kQueueLimit,   kQueueGuaranteed, kAppWanted,     kAppRunning,         kAppHealthy,
          kAppUnhealthy, kCommits,         kUnsavedEvents, kControlLag,         kPoolRunning,
          kPoolWaiting,  kApiAnswers,      kAnswerTimes,   kRefusedConnections, kPulls};
}

std::vector<Family> daemon_families(const DaemonFacts& facts) {
  std::map<std::string, std::size_t> running, waiting;
  for (const auto& pool : facts.pools) {
    running[pool.name] = pool.running;
    waiting[pool.name] = pool.waiting;
  }
  std::map<std::string, std::uint64_t> answers;
  for (const auto& [status, count] : facts.answers) answers[std::to_string(status)] = count;
  std::vector<Family> families{build_family(facts.version), by(kTaskCounts, "state", facts.tasks)};
  add_work(facts, families);
  families.insert(families.end(),
                  {{&kCommits, facts.commits},
                   {&kUnsavedEvents, {{{}, static_cast<double>(facts.unsaved_events)}}},
                   {&kControlLag, facts.lags},
                   by(kPoolRunning, "pool", running),
                   by(kPoolWaiting, "pool", waiting),
                   by(kApiAnswers, "code", answers),
                   {&kAnswerTimes, facts.answer_times},
                   {&kRefusedConnections, {{{}, static_cast<double>(facts.refused_connections)}}}});
  if (facts.pulls) families.push_back({&kPulls, {{{}, static_cast<double>(*facts.pulls)}}});
  return families;
}

}  // namespace drover::metrics
