#pragma once

// From an ExecutorInfo with the tasks that it is to run to what Drover starts: one task. Mistakes are told in
// the words of Mesos, which frameworks show to people. Pure.

#include <string>
#include <vector>

#include "api/mesos/task_info.h"
#include "control/executor_record.h"

namespace drover::api::mesos {

/// Where executors find the daemon, and how long that lets them wait.
struct ExecutorPlace {
  std::string endpoint;  ///< "127.0.0.1:5050"; "": they cannot reach it
  control::ExecutorTimeouts timeouts;
  bool in_pods = false;  ///< each has a network of its own
};

/// `infos` are those of a LAUNCH that name this executor, or of a LAUNCH_GROUP. The error's message is that
/// of TASK_ERROR.
Result<control::ExecutorLaunch> read_executor(const v1::ExecutorInfo& executor,
                                              const std::vector<const v1::TaskInfo*>& infos,
                                              const LaunchContext& context, bool in_group,
                                              const ExecutorPlace& place);

}  // namespace drover::api::mesos
