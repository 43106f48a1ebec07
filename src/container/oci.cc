#include "container/oci.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/units.h"
#include "container/shim.h"
#include "container/status_file.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

constexpr const char* kTasks = "tasks";
constexpr const char* kTrials = "trials";
constexpr mode_t kTaskMode = 0711;
constexpr auto kForgetTimeout = std::chrono::seconds(40);
constexpr int kLaunchAttempts = 5;
constexpr auto kTrialTimeout = std::chrono::seconds(20);

/// Mounts see no symbolic links: every path that one is made from must be the real one.
std::string real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.string();
}

Result<OciOptions> with_real_paths(OciOptions options) {
  options.state = real_path(options.state);
  options.launching.fetch_caches = options.state + "/fetched";
  for (const std::string_view replaced : {"/dev/", "/proc/", "/sys/"})
    if (options.state.starts_with(replaced))
      return fail(ErrorKind::kInvalid,
                  fmt::format("The state folder '{}' lies in '{}', which every container has its own of",
                              options.state, replaced),
                  "choose a folder such as /var/lib/drover");
  auto& hidden = options.launching.hidden;
  for (auto& place : hidden) place = real_path(place);
  hidden.insert(hidden.begin(), options.state);
  return options;
}

Launch trial_launch(const std::string& task_id) {
  Launch launch;
  launch.task.id = task_id;
  launch.task.command = {"true"};
  launch.task.working_directory = "/";
  launch.task.user.name = "root";
  launch.task.resources.memory_bytes = 0;
  return launch;
}

Ending lost_ending(std::string message) {
  Ending lost;
  lost.exit_status = 128 + SIGKILL;
  lost.lost = true;
  lost.message = std::move(message);
  lost.finished_at = wall_clock();
  return lost;
}

/// One container that does nothing, as a task would get it, but in a folder that is thrown away.
Status run_trial(const Launcher& launcher, const Directory& trials, const std::string& runtime) {
  const auto task_id = fmt::format("trial-{}", ::getpid());
  DROVER_CHECK_OK(trials.remove_tree(task_id));
  DROVER_TRY(const auto folder, trials.make_subdirectory(task_id, kTaskMode));
  const auto ran = launcher.prepare(folder, trial_launch(task_id), runtime).and_then([&]() -> Status {
    DROVER_TRY(const auto outcome, launcher.start(folder, task_id));
    DROVER_CHECK_OK(await_process(outcome.shim.get(), kTrialTimeout));
    DROVER_TRY(const auto status, read_status(folder));
    if (status && status->ending && status->ending->exit_status == 0) return {};
    return fail(ErrorKind::kUnavailable, "It started a container, but the container failed");
  });
  DROVER_CHECK_OK(launcher.clear(folder, task_id));
  DROVER_CHECK_OK(trials.remove_tree(task_id));
  return ran;
}

std::vector<RuntimeReport> try_here(const OciOptions& options, const Launcher& launcher) {
  return try_runtimes(options.runtime, [&](const std::string& path) -> Status {
    DROVER_TRY(const auto trials, Directory::create(options.state + "/" + kTrials, kTaskMode));
    return run_trial(launcher, trials, path);
  });
}

}  // namespace

Result<std::vector<RuntimeReport>> find_runtimes(const OciOptions& given) {
  DROVER_TRY(const auto options, with_real_paths(given));
  DROVER_TRY(auto hierarchies, find_hierarchies());
  return try_here(options, Launcher(options.launching, std::move(hierarchies)));
}

OciContainerizer::OciContainerizer(OciOptions options, Watcher watcher, Directory tasks, Launcher launcher)
    : options_(std::move(options)),
      watcher_(std::move(watcher)),
      tasks_(std::move(tasks)),
      launcher_(std::move(launcher)) {}

OciContainerizer::~OciContainerizer() = default;

