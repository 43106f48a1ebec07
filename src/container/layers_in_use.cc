#include "container/layers_in_use.h"

#include "base/files.h"
#include "container/launch_spec.h"
#include "container/task_folder.h"

namespace drover::container {

Result<std::vector<std::vector<std::string>>> layers_in_use(const std::string& tasks) {
  std::vector<std::vector<std::string>> used;
  const auto folder = Directory::open(tasks);
  if (!folder && folder.error().kind == ErrorKind::kNotFound) return used;
  if (!folder) return Failure(folder.error());
  DROVER_TRY(const auto names, folder->list());
  for (const auto& name : names) {
    const auto task = folder->subdirectory(name);
    const auto text = task ? task->read(kLaunchSpecFile) : Result<std::string>(Failure(task.error()));
    if (!text && text.error().kind == ErrorKind::kNotFound) continue;  // ended, or not begun
    if (!text) return Failure(text.error());
    auto spec = decode_launch_spec(*text);
    if (!spec) return Failure(context(spec.error(), "The order of task '" + name + "'"));
    used.push_back(std::move(spec->root.layers));
  }
  return used;
}

}  // namespace drover::container
