#pragma once

// Where the world comes into the local engine: threads, time, and what is seen and done on the machine. Its
// parts (strangers.h, executor.h, …) are each handed what they need of it. Values.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cdi/specification.h"
#include "container/containerizer.h"
#include "engine/check_targets.h"
#include "gpu/device.h"
#include "image/store.h"
#include "placement/forecast.h"
#include "share/kernel_limit.h"
#include "share/pages.h"
#include "share/referee.h"
#include "store/allocation.h"
#include "use/sampler.h"
#include "workload/node_rule.h"
#include "workload/task.h"

namespace drover::engine {

using Work = std::function<void()>;
/// What is known of a task in [from, until], seconds since 1970, by the number of a resolution
/// (use/ring.h).
using UseHistory = std::function<Result<use::History>(const std::string& task, std::size_t resolution,
                                                      std::uint32_t from, std::uint32_t until)>;

/// The control strand, the threads beside it, and time.
struct Loop {
  std::function<void(Work)> post;  ///< runs it on the control strand; callable from any thread
  /// Runs it on a thread that may block; of one user only so much at once (base/fair_pool.h).
  std::function<void(uid_t, Work)> pool;
  /// The same for what may take hours, and holds up only its like.
  std::function<void(uid_t, Work)> slow_pool;
  std::function<TimePoint()> now;
  /// Goes on whatever becomes of `now` (base/steady_timeline.h). May be empty: then `now` does.
  std::function<TimePoint()> steady;
  std::function<void(TimePoint)> wake_at;       ///< calls tick() no later than then, by `steady`
  std::function<void(const std::string&)> log;  ///< what somebody should look at
};

/// A task that may have processes now.
struct TaskProcesses {
  std::string id;
  pid_t first = 0;             ///< of its container; 0: not known
  std::set<std::string> gpus;  ///< UUIDs of those that it has, or a share of

  bool operator==(const TaskProcesses&) const = default;
};

/// Pages of the guard: one of the tasks that may have them, and what they are to say.
struct GuardedShare {
  std::string task;  ///< id
  std::vector<share::Limit> limits;

  bool operator==(const GuardedShare&) const = default;
};

/// The GPUs of this machine that are shared, and by whom.
struct SharedGpus {
  std::vector<gpu::Device> gpus;
  std::vector<share::Allowance> allowances;
  std::vector<TaskProcesses> tasks;             ///< that have shares
  std::map<std::string, GuardedShare> guarded;  ///< by the allowance's name

