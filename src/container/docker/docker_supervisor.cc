#include "container/docker/docker_supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>

#include "base/pidfd.h"
#include "base/units.h"
#include "container/docker/engine_volumes.h"
#include "container/runtime_failure.h"
#include "container/supervisor.h"

namespace drover::container::docker {
namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds(10);
constexpr auto kRetry = std::chrono::milliseconds(500);
constexpr auto kListenPoll = std::chrono::milliseconds(20);

std::chrono::nanoseconds clock_of_logs() {
  return std::chrono::system_clock::now().time_since_epoch();
}

/// A command that cannot be run is the task's mistake, and told as an OCI runtime's word of it is.
Error explain_start(const Error& error) {
  auto explained = explain_runtime_failure("Docker", error.message);
  const bool about_command = explained.kind != ErrorKind::kUnavailable;
  auto other = error;
  if (other.kind == ErrorKind::kNotFound || other.kind == ErrorKind::kPermissionDenied)
    other.kind = ErrorKind::kUnavailable;
  return about_command ? explained : other;
}

/// What this process mounts is seen by processes of its own mount namespace, and of those that it shares
/// mounts with.
Error explain_create(const Error& error) {
  if (error.message.find("bind source path does not exist") == std::string::npos) return error;
  return {ErrorKind::kUnavailable, "The Docker Engine does not see what Drover has mounted for the task",
          "let the engine and 'drover serve' run in one mount namespace, or share the state folder between "
          "theirs",
          ""};
}

}  // namespace

std::string container_name(const std::string& task_id) {
  return "drover-" + task_id;
}

DockerSupervisor::DockerSupervisor(const LaunchSpec& spec, const Directory& task,
                                   std::vector<Hierarchy> hierarchies, std::array<LogWriter, 2> logs)
    : spec_(spec),
      task_(task),
      hierarchies_(std::move(hierarchies)),
      logs_(std::move(logs)),
      engine_(spec.docker->socket, spec.docker->api_version) {}

