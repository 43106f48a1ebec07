#pragma once

// Fills a task's folder and has a shim start the container from it; clears up when that went wrong. The
// working part of ShimContainerizer, which keeps the books: one kind for each way in which containers come
// about (oci_launcher.h, docker/docker_launcher.h), and one that chooses among them (composing.h). Thread
// safe for different folders.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/containerizer.h"
#include "container/exec.h"
#include "container/fetch/fetch.h"
#include "container/launch_spec.h"
#include "container/seccomp_filter.h"
#include "container/shim_process.h"
#include "image/image.h"
#include "image/store.h"

namespace drover::container {

struct LauncherOptions {
  std::string state;       ///< the state folder, by its real path; set by with_state()
  std::string init;        ///< the first process of containers; set by with_state()
  FilterFiles filters;     ///< for OCI runtimes; set by with_state()
  std::string executable;  ///< the drover program, for `drover shim` and `drover fetcher`
  /// Makes an image ready with the rights and credentials of `reader` (image::Store::prepare). For OCI
  /// runtimes.
  std::function<Result<image::Image>(const std::string& reference, const User& reader,
                                     const image::PrepareOptions& options)>
      prepare_image;
  /// For engines, which bring images themselves and know nothing of variants; may be empty.
  image::VariantLookup image_variants;
  std::vector<std::string> hidden;  ///< folders and files that tasks must not see
  bool selinux = false;             ///< label containers with an image where SELinux enforces
  IdMap ids;                        ///< of the machine, for containers of root's; for OCI runtimes
  LogLimits logs;
  std::string fetch_caches;  ///< where users' caches of fetched files are; "": none
  FetchLimits fetching;
  std::string cgroup_parent = "/drover";
  /// The counterpart of Launch::limit_memory, for these GPUs: called before the group is removed, though it
  /// may be gone already, as after a reboot. What it cannot do keeps nobody: the limit goes with the group.
  /// For OCI runtimes; may be empty.
  std::function<void(const std::string& group, const std::vector<std::string>& gpus)> unlimit_memory;
  std::chrono::milliseconds start_timeout{60'000};  ///< for the runtime to start a container
};

/// The options with real paths, since mounts see no symbolic links, and with the state folder hidden.
/// kInvalid when the state folder lies where every container has its own files.
Result<LauncherOptions> with_state(LauncherOptions options, const std::string& state);

/// Of this machine, in bytes.
std::uint64_t memory_of_machine();

/// This process' own, which a container gets too, or more (limits.h).
int oom_score_adj_of(const workload::Task& task);

class Launcher {
 public:
  explicit Launcher(LauncherOptions options) : options_(std::move(options)) {}
  virtual ~Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Makes all that the shim needs and, last, its launch specification. The caller holds the folder's lock.
  virtual Status prepare(const Directory& folder, const Launch& launch) const = 0;

  struct Outcome {
    UniqueFd shim;  ///< pidfd
    Readiness readiness;
  };
  /// Spawns the shim and waits until it says how that went. The caller has let go of the lock. An Error means
  /// that nothing runs and the shim is gone.
  Result<Outcome> start(const Directory& folder, const std::string& task_id) const;

  /// Ends what a dead shim may have left running, and removes all but sandbox, marker, lock and status.
  /// Idempotent.
  virtual Status clear(const Directory& folder, const std::string& task_id) const = 0;

  /// Containerizer::change_memory_limit().
  virtual Status change_memory_limit(const Directory& folder, const std::string& task_id,
                                     const MemoryLimiter& change) const = 0;

  virtual Result<std::unique_ptr<ExecProcess>> exec(const Directory& folder, const std::string& task_id,
                                                    const ExecRequest& request) const = 0;
  /// Ends what a daemon before this one had started in the container of a task that still runs.
  virtual void end_forgotten_execs(const Directory& folder, const std::string& task_id) const = 0;

 protected:
  /// Whom the caller's files are read as.
  static Result<User> reader_of(const workload::Task& task);
  /// The sandbox, with the files that were asked for: those once in a task's life, since a later attempt goes
  /// on with the sandbox as it is. As on the host, the user's groups count, which a container with an image
  /// does not have.
  Status fill_sandbox(const Directory& folder, const Launch& launch, const User& user) const;
  /// Makes the pages that hold the container to its shares of GPUs, or takes those of its group.
  static Status make_pages(const Directory& folder, const Launch& launch);
  /// The same, and how they go below the driver's place.
  static Result<std::vector<HostMount>> make_share_pages(const Directory& folder, const Launch& launch);
  /// What does not depend on how the container comes about.
  Result<LaunchSpec> spec_of(const Directory& folder, const Launch& launch, const image::Image* image,
                             const User& user) const;

  const LauncherOptions options_;
};

}  // namespace drover::container
