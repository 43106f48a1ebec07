#pragma once

// Composes containerizers: which one a task goes to is decided once, at its launch, and kept in its
// folder, so that after a restart with other settings the right one is asked. Thread safe as its parts are.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "container/launcher.h"

namespace drover::container {

enum class ContainerizerKind { kOci, kDocker };
/// "oci", "docker".
std::string_view to_string(ContainerizerKind kind);
/// By their names, first choice first; "mesos" is another name of "oci". kInvalid for none, for an unknown
/// one, and for one that is named twice.
Result<std::vector<ContainerizerKind>> parse_containerizers(std::span<const std::string> names);

/// Who runs a task. What asks for CDI devices, or takes input, goes to the OCI runtime if it is configured.
/// What asks for Docker goes there if it is configured; what asks for MESOS, has no image, or names one that
/// lies in a folder or file of the machine, goes to the OCI runtime if that is configured; everything else
/// goes to the first. `configured` is not empty. Pure.
ContainerizerKind choose_containerizer(const workload::Task& task,
                                       const std::vector<ContainerizerKind>& configured);

class ComposingLauncher final : public Launcher {
 public:
  /// Both are there, whichever are configured: what was launched before may be another's.
  ComposingLauncher(std::vector<ContainerizerKind> configured, std::unique_ptr<Launcher> oci,
                    std::unique_ptr<Launcher> docker, LauncherOptions options);

  Status prepare(const Directory& folder, const Launch& launch) const override;
  Status clear(const Directory& folder, const std::string& task_id) const override;
  Status change_memory_limit(const Directory& folder, const std::string& task_id,
                             const MemoryLimiter& change) const override;
  Result<std::unique_ptr<ExecProcess>> exec(const Directory& folder, const std::string& task_id,
                                            const ExecRequest& request) const override;
  void end_forgotten_execs(const Directory& folder, const std::string& task_id) const override;

 private:
  const Launcher& launcher(ContainerizerKind kind) const;
  /// Of a task that was launched.
  Result<const Launcher*> launcher_of(const Directory& folder) const;

  const std::vector<ContainerizerKind> configured_;
  const std::unique_ptr<Launcher> oci_;
  const std::unique_ptr<Launcher> docker_;
};

}  // namespace drover::container
