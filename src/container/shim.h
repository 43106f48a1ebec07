#pragma once

// `drover shim <task folder>`: the parent of one container. It takes the task's lock, makes the root file
// system in a mount namespace of its own, lets the OCI runtime start the container once and only once, keeps
// its output and its exit status, and stops it when told. It needs nobody: the daemon may come and go.
//
// Signals: SIGTERM or SIGINT stop the task (SIGTERM to all its processes, SIGKILL after its grace), SIGUSR1
// kills it. Who spawns a shim blocks these, so that none is lost before the shim listens.

#include <string>

namespace drover::container {

/// The descriptor on which a shim that was spawned finds its readiness pipe.
inline constexpr int kReadinessDescriptor = 3;

// What it says there, as soon as it is known; then the pipe is closed. kShimFailed is followed by the
// reason.
inline constexpr const char* kShimStarted = "started";
inline constexpr const char* kShimTaken = "taken";  ///< started before, or its launch was withdrawn
inline constexpr const char* kShimFailed = "failed ";

/// Runs to the end of the task. `readiness` is a descriptor that the shim closes. Returns the process's own
/// exit status: 0 when the task's ending is on disk.
int run_shim(const std::string& task_folder, int readiness);

}  // namespace drover::container
