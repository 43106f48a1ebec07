// What the containerizer of pods keeps of tasks in folders of this machine.

#include <fmt/format.h>

#include <set>

#include "container/quarantine.h"
#include "container/task_folder.h"
#include "pods/log_copy.h"
#include "pods/pod_containerizer.h"
#include "pods/pod_sandbox.h"

namespace drover::pods {

std::vector<std::string> PodContainerizer::known() const {
  std::set<std::string> ids;
  if (const auto names = tasks_.list())
    for (const auto& name : *names)
      if (container::check_task_id(name)) ids.insert(name);
  const std::lock_guard lock(mutex_);
  for (const auto& [task, views] : pods_) ids.insert(task);
  return {ids.begin(), ids.end()};
}

Result<container::FolderView> PodContainerizer::examine(const std::string& task_id) const {
  container::FolderView folder;
  if (const auto found = tasks_.subdirectory(task_id))
    if (auto record = found->read("record")) folder.record = std::move(*record);
  const std::lock_guard lock(mutex_);
  folder.alive = pods_.contains(task_id);
  return folder;
}

Result<std::string> PodContainerizer::quarantine(const std::string& task_id) {
  return container::move_to_quarantine(tasks_, task_id);
}

container::Containerizer::Quarantine PodContainerizer::quarantined() const {
  return container::quarantine_of(tasks_);
}

std::string PodContainerizer::sandbox(const std::string& task_id) const {
  return fmt::format("{}/{}/{}", tasks_.path(), task_id, kSandboxFolder);
}

std::shared_ptr<const SandboxReader> PodContainerizer::files(const std::string& task_id) const {
  if (options_.agents == nullptr) return Containerizer::files(task_id);
  return pod_sandbox(fmt::format("{}/{}", tasks_.path(), task_id), *options_.agents);
}

}  // namespace drover::pods
