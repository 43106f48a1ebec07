#include "container/shim_containerizer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/pidfd.h"
#include "base/units.h"
#include "container/quarantine.h"
#include "container/shim.h"
#include "container/status_file.h"
#include "container/task_folder.h"
#include "container/task_input.h"
#include "gpu/share_tier.h"
#include "share/pages.h"

namespace drover::container {
namespace {

constexpr const char* kRemoved = "removed";
constexpr mode_t kStateMode = 0711;
constexpr mode_t kTaskMode = 0700;  // whoever came in could move files into a sandbox, or hold on to it
constexpr auto kForgetTimeout = std::chrono::seconds(40);
constexpr auto kTakenTimeout = std::chrono::seconds(20);
constexpr int kLaunchAttempts = 5;

Status close_to_others(const Directory& tasks) {
  DROVER_TRY(const auto names, tasks.list());
  const auto close = [](const Directory& folder) -> Status {
    if (::fchmod(folder.fd(), kTaskMode) == 0) return {};
    return fail_errno(fmt::format("Failed to close '{}' to others", folder.path()), errno);
  };
  DROVER_CHECK_OK(close(tasks));
  for (const auto& name : names)
    if (const auto folder = tasks.subdirectory(name)) DROVER_CHECK_OK(close(*folder));
  return {};
}

uid_t owner_of(const Directory& task) {
  struct stat info{};
  return ::fstatat(task.fd(), kSandbox, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_uid : 0;
}

Ending lost_ending(std::string message) {
  Ending lost;
  lost.exit_status = 128 + SIGKILL;
  lost.lost = true;
  lost.message = std::move(message);
  lost.finished_at = wall_clock();
  return lost;
}

}  // namespace

ShimContainerizer::ShimContainerizer(Directory tasks, std::unique_ptr<Launcher> launcher, Watcher watcher,
                                     Books books)
    : tasks_(std::move(tasks)),
      launcher_(std::move(launcher)),
      watcher_(std::move(watcher)),
      books_(std::move(books)) {}

ShimContainerizer::~ShimContainerizer() = default;

Result<std::unique_ptr<ShimContainerizer>> ShimContainerizer::create(const std::string& state,
                                                                     std::unique_ptr<Launcher> launcher,
                                                                     Watcher watcher, Books books) {
  DROVER_TRY(const auto folder, Directory::create(state, kStateMode));
  // Mounts see no symbolic links: their paths are made from this one.
  std::error_code error;
  const auto real = std::filesystem::canonical(state, error);
  if (error) return fail_errno(fmt::format("Failed to look at '{}'", state), error.value());
  DROVER_TRY(auto tasks, Directory::create(real.string() + "/" + kTasksFolder, kTaskMode));
  DROVER_CHECK_OK(close_to_others(tasks));
  std::unique_ptr<ShimContainerizer> made(
      new ShimContainerizer(std::move(tasks), std::move(launcher), std::move(watcher), std::move(books)));
  DROVER_TRY(made->remover_, Remover::start(real.string() + "/" + kRemoved, made->watcher_.log));
  DROVER_TRY(made->shims_,
             ShimWatcher::start({[raw = made.get()](const auto& id) { return raw->report_started(id); },
                                 [raw = made.get()](const auto& id) { return raw->shim_ended(id); }}));
  return made;
}

Result<Directory> ShimContainerizer::open_task(const std::string& task_id) const {
  DROVER_CHECK_OK(check_task_id(task_id));
  return tasks_.subdirectory(task_id);
}

std::string ShimContainerizer::sandbox(const std::string& task_id) const {
  return fmt::format("{}/{}/{}", tasks_.path(), task_id, kSandbox);
}

std::vector<std::string> ShimContainerizer::known() const {
  auto names = tasks_.list().value_or(std::vector<std::string>{});
  std::erase_if(names, [](const auto& name) { return !check_task_id(name); });
  return names;
}

Result<FolderView> ShimContainerizer::examine(const std::string& task_id) const {
  DROVER_TRY(const auto folder, open_task(task_id));
  DROVER_TRY(const auto lock, try_lock(folder));
  FolderView view{!lock.held(), ""};
  auto record = folder.read(kRecordFile);
  if (!record && record.error().kind != ErrorKind::kNotFound) return Failure(record.error());
  if (record) view.record = std::move(*record);
  return view;
}

Result<std::string> ShimContainerizer::quarantine(const std::string& task_id) {
  return move_to_quarantine(tasks_, task_id);
}

Containerizer::Quarantine ShimContainerizer::quarantined() const {
  return quarantine_of(tasks_);
}

Status ShimContainerizer::launch(const Launch& launch) {
  const auto& task_id = launch.task.id;
  DROVER_CHECK_OK(check_task_id(task_id));
  DROVER_TRY(const auto folder, tasks_.make_subdirectory(task_id, kTaskMode));
  if (shims_->watches(task_id)) {
    if (launch.attempt == 0 || folder.exists(started_file(launch.attempt))) return {};
    shims_->forget(task_id);  // of the attempt before, whose end has been told
  }
  // A late shim of a daemon that died may hold the folder for a moment, only to find its launch specification
  // withdrawn.
  for (int attempt = 0; attempt < kLaunchAttempts; ++attempt) {
    DROVER_TRY(const bool settled, try_launch(folder, launch));
    if (settled) return {};
  }
  return fail(ErrorKind::kUnavailable,
              fmt::format("The shims of task '{}' come and go and do not start it", task_id),
              "launch it again");
}

Result<Launch> ShimContainerizer::with_gpus(const Directory& folder, const Launch& launch) const {
  auto whole = launch;
  if (!launch.mps_group.empty()) {
    if (!books_.mps) return fail(ErrorKind::kUnsupported, "This daemon starts no MPS daemons");
    DROVER_TRY(whole.mps, books_.mps->join(folder, launch.task.id, launch.mps_group, launch.gpu_uuids));
  }
  if (launch.parts.empty()) return whole;
  if (!books_.parts) return fail(ErrorKind::kUnsupported, "This daemon makes no MIG instances");
  DROVER_TRY(auto made, books_.parts->make(folder, launch.task.id, launch.parts));
  whole.gpu_uuids.clear();
  whole.gpu_devices.clear();
  for (auto& part : made) {
    whole.gpu_uuids.push_back(std::move(part.uuid));
    for (auto& node : part.nodes)  // several parts of one GPU have its node
      if (std::ranges::find(whole.gpu_devices, node.path, &gpu::DeviceNode::path) == whole.gpu_devices.end())
        whole.gpu_devices.push_back(std::move(node));
  }
  return whole;
}

Status ShimContainerizer::release_gpus(const Directory& folder, const std::string& task_id) const {
  if (books_.mps) DROVER_CHECK_OK(books_.mps->leave(folder, task_id));
  return books_.parts ? books_.parts->release(folder, task_id) : Status();
}

/// False when a shim was there that will not start the task.
Result<bool> ShimContainerizer::try_launch(const Directory& folder, const Launch& launch) {
  const auto& task_id = launch.task.id;
  const auto started_before = [&]() -> Result<bool> {
    DROVER_TRY(const auto found, find(folder, task_id, launch.attempt));
    return found != Found::kNever;
  };
  {
    DROVER_TRY(auto lock, try_lock(folder));
    if (!lock.held() || folder.exists(started_file(launch.attempt))) {
      lock.release();
      return started_before();
    }
    // Before there is a launch specification, without which nothing runs.
    DROVER_CHECK_OK(replace_file(folder, kRecordFile, launch.record));
    auto ready = with_gpus(folder, launch).and_then([&](const Launch& whole) {
      return launcher_->prepare(folder, whole);
    });
    if (ready && launch.may_start) ready = launch.may_start();
    if (!ready) {
      (void)launcher_->clear(folder, task_id);
      (void)release_gpus(folder, task_id);
      return Failure(ready.error());
    }
    lock.release();
  }
  auto outcome = launcher_->start(folder, task_id);
  if (!outcome) {
    (void)release_gpus(folder, task_id);
    return Failure(outcome.error());
  }
  if (outcome->readiness == Readiness::kTaken) {
    DROVER_CHECK_OK(await_process(outcome->shim.get(), kTakenTimeout));
    return started_before();
  }
  // A disk that is full may have kept the shim from writing down what it told.
  if (!report_started(task_id)) watcher_.started(task_id, Running{0, wall_clock()});
  DROVER_CHECK_OK(shims_->add(task_id, std::move(outcome->shim), false));
  return true;
}

Status ShimContainerizer::stop(const std::string& task_id, bool force) {
  return shims_->signal(task_id, force ? SIGUSR1 : SIGTERM);
}

Result<Found> ShimContainerizer::recover(const std::string& task_id, int attempt) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return Found::kNever;
  if (shims_->watches(task_id)) return Found::kAlive;
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  return find(folder, task_id, attempt);
}

/// By the lock: who holds it is the shim. If nobody does, the marker tells whether there ever was one that
/// came to start the task; without it the launch specification is withdrawn under the lock, so that no shim
/// still on its way can start the task behind our back.
Result<Found> ShimContainerizer::find(const Directory& folder, const std::string& task_id, int attempt) {
  DROVER_TRY(const bool alive, attach(folder, task_id));
  if (alive) {
    launcher_->end_forgotten_execs(folder, task_id);  // whoever asked for them is gone with the daemon before
    return Found::kAlive;
  }
  DROVER_TRY(const auto lock, try_lock(folder));
  if (!lock.held())
    return fail(ErrorKind::kUnavailable, fmt::format("A shim of task '{}' comes and goes", task_id),
                "try again");
  if (!folder.exists(started_file(attempt))) {
    DROVER_CHECK_OK(clear(folder, task_id));
    return Found::kNever;
  }
  report_started(task_id);
  DROVER_CHECK_OK(conclude(folder, task_id));
  return Found::kEnded;
}

Result<bool> ShimContainerizer::attach(const Directory& folder, const std::string& task_id) {
  DROVER_TRY(auto holder, lock_holder(folder));
  if (!holder.valid()) return false;
  DROVER_CHECK_OK(shims_->add(task_id, std::move(holder), true));
  return true;
}

bool ShimContainerizer::report_started(const std::string& task_id) {
  const auto folder = open_task(task_id);
  const auto status = folder.and_then(read_status);
  if (!status || !*status || !(*status)->running) return false;
  auto running = *(*status)->running;
  if (folder->exists(share::kPagesFolder)) running.tier = gpu::kGuarded;
  running.parts = PartBook::uuids(*folder);
  if (!running.parts.empty() || folder->exists(kLimitedGpus)) running.tier = gpu::kHard;
  watcher_.started(task_id, std::move(running));
  return true;
}

/// False while something of the task still runs and cannot be ended: then its GPUs are not free either.
bool ShimContainerizer::shim_ended(const std::string& task_id) {
  const auto folder = open_task(task_id);
  if (folder) return conclude(*folder, task_id).has_value();
  watcher_.ended(task_id, lost_ending(to_string(folder.error())));
  return true;
}

Status ShimContainerizer::clear(const Directory& folder, const std::string& task_id) const {
  DROVER_CHECK_OK(remover_->remove(folder, kUpper, owner_of(folder)));
  DROVER_CHECK_OK(launcher_->clear(folder, task_id));
  return release_gpus(folder, task_id);
}

/// The shim is gone: what it wrote last is the ending, or else there is none to be known, and what it left
/// is ended here. Its parts of GPUs, and the MPS daemon that was its last, are gone before that is told.
Status ShimContainerizer::conclude(const Directory& folder, const std::string& task_id) {
  const auto status = read_status(folder);
  if (status && *status && (*status)->ending) {
    DROVER_CHECK_OK(release_gpus(folder, task_id));  // before anybody else may be given its place
    watcher_.ended(task_id, *(*status)->ending);
    return {};
  }
  DROVER_CHECK_OK(clear(folder, task_id));
  const auto lost =
      lost_ending(status ? "its shim died, or the machine went down: nobody can say how it ended"
                         : to_string(status.error()));
  // Without the file (a full disk) it is found lost once more at the next start.
  (void)StatusFile::reserve(folder).and_then([&](auto&& file) { return file.write_ending(lost); });
  watcher_.ended(task_id, lost);
  return {};
}

Result<std::unique_ptr<ExecProcess>> ShimContainerizer::exec(const std::string& task_id,
                                                             const ExecRequest& request) {
  DROVER_TRY(const auto folder, open_task(task_id));
  return launcher_->exec(folder, task_id, request);
}

Result<UniqueFd> ShimContainerizer::connect_input(const std::string& task_id) {
  return open_task(task_id).and_then(
      [](const Directory& folder) { return container::connect_input(folder); });
}

Status ShimContainerizer::change_memory_limit(const std::string& task_id, const MemoryLimiter& change) {
  DROVER_TRY(const auto folder, open_task(task_id));
  return launcher_->change_memory_limit(folder, task_id, change);
}

Status ShimContainerizer::clean(const std::string& task_id) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return {};
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  DROVER_TRY(const auto lock, try_lock(folder));
  if (!lock.held())
    return fail(ErrorKind::kConflict, fmt::format("Task '{}' still runs", task_id), "stop it first");
  return clear(folder, task_id);
}

Status ShimContainerizer::forget(const std::string& task_id) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return {};
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  DROVER_CHECK_OK(end(task_id));
  return remover_->remove(tasks_, task_id, owner_of(folder));
}

Status ShimContainerizer::end(const std::string& task_id) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return {};
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  auto shim = shims_->forget(task_id);
  if (!shim.valid()) {
    DROVER_TRY(shim, lock_holder(folder));
  }
  if (shim.valid()) {
    send_signal(shim, SIGUSR1);
    DROVER_CHECK_OK(await_process(shim.get(), kForgetTimeout));
  }
  return clean(task_id);
}

}  // namespace drover::container
