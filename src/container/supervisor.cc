#include "container/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/process.h"
#include "base/spawn.h"
#include "base/units.h"
#include "base/unix_socket.h"
#include "container/runtime_failure.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24 * 365);
constexpr std::size_t kErrorTail = 4096;
constexpr std::size_t kInputPolls = 6;  // where those of the input begin

std::vector<std::string> runtime_arguments(const LaunchSpec& spec, const Directory& folder) {
  const auto& task = folder.path();
  std::vector<std::string> words = {spec.runtime,
                                    "--root",
                                    task + "/" + kRuntimeState,
                                    "--log",
                                    task + "/" + kRuntimeLog,
                                    "--log-format",
                                    "json",
                                    "run",
                                    "--detach",
                                    "--preserve-fds",
                                    "1",  // kReportDescriptor
                                    "--pid-file",
                                    task + "/" + kPidFile,
                                    "--bundle",
                                    spec.mounts + "/" + kBundle};
  if (spec.terminal)  // the whole path may be longer than that of a socket may be
    words.insert(words.end(), {"--console-socket",
                               fmt::format("/proc/{}/fd/{}/{}", ::getpid(), folder.fd(), kConsoleSocket)});
  words.push_back(spec.task_id);
  return words;
}

/// The descriptor that comes with a message; none when there is none.
UniqueFd receive_descriptor(int socket) {
  std::array<char, 256> text{};
  iovec buffer{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) < 0) return {};
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return UniqueFd(descriptor);
}

/// In the child, after fork: becomes the runtime. It dies with the shim, so that it cannot start anything
/// after the daemon has cleared up behind a shim that was killed.
[[noreturn]] void become_runtime(pid_t parent, const std::array<int, kReportDescriptor + 1>& given, int lock,
                                 char* const* arguments, char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  ::setpgid(0, 0);
  for (int target = 0; target <= kReportDescriptor; ++target)
    ::dup2(given.at(static_cast<std::size_t>(target)), target);
  ::fcntl(lock, F_SETFD, 0);
  for (const int ignored : {SIGPIPE, SIGHUP}) ::signal(ignored, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(arguments[0], arguments, environment);
  ::dprintf(STDERR_FILENO, "%s: %s\n", arguments[0], ::strerror(errno));
  ::_exit(EXIT_FAILURE);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds wait) {
  return std::chrono::steady_clock::now() + std::min(wait, kLongestWait);
}

void say_out_of_memory(Ending& ending) {
  ending.out_of_memory = true;
  ending.message = "out of memory: it needed more than its limit";
}

void say_signal(Ending& ending, int signal) {
  ending.exit_status = 128 + signal;
  ending.message = fmt::format("ended by signal {} ({})", signal, ::strsignal(signal));
}

sigset_t supervised_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) ::sigaddset(&signals, signal);
  return signals;
}

Supervisor::Supervisor(const LaunchSpec& spec, const Directory& task, const Cgroup& cgroup,
                       std::array<LogWriter, 2> logs)
    : spec_(spec),
      task_(task),
      cgroup_(cgroup),
      logs_(std::move(logs)),
      report_(spec.working_directory, spec.command) {}

void Supervisor::depend_on(int process, std::string message) {
  needed_ = process;
  needed_for_ = std::move(message);
}

