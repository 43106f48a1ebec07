#include "container/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/pidfd.h"
#include "container/bundle.h"
#include "container/init.h"
#include "container/limits.h"
#include "container/oom_score.h"
#include "container/shim_watcher.h"
#include "container/task_folder.h"
#include "container/volume_plan.h"
#include "driver/files.h"
#include "driver/guard.h"
#include "share/pages.h"

namespace drover::container {
namespace {

/// On top of the runtime's own: for mounting and for clearing up after a failure.
constexpr auto kShimMargin = std::chrono::seconds(60);

std::string real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

/// Volumes are opened, and files fetched, as the user with his groups.
const User& with_groups(const Launch& launch, const User& user) {
  return launch.task.user.uid == user.uid ? launch.task.user : user;
}

}  // namespace

Result<LauncherOptions> with_state(LauncherOptions options, const std::string& given) {
  options.state = real_path(given);
  for (const std::string_view replaced : {"/dev/", "/proc/", "/sys/"})
    if (options.state.starts_with(replaced))
      return fail(ErrorKind::kInvalid,
                  fmt::format("The state folder '{}' lies in '{}', which every container has its own of",
                              options.state, replaced),
                  "choose a folder such as /var/lib/drover");
  options.fetch_caches = options.state + "/fetched";
  for (auto& place : options.hidden) place = real_path(place);
  options.hidden.insert(options.hidden.begin(), options.state);
  DROVER_TRY(options.init, place_init(options.state));
  DROVER_TRY(options.filters, place_filters(options.state));
  return options;
}

std::uint64_t memory_of_machine() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

int oom_score_adj_of(const workload::Task& task) {
  return std::max(own_oom_score_adj(), oom_score_adj_of(task, memory_of_machine()));
}

Result<Launcher::Outcome> Launcher::start(const Directory& folder, const std::string& task_id) const {
  DROVER_TRY(auto shim, spawn_shim(options_.executable, folder.path()));
  const auto readiness = await_readiness(shim, options_.start_timeout + kShimMargin);
  if (readiness) return Outcome{std::move(shim.process), *readiness};
  if (readiness.error().kind == ErrorKind::kTimeout) send_signal(shim.process, SIGKILL);
  DROVER_CHECK_OK(await_process(shim.process.get(), kShimMargin));
  DROVER_CHECK_OK(clear(folder, task_id));
  return Failure(readiness.error());
}

Result<User> Launcher::reader_of(const workload::Task& task) {
  if (task.owner == task.user.uid) return task.user;
  return user_of(task.owner, task.owner);
}

Status Launcher::fill_sandbox(const Directory& folder, const Launch& launch, const User& user) const {
  DROVER_TRY(const auto sandbox, folder.make_subdirectory(kSandbox, 0700));
  if (::fchown(sandbox.fd(), user.uid, user.gid) != 0 || ::fchmod(sandbox.fd(), 0700) != 0)
    return fail_errno(fmt::format("Failed to give '{}' to its user", sandbox.path()), errno);
  const auto& files = *launch.task.fetch;
  if (files.empty()) return {};
  // An attempt that was started had all its files, and its successors find them in the same sandbox.
  for (int before = 0; before < launch.attempt; ++before)
    if (folder.exists(started_file(before))) return {};
  return fetch_all({options_.executable, options_.fetch_caches, options_.fetching}, files, sandbox,
                   with_groups(launch, user), launch.progress, launch.stop);
}

Status Launcher::make_pages(const Directory& folder, const Launch& launch) {
  // Of two of a group the second finds the pages of the first, whichever launcher either has.
  DROVER_TRY(const auto tasks, Directory::open(std::filesystem::path(folder.path()).parent_path()));
  while (::flock(tasks.fd(), LOCK_EX) != 0)
    if (errno != EINTR) return fail_errno(fmt::format("Failed to lock '{}'", tasks.path()), errno);
  std::vector<Directory> others;
  for (const auto& id : launch.together ? launch.together() : std::vector<std::string>()) {
    auto other = tasks.subdirectory(id);
    if (other && id != launch.task.id) others.push_back(*std::move(other));
  }
  return share::make_pages(folder, launch.limits, others);
}

Result<std::vector<HostMount>> Launcher::make_share_pages(const Directory& folder, const Launch& launch) {
  DROVER_CHECK_OK(make_pages(folder, launch));
  std::vector<HostMount> mounts;
  for (const auto& page : driver::kGuardPages)
    mounts.push_back({fmt::format("{}/{}", folder.path(), page.place),
                      fmt::format("{}/{}", driver::kContainerFolder, page.place), page.writable});
  return mounts;
}

Result<LaunchSpec> Launcher::spec_of(const Directory& folder, const Launch& launch, const image::Image* image,
                                     const User& user) const {
  LaunchSpec spec;
  spec.task_id = launch.task.id;
  spec.attempt = launch.attempt;
  spec.cgroup = options_.cgroup_parent + "/" + launch.task.id;
  spec.uid = user.uid;
  spec.gid = user.gid;
  spec.grace = launch.task.grace;
  spec.start_timeout = options_.start_timeout;
  spec.root.hidden = options_.hidden;
  DROVER_TRY(spec.working_directory,
             working_directory_of(launch.task, image, folder.path() + "/" + kSandbox));
  DROVER_TRY(const auto arguments, arguments_of(launch.task, image));
  spec.command = arguments.front();
  spec.takes_input = launch.task.takes_input;
  spec.terminal = launch.task.terminal;
  spec.logs = options_.logs;
  DROVER_TRY(spec.volumes, plan_volumes(launch, image, folder.path() + "/" + kSandbox));
  spec.volume_user = with_groups(launch, user);
  return spec;
}

}  // namespace drover::container
