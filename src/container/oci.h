#pragma once

// The native containerizer (M5): image-less tasks and image tasks through an OCI runtime, one shim a task, no
// other daemon. Keeps nothing in memory that the task folders do not say: what it watches is found again
// after a restart. See task_folder.h for the files.

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "container/containerizer.h"
#include "container/launcher.h"
#include "container/runtime.h"
#include "container/shim_watcher.h"

namespace drover::container {

struct OciOptions {
  std::string state;          ///< the state folder; tasks live in <state>/tasks
  std::string runtime;        ///< name or path; "": the first of runc and crun that works
  LauncherOptions launching;  ///< `hidden` gets the state folder in any case
};

/// Which runtimes work here, found by running a container that does nothing (for `drover doctor`). Needs
/// root.
Result<std::vector<RuntimeReport>> find_runtimes(const OciOptions& options);

class OciContainerizer final : public Containerizer {
 public:
  /// Tries the runtimes. That none works is no error here: launch() tries again, and says so.
  static Result<std::unique_ptr<OciContainerizer>> create(OciOptions options, Watcher watcher);
  ~OciContainerizer() override;

  Status launch(const Launch& launch) override;
  Status stop(const std::string& task_id, bool force) override;
  Result<Found> recover(const std::string& task_id, int attempt) override;
  Status clean(const std::string& task_id) override;
  Status forget(const std::string& task_id) override;
  Result<std::unique_ptr<ExecProcess>> exec(const std::string& task_id, const ExecRequest& request) override;
  std::vector<std::string> known() const override;
  std::string sandbox(const std::string& task_id) const override;

  /// What was tried, the last being the one in use if it works.
  std::vector<RuntimeReport> runtimes() const;

 private:
  OciContainerizer(OciOptions options, Watcher watcher, Directory tasks, Launcher launcher);

  Result<std::string> runtime();
  Result<Directory> open_task(const std::string& task_id) const;
  Result<bool> try_launch(const Directory& folder, const Launch& launch, const std::string& runtime_path);
  Result<Found> find(const Directory& folder, const std::string& task_id, int attempt);
  Result<bool> attach(const Directory& folder, const std::string& task_id);
  Status conclude(const Directory& folder, const std::string& task_id);
  bool report_started(const std::string& task_id);
  bool shim_ended(const std::string& task_id);

  OciOptions options_;
  Watcher watcher_;
  Directory tasks_;
  Launcher launcher_;
  mutable std::mutex runtimes_mutex_;
  std::vector<RuntimeReport> runtimes_;
  std::unique_ptr<ShimWatcher> shims_;
};

}  // namespace drover::container