Result<Ending> DockerSupervisor::run(const std::function<void(const Running&)>& started) {
  const auto listened = supervised_signals();
  signals_.reset(::signalfd(-1, &listened, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return fail_errno("Failed to listen to signals", errno);
  const auto begun = start();
  unmount_volumes(task_);  // the container has its own mounts of them now
  if (begun) {
    started(running_);
    loop();
  }
  const auto how = begun ? ending() : Ending{};
  if (!begun || !init_errors_.failure(how.exit_status)) logs_[1].append(init_errors_.rest());
  // What the engine cannot remove now is removed when the task is cleared up.
  if (!id_.empty()) (void)engine_.remove(id_);
  if (!begun) return Failure(begun.error());
  return how;
}

Status DockerSupervisor::start() {
  DROVER_CHECK_OK(expose_volumes(spec_.volumes, spec_.volume_user, spec_.root.hidden, task_));
  auto created = engine_.create(container_name(spec_.task_id), spec_.docker->body);
  if (!created) return Failure(explain_create(created.error()));
  id_ = std::move(*created);
  auto output = engine_.attach(id_);  // where podman makes all but the last step of a start
  if (!output) return Failure(explain_start(output.error()));
  output_ = std::move(*output);
  output_at_ = clock_of_logs();
  read_signals();
  if (stop_requested_)
    return fail(ErrorKind::kTimeout, "The task was stopped before its container had started");
  if (auto done = engine_.start(id_, spec_.start_timeout); !done) return Failure(explain_start(done.error()));
  return begin_waiting();
}

Status DockerSupervisor::begin_waiting() {
  running_ = Running{0, wall_clock(), "docker"};
  if (auto wait = engine_.wait(id_))
    wait_ = std::move(*wait);
  else
    disconnected(wait.error());
  const auto state = engine_.inspect(id_);
  if (state && *state && (*state)->running) find_processes((*state)->pid);
  return {};
}

/// Only where the engine's processes are this machine's: then they are told as those of any task.
void DockerSupervisor::find_processes(int pid) {
  if (pid <= 0) return;
  auto process = open_process(pid);
  const auto groups = read_file(fmt::format("/proc/{}/cgroup", pid));
  if (!process.valid() || !groups) return;
  const auto group = group_of_container(*groups, id_);
  if (!group) return;
  first_process_ = std::move(process);
  cgroup_.emplace(hierarchies_, *group);
  running_.pid = pid;
}

int DockerSupervisor::poll_timeout() const {
  auto next = Clock::time_point::max();
  for (const auto& deadline : {kill_deadline_, drain_deadline_, retry_at_})
    if (deadline) next = std::min(next, *deadline);
  if (kill_deadline_ && !asked_to_end_) next = std::min(next, Clock::now() + kListenPoll);
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void DockerSupervisor::loop() {
  while (!exit_code_ || output_) {
    std::array<pollfd, 3> polls = {pollfd{signals_.get(), POLLIN, 0},
                                   pollfd{output_ ? output_->fd() : -1, POLLIN, 0},
                                   pollfd{wait_ ? wait_->fd() : -1, POLLIN, 0}};
    if (::poll(polls.data(), polls.size(), poll_timeout()) < 0) continue;
    if (polls[0].revents != 0) read_signals();
    if (polls[1].revents != 0) read_output();
    if (polls[2].revents != 0) read_wait();
    check_deadlines();
  }
}

void DockerSupervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) stop(info.ssi_signo == SIGUSR1);
}

void DockerSupervisor::stop(bool force) {
  const bool first = !std::exchange(stop_requested_, true);
  if (exit_code_ || running_.started_at == TimePoint{}) return;
  if (force) return kill();
  if (!first) return;
  kill_deadline_ = deadline_after(spec_.grace);
  ask_to_end();
}

void DockerSupervisor::kill() {
  kill_deadline_.reset();
  if (!engine_.kill(id_, "SIGKILL") && cgroup_) (void)cgroup_->kill_all();
}

/// The init hands it to all processes of the container. Before it has any, the runtime's own beginning would
/// take the signal as its end, or the kernel would keep it from a first process.
void DockerSupervisor::ask_to_end() {
  if (asked_to_end_ || exit_code_) return;
  if (cgroup_) {
    if (cgroup_->processes().size() < 2) return;
    send_signal(first_process_, SIGTERM);
  } else {
    (void)engine_.kill(id_, "SIGTERM");
  }
  asked_to_end_ = true;
}

void DockerSupervisor::check_deadlines() {
  const auto now = Clock::now();
  if (kill_deadline_) ask_to_end();
  if (kill_deadline_ && now >= *kill_deadline_) kill();
  if (retry_at_ && now >= *retry_at_) reconnect();
  if (drain_deadline_ && now >= *drain_deadline_) output_.reset();
}

void DockerSupervisor::keep(std::size_t stream, std::string_view bytes) {
  const auto again = std::min(known_again_[stream], bytes.size());
  known_again_[stream] -= again;
  bytes.remove_prefix(again);
  if (bytes.empty()) return;
  const auto line_end = bytes.rfind('\n');
  open_line_[stream] =
      line_end == std::string_view::npos ? open_line_[stream] + bytes.size() : bytes.size() - line_end - 1;
  logs_[stream].append(init_errors_.pass(stream, bytes));
}

void DockerSupervisor::read_output() {
  const auto received = output_->receive();
  const auto bytes = output_->take();
  // An engine that stops notes what comes after it has closed this: its end is no news of that.
  if (!bytes.empty()) output_at_ = clock_of_logs();
  const auto fed =
      frames_.feed(bytes, [this](std::size_t stream, std::string_view piece) { keep(stream, piece); });
  if (!fed) logs_[1].append(fmt::format("drover: {}\n", to_string(fed.error())));
  if (!received || !fed || output_->ended()) output_.reset();
}

void DockerSupervisor::read_wait() {
  const auto received = wait_->receive();
  if (received && !wait_->ended()) return;
  const int status = wait_->status();
  const auto code = received ? parse_exit_code(wait_->take()) : Failure(received.error());
  wait_.reset();
  if (received && status == 200 && code) return container_ended(*code);
  disconnected(code ? Error{ErrorKind::kUnavailable, "The Docker Engine waits no more", "", ""}
                    : code.error());
}

void DockerSupervisor::container_ended(int exit_code) {
  exit_code_ = exit_code;
  kill_deadline_.reset();
  retry_at_.reset();
  drain_deadline_ = Clock::now() + kDrainTimeout;
}

void DockerSupervisor::disconnected(const Error& why) {
  wait_.reset();
  retry_at_ = Clock::now() + kFirstRetry;
  patience_ends_ = deadline_after(spec_.docker->patience);
  lost_why_ = why.message;
}

/// Goes on where it was: the engine's own log has what was missed.
void DockerSupervisor::reconnect() {
  const auto state = engine_.inspect(id_);
  if (!state) {
    if (!std::exchange(complained_, true))
      logs_[1].append(fmt::format("drover: {}; trying again for {}\n", state.error().message,
                                  format_duration(spec_.docker->patience)));
    lost_why_ = state.error().message;
    retry_at_ = Clock::now() + kRetry;
    return give_up();
  }
  if (std::exchange(complained_, false)) logs_[1].append("drover: the Docker Engine answers again\n");
  retry_at_.reset();
  lost_why_.clear();
  if (!*state) {
    removed_ = true;
    output_.reset();
    return container_ended(128 + SIGKILL);
  }
  frames_ = FrameReader();
  known_again_ = open_line_;
  output_.reset();
  if (auto logs = engine_.follow_logs(id_, output_at_ + std::chrono::nanoseconds(1)))
    output_ = std::move(*logs);
  if (!(*state)->running) return container_ended((*state)->exit_code);
  if (auto wait = engine_.wait(id_))
    wait_ = std::move(*wait);
  else
    disconnected(wait.error());
}

/// Its GPUs are free only when nothing of it runs any more: where that cannot be seen, waiting goes on.
void DockerSupervisor::give_up() {
  if (Clock::now() < patience_ends_ || !cgroup_ || !cgroup_->kill_all()) return;
  retry_at_.reset();
  lost_why_ = fmt::format("the Docker Engine did not answer for {}, and the task was ended: {}",
                          format_duration(spec_.docker->patience), lost_why_);
  container_ended(128 + SIGKILL);
  output_.reset();
}

Ending DockerSupervisor::ending() const {
  Ending ending;
  ending.stopped = stop_requested_;
  ending.finished_at = wall_clock();
  ending.exit_status = *exit_code_;
  ending.lost = !lost_why_.empty();
  ending.message = lost_why_;
  if (ending.lost) return ending;
  if (const auto failure = init_errors_.failure(ending.exit_status)) {
    ending.message = to_string(*failure);
    return ending;
  }
  const int signal = *exit_code_ - 128;
  if (signal == SIGKILL || signal == SIGTERM || signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS)
    say_signal(ending, signal);
  const auto state = engine_.inspect(id_);
  // The engine notes it at the end, unless the news of it came a moment later.
  const bool out_of_memory =
      (state && *state && (*state)->out_of_memory && ending.exit_status != 0) ||
      (signal == SIGKILL && engine_.happened("oom", id_, running_.started_at).value_or(false));
  if (out_of_memory) say_out_of_memory(ending);
  const bool gone =
      removed_ || (state && (!*state || (*state)->status == "removing" || (*state)->status == "dead"));
  if (gone)
    ending.message = "its container was removed from the Docker Engine by somebody else";
  else if (!stop_requested_ && !ending.out_of_memory && signal > 0 &&
           engine_.happened("kill", id_, running_.started_at).value_or(false))
    ending.message += ", which somebody sent through the Docker Engine";
  return ending;
}

}  // namespace drover::container::docker
