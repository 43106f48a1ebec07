#pragma once

// The native way: image-less tasks and image tasks through an OCI runtime, one shim a task, no other
// daemon. Thread safe for different folders.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log_once.h"
#include "container/cgroup.h"
#include "container/launcher.h"
#include "container/runtime.h"
#include "container/security_modules.h"

namespace drover::container {

struct OciOptions {
  std::string state;          ///< the state folder; trials are made in <state>/trials
  std::string runtime;        ///< name or path; "": the first of runc and crun that works
  LauncherOptions launching;  ///< `hidden` gets the state folder in any case
  std::function<void(const std::string&)> warn = {};  ///< hears a sentence, from any thread
};

/// What works here.
struct OciReport {
  std::vector<RuntimeReport> runtimes;
  Status ids;  ///< whether root of a container can be an ordinary user
};
/// Found by running containers that do nothing (for `drover doctor`). Needs root.
Result<OciReport> try_oci(const OciOptions& options);

class OciLauncher final : public Launcher {
 public:
  /// Tries the runtimes. That none works is no error here: prepare() tries again, and says so.
  static Result<std::unique_ptr<OciLauncher>> create(OciOptions options);

  /// What was tried, the last being the one in use if it works.
  std::vector<RuntimeReport> runtimes() const;
  /// Whether root of a container can be an ordinary user here. Tried when it is first asked; again after a
  /// while if it failed, for the machine may only have been busy. Why it failed is a warning.
  Status ids_work() const;

  Status prepare(const Directory& folder, const Launch& launch) const override;
  Status clear(const Directory& folder, const std::string& task_id) const override;
  Status change_memory_limit(const Directory& folder, const std::string& task_id,
                             const MemoryLimiter& change) const override;
  Result<std::unique_ptr<ExecProcess>> exec(const Directory& folder, const std::string& task_id,
                                            const ExecRequest& request) const override;
  void end_forgotten_execs(const Directory& folder, const std::string& task_id) const override;

 private:
  OciLauncher(OciOptions options, std::vector<Hierarchy> hierarchies);

  Result<std::string> runtime() const;
  Result<std::string> runtime_of(const Directory& folder) const;
  std::vector<RuntimeReport> try_here() const;
  /// Ends and removes what a process before this one left behind when it was killed.
  void clear_trials() const;
  /// One container, in a folder that is thrown away: as a task would get it, or as root's with an image
  /// would.
  Status run_trial(const std::string& runtime, const IdMap& ids) const;
  /// Whom a container is for, and what is known of its image.
  struct Chosen {
    const image::Image* image = nullptr;
    User user;
    bool compat = true;  ///< see BundleFacts
    IdMap ids;
  };
  Status prepare_with(const std::string& runtime, const Directory& folder, const Launch& launch) const;
  Status prepare_chosen(const std::string& runtime, const Directory& folder, const Launch& launch,
                        const Chosen& chosen) const;
  /// Fills in what the shim mounts.
  Status write_bundle(const Directory& folder, const Launch& launch, const Chosen& chosen,
                      LaunchSpec& spec) const;
  /// The pages, and the guard, for a container with the machine's own files.
  static Result<std::vector<HostMount>> place_guard_on_host(const Directory& folder, const Launch& launch);
  /// Before anything of the task can run: see Launch::limit_memory.
  Status limit_memory(const Directory& folder, const Launch& launch) const;
  Status set_memory_limit(const Directory& folder, const Launch& launch) const;
  void unlimit_memory(const Directory& folder, const std::string& task_id) const;
  bool is_labelled(const SecurityModules& modules, const image::Image* image) const;
  /// None where they are the machine's: see docs/isolation.md.
  IdMap ids_of(const Launch& launch, const User& user) const;
  Cgroup cgroup(const std::string& task_id) const;

  const std::string wanted_;  ///< runtime, as the user named it
  const std::vector<Hierarchy> hierarchies_;
  mutable std::mutex runtimes_mutex_;
  mutable std::vector<RuntimeReport> runtimes_;
  mutable std::mutex ids_mutex_;
  mutable std::optional<Status> ids_work_;
  mutable std::chrono::steady_clock::time_point ids_tried_at_;
  mutable LogOnce ids_trouble_;
};

}  // namespace drover::container