Result<Ending> Supervisor::run(const std::function<void(const Running&)>& started) {
  const auto listened = supervised_signals();
  signals_.reset(::signalfd(-1, &listened, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return fail_errno("Failed to listen to signals", errno);
  DROVER_CHECK_OK(spawn_runtime());
  start_deadline_ = deadline_after(spec_.start_timeout);
  loop(started);
  if (failure_) return Failure(*failure_);
  if (start_failed_) return Failure(start_failure());
  return ending();
}

/// The runtime's standard input: a pipe. Runtimes give what they find there to the task's user, and the
/// host's /dev/null is not his.
Result<UniqueFd> Supervisor::open_input() {
  DROVER_TRY(auto pipe, make_pipe());
  if (spec_.takes_input || spec_.terminal) {
    DROVER_TRY(input_, TaskInput::open(task_));
    if (!spec_.terminal) input_->begin(std::move(pipe.write), false);
  }
  if (spec_.terminal) {
    DROVER_TRY(console_, listen_at(task_, kConsoleSocket));
  }
  return std::move(pipe.read);
}

Status Supervisor::spawn_runtime() {
  constexpr int kLowest = kReportDescriptor + 1;
  std::array<UniqueFd, 2> ends;
  for (std::size_t stream = 0; stream < pipes_.size(); ++stream) {
    DROVER_TRY(auto pipe, make_pipe(kLowest));
    ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    pipes_[stream] = std::move(pipe.read);
    ends[stream] = std::move(pipe.write);
  }
  DROVER_TRY(auto report, make_pipe(kLowest));
  ::fcntl(report.read.get(), F_SETFL, O_NONBLOCK);
  report_pipe_ = std::move(report.read);
  DROVER_TRY(const auto locked, lock_runtime(task_));
  DROVER_TRY(const auto lock, moved_up(locked.get(), kLowest));
  DROVER_TRY(const auto input, open_input());
  DROVER_TRY(const auto given_input, moved_up(input.get(), kLowest));
  auto arguments = runtime_arguments(spec_, task_);
  std::vector<std::string> assignments;
  for (const auto& [name, value] : minimal_environment()) assignments.push_back(name + "=" + value);
  const auto argument_pointers = pointers(arguments);
  const auto environment_pointers = pointers(assignments);
  const auto parent = ::getpid();
  runtime_ = ::fork();
  if (runtime_ < 0) return fail_errno("Failed to create a process", errno);
  if (runtime_ == 0)
    become_runtime(parent, {given_input.get(), ends[0].get(), ends[1].get(), report.write.get()}, lock.get(),
                   argument_pointers.data(), environment_pointers.data());
  ::setpgid(runtime_, runtime_);  // here too: whichever comes first
  return {};
}

bool Supervisor::finished() const {
  return (start_failed_ || wait_status_) && !pipes_[0].valid() && !pipes_[1].valid();
}

int Supervisor::poll_timeout() const {
  auto next = Clock::time_point::max();
  for (const auto& deadline : {start_deadline_, kill_deadline_, drain_deadline_})
    if (deadline) next = std::min(next, *deadline);
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void Supervisor::loop(const std::function<void(const Running&)>& started) {
  bool told = false;
  while (!finished()) {
    std::array<pollfd, 9> polls = {pollfd{signals_.get(), POLLIN, 0},     pollfd{pipes_[0].get(), POLLIN, 0},
                                   pollfd{pipes_[1].get(), POLLIN, 0},    pollfd{needed_, POLLIN, 0},
                                   pollfd{report_pipe_.get(), POLLIN, 0}, pollfd{console_.get(), POLLIN, 0}};
    std::fill(polls.begin() + kInputPolls, polls.end(), pollfd{-1, 0, 0});
    if (input_) std::ranges::copy(input_->polls(), polls.begin() + kInputPolls);
    if (::poll(polls.data(), polls.size(), poll_timeout()) < 0) continue;
    if (polls[5].revents != 0) take_terminal();
    if (input_) input_->take(polls.data() + kInputPolls);
    if (polls[4].revents != 0) read_report();
    if (polls[0].revents != 0) read_signals();
    for (std::size_t stream = 0; stream < pipes_.size(); ++stream)
      if (polls[stream + 1].revents != 0) read_output(stream);
    if (polls[3].revents != 0) desert();
    check_deadlines();
    if (running_ && !told) {
      told = true;
      started(*running_);
    }
  }
}

/// The runtime wrote nothing to its own standard output, which the container's terminal takes the place of.
void Supervisor::take_terminal() {
  const UniqueFd connection(::accept4(console_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  auto terminal = receive_descriptor(connection.get());
  UniqueFd sink(::fcntl(terminal.get(), F_DUPFD_CLOEXEC, 0));
  if (!sink.valid()) return;
  console_.reset();
  input_->begin(std::move(sink), true);
  pipes_[0] = std::move(terminal);
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD)
      reap();
    else
      stop(info.ssi_signo == SIGUSR1);
  }
}

void Supervisor::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == runtime_)
      runtime_ended(status);
    else if (pid == init_)
      container_ended(status);
    else if (init_ == 0)
      orphans_[pid] = status;
  }
  // The container may have ended before the runtime did, and so before it was known by its id.
  if (const auto early = orphans_.find(init_); init_ != 0 && early != orphans_.end() && !wait_status_)
    container_ended(early->second);
}

void Supervisor::runtime_ended(int status) {
  runtime_ = 0;
  if (start_failed_) return;
  runtime_status_ = status;
  const auto text = task_.read(kPidFile);
  if (text) std::from_chars(text->data(), text->data() + text->size(), init_);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || init_ <= 0) {
    init_ = 0;
    give_up_start();
    return;
  }
  if (stop_requested_ || deserted_) ::kill(init_, SIGKILL);
  read_report();
}

