#pragma once

// The Containerizer seam: carries one task's container from a launch to its exit status, and finds it again
// after the daemon was gone. All calls block and are thread safe; the caller runs them on a pool and never
// makes two calls for one task at a time.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sandbox.h"
#include "base/units.h"
#include "cdi/specification.h"
#include "container/exec.h"
#include "gpu/device_node.h"
#include "gpu/machine_facts.h"
#include "gpu/mig_facts.h"
#include "share/mps_daemons.h"
#include "share/pages.h"
#include "workload/ending.h"
#include "workload/node_rule.h"
#include "workload/task.h"

namespace drover::container {

/// A folder or file of the host that the container gets.
struct HostMount {
  std::string source;
  std::string destination;
  bool writable = false;
};

/// What of the host's driver goes with the GPUs. Used only when the task was given GPUs.
struct DriverSupply {
  std::vector<gpu::DeviceNode> control_devices;  ///< nvidiactl, nvidia-uvm, nvidia-uvm-tools
  /// Makes the driver volume ready: it is the first, at /usr/local/nvidia, and the others lie in it. Called
  /// only for images that want it (driver::wants_volume).
  std::function<Result<std::vector<HostMount>>()> volume;
  /// Finds the driver's files: as mounts at their own paths, and the hooks that make them be found, as a CDI
  /// specification has them. Called only for tasks with an image.
  std::function<Result<cdi::Edits>()> files;
  /// For guarded tasks without an image: driver::guard_on_host. None where they do not see the driver's
  /// files.
  std::vector<HostMount> on_host;
};

/// How much of a GPU a task has.
struct GpuShare {
  int milli = 1000;
  std::uint64_t memory_bytes = 0;  ///< 0 when unknown
};

/// What a member of a gang is told of the others.
struct GangPlace {
  std::string id;
  int rank = 0;
  std::vector<std::string> hosts;  ///< names of the machines, by rank
  std::string first_address;       ///< where the first member can be reached from here
  int first_port = 0;
};

using MemoryLimiter = std::function<Status(const std::string& group)>;

struct Launch {
  workload::Task task;
  std::set<std::string> secrets;  ///< variables of its environment that nobody but the task is to read
  /// How often it was started before and put back into the queue. Each attempt runs at most once; sandbox and
  /// logs go on from the one before, everything else begins anew.
  int attempt = 0;
  int preemptions = 0;                       ///< so often of them it made room for others
  std::vector<gpu::DeviceNode> gpu_devices;  ///< exactly those that the task owns; everything else is denied
  std::vector<std::string> gpu_uuids;        ///< in the same order; the environment's NVIDIA_VISIBLE_DEVICES
  std::vector<GpuShare> gpu_shares;          ///< in the same order; empty when it has them whole
  /// What the guard holds it to; `driver` has the guard then. None: nothing does.
  std::vector<share::Limit> limits;
  /// Ids of the tasks that have these limits together with it, as of when it is called; its own may be among
  /// them. From any thread. May be empty: it has them alone.
  std::function<std::vector<std::string>()> together;
  /// MIG instances that are made for it first. Their UUIDs and nodes then take the place of its GPUs'.
  std::vector<gpu::MigPart> parts;
  /// The name of the group whose MPS daemon its GPUs have, which is started first if need be; "" for none.
  std::string mps_group;
  /// What the container gets of that daemon: the containerizer says it.
  std::optional<share::MpsPlaces> mps;
  int processes = 4096;           ///< at most
  std::vector<int> cpus;          ///< to be pinned to, ascending; empty: it floats
  std::vector<std::string> nics;  ///< near its GPUs
  std::optional<GangPlace> gang;
  std::vector<int> host_ports;  ///< numbers on the machine, in the order of the task's network.ports
  std::vector<workload::NodeRule> node_rules;  ///< where the scheduler of a cluster may put it
  DriverSupply driver;
  cdi::Edits devices;         ///< of the other vendors' CDI devices that the task asked for
  gpu::MachineFacts machine;  ///< what the image must fit (image_choice.h, driver_check.h)
  /// The journal's text about the task, kept in its folder: a journal that lost it can take it up again.
  std::string record;
  /// Hears a sentence per step of long preparations, from the thread that launch() runs on. May be empty.
  std::function<void(const std::string&)> progress;
  /// Has the driver itself hold the container to its share of GPU memory: called with the directory of the
  /// control group, of version 2, that was made for it and is empty. Where the task insists on that
  /// (ShareBy::kKernel), launch() fails with its error, and with kUnsupported in a Docker Engine; else the
  /// container goes without. May be empty.
  MemoryLimiter limit_memory;
  /// Asked when all is ready and before anything of the task runs: why it must not. May be empty.
  std::function<Status()> may_start;
  /// Ends preparations that may take long (fetching files): launch() fails then.
  std::stop_token stop;
};

using workload::Ending;

struct Running {
  pid_t pid = 0;  ///< first process of the container, in the host's numbering; 0: not known
  TimePoint started_at{};
  std::string containerizer = "oci";  ///< by whom: "oci", "docker", "kubernetes"
  std::string address = {};           ///< of its own; "": the machine's
  std::string tier = {};  ///< of what holds it to its shares of GPUs (gpu/share_tier.h); "": nothing
  std::vector<std::string> parts = {};  ///< UUIDs of its MIG instances, in their order
};

/// Where others than we have put a task.
struct Place {
  std::string node;
  std::vector<std::string> gpus;  ///< UUIDs
};

/// Called from any thread, in order for one task: started at most once, then ended exactly once.
struct Watcher {
  std::function<void(const std::string& task_id, Running)> started;
  std::function<void(const std::string& task_id, Ending)> ended;
  /// What went wrong after everybody had been answered; may be empty.
  std::function<void(const std::string& line)> log;

