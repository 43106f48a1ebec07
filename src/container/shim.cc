#include "container/shim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/process.h"
#include "base/units.h"
#include "container/bundle.h"
#include "container/cgroup.h"
#include "container/docker/docker_supervisor.h"
#include "container/launch_spec.h"
#include "container/network/task_network.h"
#include "container/output_record.h"
#include "container/root_mount.h"
#include "container/runtime_failure.h"
#include "container/status_file.h"
#include "container/supervisor.h"
#include "container/task_folder.h"
#include "container/volume_mount.h"

namespace drover::container {
namespace {

constexpr auto kDeleteTimeout = std::chrono::seconds(20);

/// The pipe to the daemon that spawned us, which may be gone by now.
class ReadinessPipe {
 public:
  explicit ReadinessPipe(int fd) : pipe_(fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

  void notify(const std::string& readiness) {
    if (pipe_.valid()) (void)write_all(pipe_.get(), readiness, "the shim's word");
    pipe_.reset();
  }

 private:
  UniqueFd pipe_;
};

/// Made once in the life of an attempt. False when somebody did before.
Result<bool> mark_started(const Directory& task, int attempt) {
  const auto name = started_file(attempt);
  const UniqueFd marker(
      ::openat(task.fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!marker.valid() && errno == EEXIST) return false;
  if (!marker.valid()) return fail_errno(fmt::format("Failed to mark '{}' as started", task.path()), errno);
  DROVER_CHECK_OK(task.sync());
  return true;
}

/// All shims share one group, outside of that of the containers: when those have all the processes that they
/// may have, a shim can still stop its own.
std::string shims_group(const LaunchSpec& spec) {
  return std::filesystem::path(spec.cgroup).parent_path().string() + "-shims";
}

Result<std::array<LogWriter, 2>> open_logs(const LaunchSpec& spec, const Directory& task,
                                           const Directory& sandbox) {
  const auto old = spec.attempt == 0 ? OldLog::kRemove : OldLog::kKeep;
  const auto open = [&](const char* name) {
    return LogWriter::create(sandbox.fd(), name, spec.uid, spec.gid, spec.logs, old);
  };
  DROVER_TRY(auto output, open("stdout"));
  DROVER_TRY(auto errors, open("stderr"));
  const auto recorder = std::make_shared<OutputRecorder>(task.fd(), spec.logs, old);
  output.record_in(recorder, 0);
  errors.record_in(recorder, 1);
  return std::array{std::move(output), std::move(errors)};
}

/// How it went with the container, and whether it was asked to stop.
struct Supervised {
  Result<Ending> ending;
  bool stopped = false;
};

using Started = std::function<void(const Running&)>;

/// A file system that cannot show its files with other owners, such as NFS, leaves root of the container the
/// machine's.
Status settle_ids(LaunchSpec& spec, const Directory& task) {
  if (!spec.ids.maps() || spec.volumes.empty()) return {};
  DROVER_TRY(const auto ids, UserNamespace::make(spec.ids));
  if (can_map(spec, ids)) return {};
  spec.ids = {};
  DROVER_TRY(const auto bundle, task.subdirectory(kBundle));
  DROVER_TRY(const auto configuration, bundle.read(kConfiguration));
  return replace_file(bundle, kConfiguration, without_ids(configuration), kConfigurationMode);
}

Result<Supervised> supervise(LaunchSpec spec, const Directory& task, const Cgroup& cgroup,
                             const std::vector<Hierarchy>& hierarchies, const Started& started) {
  DROVER_CHECK_OK(enter_private_mounts());
  DROVER_CHECK_OK(settle_ids(spec, task));
  DROVER_CHECK_OK(mount_container(spec, task.path()));
  DROVER_TRY(const auto sandbox, task.subdirectory(kSandbox));
  DROVER_TRY(auto logs, open_logs(spec, task, sandbox));
  std::optional<TaskNetwork> network;
  if (spec.network) {
    leave_service(hierarchies, shims_group(spec));  // first: what the network needs runs in our group
    DROVER_TRY(auto made, TaskNetwork::make(*spec.network, task, kNetwork));
    network.emplace(std::move(made));
    if (!network->shortcoming().empty()) logs[1].append(fmt::format("drover: {}\n", network->shortcoming()));
  }
  DROVER_CHECK_OK(mount_sysfs(spec, network ? fmt::format("{}/{}", task.path(), kNetwork) : ""));
  Supervisor supervisor(spec, task, cgroup, std::move(logs));
  if (network) supervisor.depend_on(network->forwarder(), "the process that forwards its ports has ended");
  auto ending = supervisor.run(started);
  return Supervised{std::move(ending), supervisor.stop_requested()};
}

Result<Supervised> supervise_docker(const LaunchSpec& spec, const Directory& task,
                                    const std::vector<Hierarchy>& hierarchies, const Started& started) {
  DROVER_TRY(const auto sandbox, task.subdirectory(kSandbox));
  DROVER_TRY(auto logs, open_logs(spec, task, sandbox));
  docker::DockerSupervisor supervisor(spec, task, hierarchies, std::move(logs));
  auto ending = supervisor.run(started);
  return Supervised{std::move(ending), supervisor.stop_requested()};
}

/// Has the runtime remove what it keeps of the container, and makes sure of the cgroup. One with limits of
/// the driver's is the daemon's to remove, which takes those away first.
void remove_container(const LaunchSpec& spec, const Directory& task, const Cgroup& cgroup) {
  if (task.exists(kLimitedGpus)) {
    (void)cgroup.kill_all();
    return;
  }
  Command command;
  command.arguments = {spec.runtime, "--root",  fmt::format("{}/{}", task.path(), kRuntimeState),
                       "delete",     "--force", spec.task_id};
  command.environment = minimal_environment();
  command.timeout = kDeleteTimeout;
  (void)run_command(command);
  cgroup.remove();
}

Ending ending_of_failure(const Error& error, bool stopped) {
  Ending ending;
  ending.exit_status = exit_status_of(error);
  ending.stopped = stopped;
  ending.message = to_string(error);
  ending.finished_at = wall_clock();
  return ending;
}

std::string failed(const Error& error) {
  return fmt::format("{}{} {}\n{}", kShimFailed, error_kind_info(error.kind).name, error.message, error.hint);
}

Status run_task(const LaunchSpec& spec, const Directory& task, ReadinessPipe& readiness) {
  DROVER_TRY(const auto hierarchies, find_hierarchies());
  const Cgroup cgroup(hierarchies, spec.cgroup);
  DROVER_TRY(auto status, StatusFile::reserve(task));
  DROVER_TRY(const bool first, mark_started(task, spec.attempt));
  if (!first) {
    readiness.notify(kShimTaken);
    return {};
  }
  const auto on_started = [&](const Running& running) {
    (void)status.write_running(running);  // a full disk does not stop a task
    readiness.notify(kShimStarted);
    leave_service(hierarchies, shims_group(spec));
  };
  const auto supervised = spec.docker ? supervise_docker(spec, task, hierarchies, on_started)
                                      : supervise(spec, task, cgroup, hierarchies, on_started);
  if (!spec.docker) remove_container(spec, task, cgroup);
  const auto ending = supervised ? supervised->ending : Failure(supervised.error());
  const bool stopped = supervised && supervised->stopped;
  DROVER_CHECK_OK(status.write_ending(ending ? *ending : ending_of_failure(ending.error(), stopped)));
  if (!ending) readiness.notify(failed(ending.error()));
  return {};
}

/// Under the lock: without a launch specification there is nothing to do (recovery has withdrawn it).
Status serve(const std::string& task_folder, ReadinessPipe& readiness) {
  DROVER_TRY(const auto task, Directory::open(task_folder));
  DROVER_TRY(const auto lock, try_lock(task));
  if (!lock.held() || !task.exists(kLaunchSpecFile)) {
    readiness.notify(kShimTaken);
    return {};
  }
  DROVER_CHECK_OK(lock.sign());
  DROVER_TRY(const auto text, task.read(kLaunchSpecFile));
  DROVER_TRY(const auto spec, decode_launch_spec(text));
  return run_task(spec, task, readiness);
}

}  // namespace

int run_shim(const std::string& task_folder, int readiness_descriptor) {
  const auto listened = supervised_signals();
  ::sigprocmask(SIG_BLOCK, &listened, nullptr);
  for (const int ignored : {SIGPIPE, SIGHUP}) ::signal(ignored, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "drover-shim");
  ReadinessPipe readiness(readiness_descriptor);
  const auto served = serve(task_folder, readiness);
  if (served) return EXIT_SUCCESS;
  readiness.notify(failed(served.error()));
  return EXIT_FAILURE;
}

}  // namespace drover::container
