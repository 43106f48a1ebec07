#include "container/composing.h"

#include <fmt/format.h>

#include <algorithm>

#include "container/task_folder.h"
#include "image/reference.h"

namespace drover::container {
namespace {

bool is_configured(const std::vector<ContainerizerKind>& configured, ContainerizerKind kind) {
  return std::find(configured.begin(), configured.end(), kind) != configured.end();
}

/// What no Docker Engine has: "oci:/images/x", "/images/x.tar".
bool lies_on_machine(const std::string& reference) {
  const auto scheme = reference.substr(0, reference.find('/'));
  return reference.starts_with('/') || (scheme.ends_with(':') && image::parse_reference(reference));
}

ContainerizerKind wanted_by(const workload::Task& task, ContainerizerKind first) {
  using workload::ContainerType;
  // An engine may know no CDI, and ours pass no input on.
  if (!task.devices.empty() || task.takes_input) return ContainerizerKind::kOci;
  if (task.container_type == ContainerType::kDocker || task.privileged) return ContainerizerKind::kDocker;
  if (task.container_type == ContainerType::kMesos || !task.image || lies_on_machine(*task.image))
    return ContainerizerKind::kOci;
  return first;
}

}  // namespace

std::string_view to_string(ContainerizerKind kind) {
  return kind == ContainerizerKind::kDocker ? "docker" : "oci";
}

Result<std::vector<ContainerizerKind>> parse_containerizers(std::span<const std::string> names) {
  std::vector<ContainerizerKind> kinds;
  for (const auto& name : names) {
    if (name != "oci" && name != "mesos" && name != "docker")
      return fail(ErrorKind::kInvalid, fmt::format("There is no containerizer '{}'", name),
                  "there are oci and docker");
    const auto kind = name == "docker" ? ContainerizerKind::kDocker : ContainerizerKind::kOci;
    if (is_configured(kinds, kind))
      return fail(ErrorKind::kInvalid, fmt::format("The containerizer '{}' is named twice", to_string(kind)));
    kinds.push_back(kind);
  }
  if (kinds.empty())
    return fail(ErrorKind::kInvalid, "No containerizer is named", "there are oci and docker");
  return kinds;
}

ContainerizerKind choose_containerizer(const workload::Task& task,
                                       const std::vector<ContainerizerKind>& configured) {
  const auto wanted = wanted_by(task, configured.front());
  return is_configured(configured, wanted) ? wanted : configured.front();
}

ComposingLauncher::ComposingLauncher(std::vector<ContainerizerKind> configured, std::unique_ptr<Launcher> oci,
                                     std::unique_ptr<Launcher> docker, LauncherOptions options)
    : Launcher(std::move(options)),
      configured_(std::move(configured)),
      oci_(std::move(oci)),
      docker_(std::move(docker)) {}

const Launcher& ComposingLauncher::launcher(ContainerizerKind kind) const {
  return kind == ContainerizerKind::kDocker ? *docker_ : *oci_;
}

Result<const Launcher*> ComposingLauncher::launcher_of(const Directory& folder) const {
  if (!folder.exists(kContainerizerFile)) return oci_.get();
  DROVER_TRY(const auto name, folder.read(kContainerizerFile));
  for (const auto kind : {ContainerizerKind::kOci, ContainerizerKind::kDocker})
    if (name == to_string(kind)) return &launcher(kind);
  return fail(ErrorKind::kCorrupt,
              fmt::format("'{}/{}' names no containerizer", folder.path(), kContainerizerFile));
}

Status ComposingLauncher::prepare(const Directory& folder, const Launch& launch) const {
  // An attempt before this one may have been another's.
  DROVER_CHECK_OK(clear(folder, launch.task.id));
  const auto kind = choose_containerizer(launch.task, configured_);
  if (kind == ContainerizerKind::kOci)
    DROVER_CHECK_OK(folder.remove_tree(kContainerizerFile));
  else  // durably: what it leaves to the engine outlives the machine's crash
    DROVER_CHECK_OK(folder.remove_unfinished(kContainerizerFile).and_then([&] {
      return folder.write(kContainerizerFile, to_string(kind), 0600);
    }));
  return launcher(kind).prepare(folder, launch);
}

Status ComposingLauncher::clear(const Directory& folder, const std::string& task_id) const {
  DROVER_TRY(const auto* launched_by, launcher_of(folder));
  return launched_by->clear(folder, task_id);
}

Status ComposingLauncher::change_memory_limit(const Directory& folder, const std::string& task_id,
                                              const MemoryLimiter& change) const {
  DROVER_TRY(const auto* launched_by, launcher_of(folder));
  return launched_by->change_memory_limit(folder, task_id, change);
}

Result<std::unique_ptr<ExecProcess>> ComposingLauncher::exec(const Directory& folder,
                                                             const std::string& task_id,
                                                             const ExecRequest& request) const {
  DROVER_TRY(const auto* launched_by, launcher_of(folder));
  return launched_by->exec(folder, task_id, request);
}

void ComposingLauncher::end_forgotten_execs(const Directory& folder, const std::string& task_id) const {
  if (const auto launched_by = launcher_of(folder)) (*launched_by)->end_forgotten_execs(folder, task_id);
}

}  // namespace drover::container
