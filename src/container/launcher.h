#pragma once

// Fills a task's folder and has a shim start the container from it; clears up when that went wrong. The
// working part of OciContainerizer, which keeps the books. Thread safe for different folders.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/cgroup.h"
#include "container/containerizer.h"
#include "container/fetch/fetch.h"
#include "container/order.h"
#include "container/shim_process.h"
#include "image/image.h"

namespace drover::container {

struct LauncherOptions {
  std::string executable;  ///< the drover program, for `drover shim` and `drover fetcher`
  /// Makes an image ready, reading with the rights of `reader` (image::Store::prepare).
  std::function<Result<image::Image>(const std::string& reference, const User& reader,
                                     const std::function<void(const std::string&)>& progress)>
      prepare_image;
  std::vector<std::string> hidden;  ///< folders and files that image-less tasks must not see
  LogLimits logs;
  std::string fetch_caches;  ///< where users' caches of fetched files are; "": none
  FetchLimits fetching;
  std::string cgroup_parent = "/drover";
  std::chrono::milliseconds start_timeout{60'000};  ///< for the runtime to start a container
};

class Launcher {
 public:
  explicit Launcher(LauncherOptions options, std::vector<Hierarchy> hierarchies)
      : options_(std::move(options)), hierarchies_(std::move(hierarchies)) {}

  /// Makes sandbox, bundle and, last, the order. The caller holds the folder's lock.
  Status prepare(const Directory& folder, const Launch& launch, const std::string& runtime) const;

  struct Outcome {
    UniqueFd shim;  ///< pidfd
    FirstWord word;
  };
  /// Spawns the shim and waits for its word. The caller has let go of the lock. An Error means that nothing
  /// runs and the shim is gone.
  Result<Outcome> start(const Directory& folder, const std::string& task_id) const;

  /// Ends what a dead shim may have left running, and removes all but sandbox, marker, lock and status.
  /// Idempotent.
  Status clear(const Directory& folder, const std::string& task_id) const;

  Cgroup cgroup(const std::string& task_id) const;

 private:
  Status fetch(const Directory& folder, const Launch& launch, const User& user) const;
  Status write_bundle(const Directory& folder, const Launch& launch, const image::Image* image,
                      const User& user) const;

  LauncherOptions options_;
  std::vector<Hierarchy> hierarchies_;
};

}  // namespace drover::container
