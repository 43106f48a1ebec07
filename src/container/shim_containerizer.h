#pragma once

// Keeps the books of tasks that have a shim each: launched at most once, watched, found again after a restart
// of the daemon, cleared up. Keeps nothing in memory that the task folders do not say (task_folder.h). How a
// container comes about is its Launcher's business.

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "container/containerizer.h"
#include "container/launcher.h"
#include "container/mps_book.h"
#include "container/part_book.h"
#include "container/remover.h"
#include "container/shim_watcher.h"

namespace drover::container {

/// Of what tasks may have beside a container. Without one, none has that.
struct Books {
  std::shared_ptr<PartBook> parts;
  std::shared_ptr<MpsBook> mps;
};

class ShimContainerizer final : public Containerizer {
 public:
  /// Tasks live in <state>/tasks, and what they leave is removed in <state>/removed. Folders that an older
  /// version has left open to others are closed.
  static Result<std::unique_ptr<ShimContainerizer>> create(const std::string& state,
                                                           std::unique_ptr<Launcher> launcher,
                                                           Watcher watcher, Books books = {});
  ~ShimContainerizer() override;

  Status launch(const Launch& launch) override;
  Status stop(const std::string& task_id, bool force) override;
  Result<Found> recover(const std::string& task_id, int attempt) override;
  Status change_memory_limit(const std::string& task_id, const MemoryLimiter& change) override;
  Status clean(const std::string& task_id) override;
  Status forget(const std::string& task_id) override;
  Result<std::unique_ptr<ExecProcess>> exec(const std::string& task_id, const ExecRequest& request) override;
  Result<UniqueFd> connect_input(const std::string& task_id) override;
  std::vector<std::string> known() const override;
  Result<FolderView> examine(const std::string& task_id) const override;
  Status end(const std::string& task_id) override;
  Result<std::string> quarantine(const std::string& task_id) override;
  Quarantine quarantined() const override;
  std::string sandbox(const std::string& task_id) const override;

 private:
  ShimContainerizer(Directory tasks, std::unique_ptr<Launcher> launcher, Watcher watcher, Books books);

  Result<Directory> open_task(const std::string& task_id) const;
  /// With the MIG instances or the MPS daemon that it wants, made.
  Result<Launch> with_gpus(const Directory& folder, const Launch& launch) const;
  Status release_gpus(const Directory& folder, const std::string& task_id) const;
  Result<bool> try_launch(const Directory& folder, const Launch& launch);
  Result<Found> find(const Directory& folder, const std::string& task_id, int attempt);
  Result<bool> attach(const Directory& folder, const std::string& task_id);
  /// Launcher::clear() of which the slow part goes on behind our back.
  Status clear(const Directory& folder, const std::string& task_id) const;
  Status conclude(const Directory& folder, const std::string& task_id);
  bool report_started(const std::string& task_id);
  bool shim_ended(const std::string& task_id);

  Directory tasks_;
  std::unique_ptr<Launcher> launcher_;
  Watcher watcher_;
  const Books books_;
  std::unique_ptr<Remover> remover_;
  std::unique_ptr<ShimWatcher> shims_;
};

}  // namespace drover::container
