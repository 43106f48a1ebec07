#pragma once

// The frameworks that one caller may see, with their tasks. Two of them never subscribed: those who read
// Mesos know the apps of Marathon and the runs of Chronos as tasks of frameworks named so. The tasks are
// those of the snapshot, which outlives them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/mesos/snapshot.h"
#include "control/offers.h"

namespace drover::api::mesos {

struct SeenFramework {
  std::string id;
  control::FrameworkRecord record;
  bool connected = false;
  std::vector<const control::TaskRecord*> tasks;       ///< those launched; of ended ones the last 1000
  std::vector<const control::TaskRecord*> executors;   ///< containers of executors that it brought
  std::vector<const control::TaskRecord*> containers;  ///< those, and those of all other tasks
  std::vector<std::shared_ptr<const control::TaskRecord>>
      within;  ///< owns those of `tasks` that executors run
  control::ResourceAmounts used, offered;
};

/// Others than root see their own frameworks, and of apps and runs their own.
bool may_see(const engine::Caller& caller, const control::FrameworkRecord& record);

/// By id, the two of Marathon and Chronos last; or those that were removed.
std::vector<SeenFramework> frameworks_for(const Snapshot& snapshot, bool removed);

/// One that subscribed, or the one that a task is of. Without tasks; none where the caller may see none.
std::optional<SeenFramework> framework_named(const Snapshot& snapshot, const std::string& id);
std::optional<SeenFramework> framework_of(const Snapshot& snapshot, const control::TaskRecord& record);

/// As those who launched it would have it named in Mesos: "web.prod" of the app "/prod/web",
/// "ChronosTask:backup" of the schedule "backup".
std::string task_name(const control::TaskRecord& record);

/// The executor that a task belongs to: its own id, unless it is one of a group.
std::string executor_of(const control::State& state, const control::TaskRecord& record);
struct SeenExecutor {
  std::string id;
  std::string name;
  bool own = false;       ///< its framework brought it
  bool of_group = false;  ///< else of the one task that it is named after
  bool alive = false;     ///< one of its tasks has not ended
  std::vector<const control::TaskRecord*> tasks;
  const control::TaskRecord* shown = nullptr;  ///< the task whose container stands for it
  control::ResourceAmounts used;
};
/// By id.
std::vector<SeenExecutor> executors_of(const Snapshot& snapshot, const SeenFramework& framework);

/// What /files takes for the sandbox of a task.
std::string sandbox_path(const Snapshot& snapshot, const std::string& framework,
                         const control::TaskRecord& record, const std::string& executor);

}  // namespace drover::api::mesos
