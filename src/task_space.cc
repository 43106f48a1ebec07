#include "task_space.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/disk_space.h"
#include "base/files.h"
#include "task_processes.h"

namespace drover {
namespace {

Result<std::uint64_t> space_of(const Directory& folder, const std::vector<pid_t>& processes) {
  struct stat info{};
  if (::fstat(folder.fd(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at '{}'", folder.path()), errno);
  return disk_space_below(folder).map(
      [&](std::uint64_t named) { return named + disk_space_of_nameless(processes, info.st_dev); });
}

}  // namespace

std::map<std::string, Result<std::uint64_t>> task_space(const std::string& state,
                                                        const std::vector<engine::TaskProcesses>& tasks) {
  const auto processes = processes_of(tasks);
  std::map<std::string, Result<std::uint64_t>> space;
  for (const auto& task : tasks) {
    const auto folder = Directory::open(fmt::format("{}/tasks/{}", state, task.id));
    if (!folder) continue;  // it is gone
    const auto own = processes.find(task.id);
    space.emplace(task.id, space_of(*folder, own == processes.end() ? std::vector<pid_t>() : own->second));
  }
  return space;
}

}  // namespace drover