Result<std::unique_ptr<OciContainerizer>> OciContainerizer::create(OciOptions given, Watcher watcher) {
  DROVER_TRY(auto options, with_real_paths(std::move(given)));
  DROVER_TRY(auto tasks, Directory::create(options.state + "/" + kTasks, kTaskMode));
  DROVER_TRY(auto hierarchies, find_hierarchies());
  Launcher launcher(options.launching, std::move(hierarchies));
  std::unique_ptr<OciContainerizer> made(
      new OciContainerizer(std::move(options), std::move(watcher), std::move(tasks), std::move(launcher)));
  DROVER_TRY(made->shims_,
             ShimWatcher::start({[raw = made.get()](const auto& id) { return raw->report_started(id); },
                                 [raw = made.get()](const auto& id) { return raw->shim_ended(id); }}));
  made->runtimes_ = try_here(made->options_, made->launcher_);
  return made;
}

std::vector<RuntimeReport> OciContainerizer::runtimes() const {
  const std::lock_guard lock(runtimes_mutex_);
  return runtimes_;
}

Result<std::string> OciContainerizer::runtime() {
  const std::lock_guard lock(runtimes_mutex_);
  const auto works = [this] { return !runtimes_.empty() && runtimes_.back().works(); };
  if (!works() || ::access(runtimes_.back().path.c_str(), X_OK) != 0)
    runtimes_ = try_here(options_, launcher_);
  if (!works()) return Failure(no_runtime(runtimes_));
  return runtimes_.back().path;
}

Result<Directory> OciContainerizer::open_task(const std::string& task_id) const {
  DROVER_CHECK_OK(check_task_id(task_id));
  return tasks_.subdirectory(task_id);
}

std::string OciContainerizer::sandbox(const std::string& task_id) const {
  return fmt::format("{}/{}/{}", tasks_.path(), task_id, kSandbox);
}

std::vector<std::string> OciContainerizer::known() const {
  return tasks_.list().value_or(std::vector<std::string>{});
}

Status OciContainerizer::launch(const Launch& launch) {
  const auto& task_id = launch.task.id;
  DROVER_CHECK_OK(check_task_id(task_id));
  DROVER_TRY(const auto folder, tasks_.make_subdirectory(task_id, kTaskMode));
  if (shims_->watches(task_id)) {
    if (launch.attempt == 0 || folder.exists(started_file(launch.attempt))) return {};
    shims_->forget(task_id);  // of the attempt before, whose end has been told
  }
  DROVER_TRY(const auto runtime_path, runtime());
  // A late shim of a daemon that died may hold the folder for a moment, only to find its order withdrawn.
  for (int attempt = 0; attempt < kLaunchAttempts; ++attempt) {
    DROVER_TRY(const bool settled, try_launch(folder, launch, runtime_path));
    if (settled) return {};
  }
  return fail(ErrorKind::kUnavailable,
              fmt::format("The shims of task '{}' come and go and do not start it", task_id),
              "launch it again");
}

/// False when a shim was there that will not start the task.
Result<bool> OciContainerizer::try_launch(const Directory& folder, const Launch& launch,
                                          const std::string& runtime_path) {
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
    if (auto prepared = launcher_.prepare(folder, launch, runtime_path); !prepared) {
      (void)launcher_.clear(folder, task_id);
      return Failure(prepared.error());
    }
    lock.release();
  }
  DROVER_TRY(auto outcome, launcher_.start(folder, task_id));
  if (outcome.word == FirstWord::kTaken) {
    DROVER_CHECK_OK(await_process(outcome.shim.get(), kTrialTimeout));
    return started_before();
  }
  // A disk that is full may have kept the shim from writing down what it told.
  if (!report_started(task_id)) watcher_.started(task_id, Running{0, wall_clock()});
  DROVER_CHECK_OK(shims_->add(task_id, std::move(outcome.shim), false));
  return true;
}

Status OciContainerizer::stop(const std::string& task_id, bool force) {
  return shims_->signal(task_id, force ? SIGUSR1 : SIGTERM);
}

Result<Found> OciContainerizer::recover(const std::string& task_id, int attempt) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return Found::kNever;
  if (shims_->watches(task_id)) return Found::kAlive;
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  return find(folder, task_id, attempt);
}

