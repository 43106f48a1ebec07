#pragma once

// The folder of one task, <state>/tasks/<id>: which file means what. Everything in it but the sandbox belongs
// to root and is out of the task's reach.
//
//   launch.json   the LaunchSpec; removed under the lock when a task turns out never to have started
//   containerizer which one the task was given to: "oci", "docker"; absent: "oci"
//   record.json   what the journal had of the task at its last start: a journal that does not know the task
//                 takes it up again from here
//   parts         the task's MIG instances: there before the first is made and until the last is destroyed
//                 (part_book.h)
//   mps           the name of the group whose MPS daemon the task has, until it is its no more (mps_book.h)
//   shim.lock     flock'ed by the shim as long as it lives; holds the shim's process id
//   started       made once, durably, before anything of the task can run: whoever finds it never runs again.
//                 A task that was put back into the queue has one for each attempt: started.1, started.2 …
//   status.json   of the last attempt: running or ended, replaced atomically
//   use           what the task used, second by second (use/file.h)
//   output.record output.record.1  when, and in which order, the task wrote its output (output_record.h)
//   bundle/       config.json for the OCI runtime
//   upper/ work/  the writable layer of an image task
//   limited       UUIDs, a line each, of the GPUs on which the driver limits the memory of the task's control
//                 group: that goes only when the limits were taken away
//   network       where the network namespace is mounted, seen only in the shim's own mount namespace; for a
//                 task with a network of its own, as are
//   hosts resolv.conf  how its programs find names
//   volumes/      where the sandbox and volumes are mounted for a Docker Engine, until the container has them
//   input.sock    where the shim takes what people write to the task (task_input.h), if it takes any
//   runtime/      the OCI runtime's own state
//   runtime.lock  flock'ed by the OCI runtime while it starts the container, by a descriptor it inherits
//   runtime.log   what the OCI runtime had to say
//   devices/      nodes of its GPUs, for a Docker Engine to look at
//   sandbox/      stdout, stderr and the task's own files; belongs to the task's user

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"

namespace drover::container {

inline constexpr const char* kTasksFolder = "tasks";  ///< in the state folder
inline constexpr const char* kContainerizerFile = "containerizer";
inline constexpr const char* kLaunchSpecFile = "launch.json";
inline constexpr const char* kRecordFile = "record.json";
inline constexpr const char* kPartsFile = "parts";
inline constexpr const char* kMpsFile = "mps";
inline constexpr const char* kLockFile = "shim.lock";
inline constexpr const char* kStatusFile = "status.json";
inline constexpr const char* kPidFile = "pid";
inline constexpr const char* kBundle = "bundle";
inline constexpr const char* kConfiguration = "config.json";  ///< in the bundle
inline constexpr mode_t kConfigurationMode = 0644;  ///< nobody comes so far but the container's hooks
inline constexpr const char* kUpper = "upper";
inline constexpr const char* kWork = "work";
inline constexpr const char* kLimitedGpus = "limited";
inline constexpr const char* kNetwork = "network";
inline constexpr const char* kHosts = "hosts";
inline constexpr const char* kResolver = "resolv.conf";
inline constexpr const char* kInputSocket = "input.sock";
inline constexpr const char* kConsoleSocket = "console.sock";
inline constexpr const char* kRuntimeState = "runtime";
inline constexpr const char* kRuntimeLock = "runtime.lock";
inline constexpr const char* kRuntimeLog = "runtime.log";
inline constexpr const char* kJoinLock = "join.lock";
inline constexpr const char* kDevices = "devices";
inline constexpr const char* kSandbox = "sandbox";
inline constexpr const char* kVolumes = "volumes";

/// The marker of an attempt, counted from 0.
std::string started_file(int attempt);

/// Task ids become folder, cgroup and container names: letters, digits, '_', '.', '-'; at most 128; no dot
/// first.
Status check_task_id(const std::string& id);

/// Replaces a file atomically but not durably: for what is of no use after the machine went down.
Status replace_file(const Directory& folder, const std::string& name, std::string_view content,
                    mode_t mode = 0600);

/// The shim's lock, or none. Let go of explicitly: a child that another thread is just starting holds a copy
/// of the descriptor until it executes its program, and closing ours alone would leave it locked for so long.
class TaskLock {
 public:
  TaskLock() = default;
  explicit TaskLock(UniqueFd fd) : fd_(std::move(fd)) {}
  TaskLock(TaskLock&&) = default;
  TaskLock& operator=(TaskLock&&) = delete;
  ~TaskLock() { release(); }

  bool held() const { return fd_.valid(); }
  void release();
  /// Writes this process's id into it, for lock_holder().
  Status sign() const;

 private:
  UniqueFd fd_;
};

/// Takes the lock if it is free. Not held (no error) when somebody else has it.
Result<TaskLock> try_lock(const Directory& task);
/// For a runtime to inherit: lasts until it and the children that it has not executed away are gone.
/// Read-only, so that nothing could be done with it if it ever got further.
Result<UniqueFd> lock_runtime(const Directory& task);
/// Whether a runtime that was given that lock still lives.
Result<bool> runtime_lives(const Directory& task);

/// For a runtime to inherit that joins the container, beside others that do. kConflict when the task's folder
/// is being cleared, or was. A runtime makes anew what is cleared before it comes.
Result<UniqueFd> lock_joining(const Directory& task);
/// Keeps further ones out until it is closed; invalid while one is there.
Result<UniqueFd> lock_out_joining(const Directory& task);

/// A pidfd of the process that holds the lock; invalid when nobody does. Waits a moment for a holder that has
/// not signed yet. A process id that was used again is not mistaken for the holder: the lock is looked at
/// again after the pidfd was opened.
Result<UniqueFd> lock_holder(const Directory& task);

}  // namespace drover::container
