#pragma once

// The native way (M5): image-less tasks and image tasks through an OCI runtime, one shim a task, no other
// daemon. Thread safe for different folders.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "container/cgroup.h"
#include "container/launcher.h"
#include "container/runtime.h"
#include "container/security_modules.h"

namespace drover::container {

struct OciOptions {
  std::string state;          ///< the state folder; trials are made in <state>/trials
  std::string runtime;        ///< name or path; "": the first of runc and crun that works
  LauncherOptions launching;  ///< `hidden` gets the state folder in any case
};

/// Which runtimes work here, found by running a container that does nothing (for `drover doctor`). Needs
/// root.
Result<std::vector<RuntimeReport>> find_runtimes(const OciOptions& options);

class OciLauncher final : public Launcher {
 public:
  /// Tries the runtimes. That none works is no error here: prepare() tries again, and says so.
  static Result<std::unique_ptr<OciLauncher>> create(OciOptions options);

  /// What was tried, the last being the one in use if it works.
  std::vector<RuntimeReport> runtimes() const;

  Status prepare(const Directory& folder, const Launch& launch) const override;
  Status clear(const Directory& folder, const std::string& task_id) const override;
  Result<std::unique_ptr<ExecProcess>> exec(const Directory& folder, const std::string& task_id,
                                            const ExecRequest& request) const override;
  void end_forgotten_execs(const Directory& folder, const std::string& task_id) const override;

 private:
  OciLauncher(OciOptions options, std::vector<Hierarchy> hierarchies);

  Result<std::string> runtime() const;
  std::vector<RuntimeReport> try_here() const;
  Status run_trial(const std::string& runtime) const;
  Status prepare_with(const std::string& runtime, const Directory& folder, const Launch& launch) const;
  /// Returns what the shim mounts.
  Result<std::vector<BindPlan>> write_bundle(const Directory& folder, const Launch& launch,
                                             const image::Image* image, const User& user, bool compat) const;
  bool is_labelled(const SecurityModules& modules, const image::Image* image) const;
  Cgroup cgroup(const std::string& task_id) const;

  const std::string wanted_;  ///< runtime, as the user named it
  const std::vector<Hierarchy> hierarchies_;
  mutable std::mutex runtimes_mutex_;
  mutable std::vector<RuntimeReport> runtimes_;
};

}  // namespace drover::container
