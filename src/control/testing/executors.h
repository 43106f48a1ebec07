#pragma once

// Launches on executors of frameworks' own, for tests.

#include <string>
#include <vector>

#include "control/executors.h"
#include "control/testing/machine.h"

namespace drover::control::testing {

inline constexpr std::int64_t kTaskCpus = 100;  ///< thousandths

/// Of the framework "F": each task has a tenth of a CPU, and so has the executor itself.
inline ExecutorLaunch executor_launch(const std::string& executor, const std::vector<std::string>& tasks,
                                      int gpus = 0) {
  ExecutorLaunch launch;
  launch.framework = "F";
  launch.executor_id = executor;
  launch.info = R"({"executor_id":")" + executor + R"("})";
  launch.given = {.gpus = gpus, .milli_cpus = kTaskCpus};
  for (const auto& name : tasks) {
    launch.tasks.push_back({name, name, "{}", {.gpus = gpus, .milli_cpus = kTaskCpus}});
    launch.given.milli_cpus += kTaskCpus;
  }
  launch.container = task("", gpus);
  launch.container.name = executor;
  launch.container.resources.milli_cpus = launch.given.milli_cpus;
  launch.container.origin = {workload::OriginKind::kFramework, "F", executor, ""};
  return launch;
}

inline FrameworkRecord framework_of_executors() {
  FrameworkRecord record;
  record.name = record.user = "root";
  record.failover_timeout = std::chrono::hours(1);
  return record;
}

}  // namespace drover::control::testing