  bool operator==(const SharedGpus&) const = default;
};

/// What is kept of events. Who has more than others loses his oldest first.
struct EventLimits {
  std::size_t most = 100'000;  ///< and a tenth more for a while
  std::chrono::milliseconds longest = std::chrono::hours(24 * 30);
};

/// Where the world comes in.
struct Ports : Loop {
  /// Runs it on the one thread that writes the journal, in order. May be empty: then the strand waits.
  std::function<void(Work)> journal;
  std::function<std::string()> new_id;           ///< random; a clash is noticed
  std::function<void(const std::string&)> info;  ///< good news; may be empty: then nobody is told
  /// Why these GPUs must not be given on, by UUID: somebody else than who has them has them open. Called on
  /// the pool; looks at every process of the machine. May be empty: then nobody is looked for.
  std::function<std::map<std::string, std::string>(const std::vector<gpu::Device>&,
                                                   const std::vector<TaskProcesses>&)>
      strangers;
  /// What still runs of each of these tasks, in words: "process 7 (train) hangs in the kernel". Called on the
  /// pool; looks at every process of the machine. May be empty: then nobody asks.
  std::function<std::map<std::string, std::string>(const std::vector<TaskProcesses>&)> what_still_runs;
  /// Which of these tasks made GPUs work since it was asked last, or may have: not every driver says. They
  /// are all that have, or share, these GPUs of this machine; on a cluster none are named. Called on the
  /// pool. May be empty: then nobody asks.
  std::function<std::set<std::string>(const std::vector<gpu::Device>&, const std::vector<TaskProcesses>&)>
      busy_tasks;
  /// From now on it is watched who holds more of these than he was given (LocalEngine::judged). Quick. May be
  /// empty: then nobody watches.
  std::function<void(SharedGpus)> watch_shares;
  /// What a task uses is looked at from now on, until it is told to have ended (use/sampler.h). Quick. May be
  /// empty: then nobody looks.
  std::function<void(use::Watched)> watch_use;
  /// What it used, and no more is looked at. Called from any thread; reads a file. Empty as that is.
  std::function<std::optional<workload::Use>(const std::string& task)> end_use;
  /// Nor is what was told of late. Quick. Empty as that is.
  std::function<void(const std::string& task)> forget_use;
  /// use::Sampler::history(). Called on a pool. Empty as that is.
  UseHistory use_history;
  /// use::Sampler::latest(). Called from any thread. Empty as that is.
  std::function<std::map<std::string, use::Latest>()> latest_use;
  /// Bytes that each of these tasks takes up on the disk, or why that cannot be seen; those that are gone are
  /// left out. Called on the pool. May be empty: then nobody asks.
  std::function<std::map<std::string, Result<std::uint64_t>>(const std::vector<TaskProcesses>&)> task_space;
  /// Device nodes of these GPUs, in their order. Called on the pool.
  std::function<Result<std::vector<gpu::DeviceNode>>(const std::vector<gpu::Device>&)> gpu_nodes;
  /// What of the driver goes with GPUs; `guarded`: with the guard before it, kUnsupported or kNotFound where
  /// there can be none. Called on the pool, only for tasks that own GPUs.
  std::function<Result<container::DriverSupply>(bool guarded)> driver_supply;
  /// What has the driver itself hold a container to so much memory of GPUs, or why nothing can. Called on the
  /// pool. May be empty: then nothing can.
  std::function<Result<container::MemoryLimiter>(const std::vector<share::KernelLimit>&)> memory_limiter;
  /// Called on the pool.
  std::function<Result<std::string>()> cdi_specification;
  /// Sets other limits of a control group in which something runs. Called on the pool. May be empty, as
  /// above.
  std::function<Status(const std::string& group, const std::vector<share::KernelLimit>&)>
      change_memory_limits;
  /// What the other vendors' devices that a task names do to its container, or why it cannot have them.
  /// Quick: it reads a few files. May be empty: then there are none.
  std::function<Result<cdi::Edits>(const workload::Task&)> devices;
  /// The value of a variable that only the task's container is told, and that is kept nowhere: for those that
  /// a task has without a value. nullopt: it stays so. Called on the pool. May be empty: then there are none.
  std::function<std::optional<std::string>(const std::string& task_id, const std::string& name)> secret;
  image::VariantLookup image_variants;  ///< called on a pool
  /// The machine of a profile of the simulator, by its name. Called on the pool.
  std::function<Result<gpu::MachineFacts>(const std::string& profile)> profile_facts;
  /// That a container can be pinned to; none where it cannot.
  std::vector<int> usable_cpus;
  /// Ports of the machine on which somebody listens now. Quick; may be empty: then nobody is known to.
  std::function<std::set<int>()> listening;
  /// Bytes that are free where the journal and the tasks' folders are. Quick; may be empty: then there is
  /// room.
  std::function<std::uint64_t()> free_space;
  EventLimits events;
  store::AllocationLimits allocations;
  /// When fewer bytes are free there, what nobody uses goes, and then the oldest ended tasks are forgotten
  /// (control/retention.h).
  std::uint64_t room_to_keep = 0;
  /// Frees so many bytes of images and of what else can be had again, as far as nobody uses it; what these
  /// images consist of stays. Called on the pool. May be empty: then there is nothing of the kind.
  std::function<void(std::uint64_t bytes, const std::set<control::ImageName>& named)> free_unused;
  /// What is wrong with the machine, but for its GPUs. Quick; may be empty: then nothing is.
  std::function<std::vector<Error>()> problems;
  /// Why such a task can never run here. Quick; may be empty: then nobody knows before it is launched.
  std::function<Status(const workload::Task&, const std::vector<workload::NodeRule>&)> check_task;
  /// Why whoever shares out the GPUs can't keep to such rules. Quick; may be empty: then it can.
  std::function<Status(const placement::Rules&)> check_rules;
  /// From now on it keeps to these. Quick; may be empty: then nobody is told.
  std::function<void(const placement::Rules&)> keep_rules;
  /// What whoever places would do with one task, or a gang by rank, if it came now. Blocks; called from any
  /// thread. May be empty: then nobody knows.
  std::function<Result<placement::Forecast>(const std::vector<workload::Task>&)> forecast;
  /// From now on exactly these checks are made of the task. May be empty: then there are none.
  std::function<void(const std::string& task_id, std::vector<CheckTarget>)> check;
};

}  // namespace drover::engine