  // Of containerizers that let others place; of each attempt, before it starts:
  std::function<void(const std::string& task_id, int attempt, Place)> placed = {};
  /// Why it waits for a place, or there, in words.
  std::function<void(const std::string& task_id, const std::string& why)> waits = {};
  /// It makes room; ended() follows, or failed().
  std::function<void(const std::string& task_id, int attempt, const std::string& why)> evicted = {};
  /// Instead of ended(): nothing of it has run or will, and it may be launched again as the same attempt.
  std::function<void(const std::string& task_id, int attempt, const Error& why)> put_back = {};
  /// Instead of ended(): nothing of it has run or will.
  std::function<void(const std::string& task_id, int attempt, const Error& why)> failed = {};
};

/// What became of a task that was launched before the daemon went away.
enum class Found {
  kNever,  ///< launch() had not come so far that anything could have run: it is safe to launch now
  kAlive,  ///< it runs or is about to; the Watcher hears of it from now on
  kEnded,  ///< it ended meanwhile; the Watcher hears of it
};

/// What the folder of a task says by itself, without the journal.
struct FolderView {
  bool alive = false;  ///< its shim lives
  std::string record;  ///< Launch::record of the last attempt; "" when it is not there
};

class Containerizer {
 public:
  virtual ~Containerizer() = default;

  /// Prepares sandbox, image and bundle and starts the shim. Idempotent by task id and attempt: one that was
  /// already started is never started again. A later attempt comes only after the end of the one before was
  /// told. On error nothing runs and nothing is left but the sandbox.
  virtual Status launch(const Launch& launch) = 0;
  /// SIGTERM, and after the task's grace SIGKILL to all its processes; at once when `force`. Returns before
  /// it ended.
  virtual Status stop(const std::string& task_id, bool force) = 0;
  /// After a restart of the daemon: finds this attempt at the task again and resumes watching it.
  virtual Result<Found> recover(const std::string& task_id, int attempt) = 0;
  /// Calls `change` with the control group of a task that runs, in which the driver holds it to its share
  /// (Launch::limit_memory); not at all where the driver does not.
  virtual Status change_memory_limit(const std::string& task_id, const MemoryLimiter& change) {
    (void)task_id, (void)change;
    return {};
  }
  /// Removes what a task that ended left outside its sandbox (mounts, cgroup, bundle, upper layer).
  /// Idempotent.
  virtual Status clean(const std::string& task_id) = 0;
  /// Removes the sandbox too; ends the task first if it still runs (then without a word to the Watcher). The
  /// sandbox is gone at once, the space that it took comes back a little later. Idempotent.
  virtual Status forget(const std::string& task_id) = 0;
  /// Starts a command in the container of a task that runs. May be called while other calls for the task are
  /// made. kConflict when it does not run.
  virtual Result<std::unique_ptr<ExecProcess>> exec(const std::string& task_id, const ExecRequest& request);
  /// A connection to what the task reads (task_input.h). kUnsupported when it reads from nobody.
  virtual Result<UniqueFd> connect_input(const std::string& task_id);
  /// Ids of all tasks that have a folder, sorted; but for those in quarantine.
  virtual std::vector<std::string> known() const = 0;
  virtual Result<FolderView> examine(const std::string& task_id) const = 0;
  /// Ends a task that still runs, without a word to the Watcher, and does what clean() does. Idempotent.
  virtual Status end(const std::string& task_id) = 0;
  /// Takes the folder of a task that does not run out of the way, with all that the task wrote, and returns
  /// where it is now; closed to all but root.
  virtual Result<std::string> quarantine(const std::string& task_id) = 0;
  /// How many folders are in quarantine, and where.
  struct Quarantine {
    std::string folder;
    std::vector<std::string> names;  ///< sorted
  };
  virtual Quarantine quarantined() const = 0;
  /// The folder with stdout, stderr and the task's own files.
  virtual std::string sandbox(const std::string& task_id) const = 0;
  /// The same files, wherever they are.
  virtual std::shared_ptr<const SandboxReader> files(const std::string& task_id) const {
    return std::make_shared<const FolderReader>(sandbox(task_id));
  }
};

}  // namespace drover::container