/// By the lock: who holds it is the shim. If nobody does, the marker tells whether there ever was one that
/// came to start the task; without it the order is withdrawn under the lock, so that no shim still on its way
/// can start the task behind our back.
Result<Found> OciContainerizer::find(const Directory& folder, const std::string& task_id, int attempt) {
  DROVER_TRY(const bool alive, attach(folder, task_id));
  if (alive) {
    end_forgotten_execs(launcher_.cgroup(task_id));  // whoever asked for them is gone with the daemon before
    return Found::kAlive;
  }
  DROVER_TRY(const auto lock, try_lock(folder));
  if (!lock.held())
    return fail(ErrorKind::kUnavailable, fmt::format("A shim of task '{}' comes and goes", task_id),
                "try again");
  if (!folder.exists(started_file(attempt))) {
    DROVER_CHECK_OK(launcher_.clear(folder, task_id));
    return Found::kNever;
  }
  report_started(task_id);
  DROVER_CHECK_OK(conclude(folder, task_id));
  return Found::kEnded;
}

Result<bool> OciContainerizer::attach(const Directory& folder, const std::string& task_id) {
  DROVER_TRY(auto holder, lock_holder(folder));
  if (!holder.valid()) return false;
  DROVER_CHECK_OK(shims_->add(task_id, std::move(holder), true));
  return true;
}

bool OciContainerizer::report_started(const std::string& task_id) {
  const auto status = open_task(task_id).and_then(read_status);
  if (!status || !*status || !(*status)->running) return false;
  watcher_.started(task_id, *(*status)->running);
  return true;
}

/// False while something of the task still runs and cannot be ended: then its GPUs are not free either.
bool OciContainerizer::shim_ended(const std::string& task_id) {
  const auto folder = open_task(task_id);
  if (folder) return conclude(*folder, task_id).has_value();
  watcher_.ended(task_id, lost_ending(to_string(folder.error())));
  return true;
}

/// The shim is gone: what it wrote last is the ending, or else there is none to be known, and what it left
/// is ended here.
Status OciContainerizer::conclude(const Directory& folder, const std::string& task_id) {
  const auto status = read_status(folder);
  if (status && *status && (*status)->ending) {
    watcher_.ended(task_id, *(*status)->ending);
    return {};
  }
  DROVER_CHECK_OK(launcher_.clear(folder, task_id));
  const auto lost =
      lost_ending(status ? "its shim died, or the machine went down: nobody can say how it ended"
                         : to_string(status.error()));
  // Without the file (a full disk) it is found lost once more at the next start.
  (void)StatusFile::reserve(folder).and_then([&](auto&& file) { return file.write_ending(lost); });
  watcher_.ended(task_id, lost);
  return {};
}

Result<std::unique_ptr<ExecProcess>> OciContainerizer::exec(const std::string& task_id,
                                                            const ExecRequest& request) {
  DROVER_TRY(const auto folder, open_task(task_id));
  DROVER_TRY(const auto runtime_path, runtime());
  return start_exec(folder, task_id, runtime_path, launcher_.cgroup(task_id), request);
}

Status OciContainerizer::clean(const std::string& task_id) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return {};
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  DROVER_TRY(const auto lock, try_lock(folder));
  if (!lock.held())
    return fail(ErrorKind::kConflict, fmt::format("Task '{}' still runs", task_id), "stop it first");
  return launcher_.clear(folder, task_id);
}

Status OciContainerizer::forget(const std::string& task_id) {
  DROVER_CHECK_OK(check_task_id(task_id));
  if (!tasks_.exists(task_id)) return {};
  DROVER_TRY(const auto folder, tasks_.subdirectory(task_id));
  auto shim = shims_->forget(task_id);
  if (!shim.valid()) {
    DROVER_TRY(shim, lock_holder(folder));
  }
  if (shim.valid()) {
    ::syscall(SYS_pidfd_send_signal, shim.get(), SIGUSR1, nullptr, 0);
    DROVER_CHECK_OK(await_process(shim.get(), kForgetTimeout));
  }
  DROVER_CHECK_OK(clean(task_id));
  return tasks_.remove_tree(task_id);
}

}  // namespace drover::container