/// The container runs when its command does, which the init tells.
void Supervisor::read_report() {
  std::array<char, 256> buffer;
  ssize_t count = 0;
  while ((count = ::read(report_pipe_.get(), buffer.data(), buffer.size())) > 0)
    report_.append({buffer.data(), static_cast<std::size_t>(count)});
  if (count == 0) report_pipe_.reset();
  if (start_failed_ || running_ || init_ == 0) return;
  if (report_.failure()) {
    failure_ = report_.failure();
    give_up_start();
  } else if (report_.running()) {
    began();
  }
}

void Supervisor::began() {
  start_deadline_.reset();
  running_ = Running{init_, wall_clock()};
  error_tail_.clear();
  if (stop_requested_) signal_stop();
}

void Supervisor::give_up_start() {
  start_failed_ = true;
  start_deadline_.reset();
  if (const auto killed = cgroup_.kill_all(); !killed) failure_ = killed.error();
  drain_deadline_ = Clock::now() + kDrainTimeout;
}

Error Supervisor::start_failure() const {
  const auto log = task_.read(kRuntimeLog);
  return explain_runtime_failure(spec_.runtime, last_word(log ? *log : "", error_tail_), runtime_status_);
}

void Supervisor::container_ended(int status) {
  read_report();
  if (start_failed_) return;
  if (!running_) began();  // it was ended before it could say so
  wait_status_ = status;
  kill_deadline_.reset();
  out_of_memory_ = cgroup_.out_of_memory_kills() > 0;
  // The kernel ends a PID namespace with its first process: nobody should be left.
  (void)cgroup_.kill_all();
  drain_deadline_ = Clock::now() + kDrainTimeout;
}

void Supervisor::stop(bool force) {
  stop_requested_ = true;
  if (wait_status_ || start_failed_) return;
  if (init_ == 0) {
    // Not started yet: it is killed as soon as it is, and a runtime that hangs is not waited for.
    start_deadline_ = std::min(start_deadline_.value_or(Clock::time_point::max()),
                               deadline_after(force ? std::chrono::milliseconds(0) : spec_.grace));
    return;
  }
  if (force) {
    ::kill(init_, SIGKILL);
  } else if (!kill_deadline_) {
    kill_deadline_ = deadline_after(spec_.grace);
    // Before the init has begun, the runtime's own beginning would take the signal as its end.
    if (running_) signal_stop();
  }
}

/// The init hands it to all processes of the container.
void Supervisor::signal_stop() {
  ::kill(init_, SIGTERM);
}

void Supervisor::desert() {
  needed_ = -1;
  if (wait_status_ || start_failed_) return;
  deserted_ = true;
  if (init_ != 0) ::kill(init_, SIGKILL);
}

void Supervisor::check_deadlines() {
  const auto passed = [time = Clock::now()](const std::optional<Clock::time_point>& deadline) {
    return deadline && time >= *deadline;
  };
  if (passed(start_deadline_)) {
    start_deadline_.reset();
    failure_ = Error{ErrorKind::kTimeout,
                     stop_requested_ ? "The task was stopped before its container had started"
                                     : fmt::format("'{}' did not start the container within {}",
                                                   spec_.runtime, format_duration(spec_.start_timeout)),
                     stop_requested_ ? "" : "'drover doctor' tries the runtime", ""};
    if (runtime_ > 0) ::kill(-runtime_, SIGKILL);
    give_up_start();
  }
  if (passed(kill_deadline_)) {
    kill_deadline_.reset();
    ::kill(init_, SIGKILL);
  }
  if (passed(drain_deadline_))
    for (auto& pipe : pipes_) pipe.reset();
}

void Supervisor::read_output(std::size_t stream) {
  std::array<char, 65536> buffer;
  const auto count = ::read(pipes_[stream].get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    pipes_[stream].reset();
    return;
  }
  const std::string_view output(buffer.data(), static_cast<std::size_t>(count));
  logs_[stream].append(output);
  if (stream != 1 || running_) return;
  error_tail_ += output;
  if (error_tail_.size() > kErrorTail) error_tail_.erase(0, error_tail_.size() - kErrorTail);
}

Ending Supervisor::ending() const {
  Ending ending;
  ending.stopped = stop_requested_;
  ending.finished_at = wall_clock();
  if (WIFSIGNALED(*wait_status_)) {
    say_signal(ending, WTERMSIG(*wait_status_));
  } else if (report_.signal()) {
    say_signal(ending, *report_.signal());
  } else {
    ending.exit_status = WEXITSTATUS(*wait_status_);
  }
  if (deserted_ && WIFSIGNALED(*wait_status_)) ending.message = needed_for_;
  if (out_of_memory_ && ending.exit_status != 0) say_out_of_memory(ending);
  return ending;
}

}  // namespace drover::container
