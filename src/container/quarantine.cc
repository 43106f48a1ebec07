#include "container/quarantine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "container/task_folder.h"

namespace drover::container {
namespace {

constexpr mode_t kQuarantineMode = 0700;

}  // namespace

Result<std::string> move_to_quarantine(const Directory& tasks, const std::string& task_id) {
  DROVER_CHECK_OK(check_task_id(task_id));
  DROVER_TRY(const auto closed, tasks.make_subdirectory(kQuarantine, kQuarantineMode));
  if (::fchmod(closed.fd(), kQuarantineMode) != 0)
    return fail_errno(fmt::format("Failed to close '{}'", closed.path()), errno);
  auto name = task_id;
  for (int number = 1; ::renameat2(tasks.fd(), task_id.c_str(), closed.fd(), name.c_str(), RENAME_NOREPLACE);
       ++number) {
    if (errno != EEXIST)
      return fail_errno(fmt::format("Failed to move '{}/{}' to '{}'", tasks.path(), task_id, closed.path()),
                        errno);
    name = fmt::format("{}.{}", task_id, number);
  }
  DROVER_CHECK_OK(closed.sync());
  DROVER_CHECK_OK(tasks.sync());
  return closed.path() + "/" + name;
}

Containerizer::Quarantine quarantine_of(const Directory& tasks) {
  const auto closed = tasks.subdirectory(kQuarantine);
  return {fmt::format("{}/{}", tasks.path(), kQuarantine),
          closed ? closed->list().value_or(std::vector<std::string>{}) : std::vector<std::string>{}};
}

}  // namespace drover::container
