#include "container/exec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/fd.h"
#include "base/json_text.h"
#include "base/pidfd.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/units.h"
#include "container/containerizer.h"
#include "container/exec_mark.h"
#include "container/init.h"
#include "container/oom_score.h"
#include "container/runtime_failure.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr std::size_t kKeptOutput = 4096;
constexpr int kReadsAtOnce = 32;  // more than a pipe holds: who writes without end does not hold us up

std::string process_file(const std::string& id) {
  return fmt::format("exec.{}.json", id);
}
std::string pid_file(const std::string& id) {
  return fmt::format("exec.{}.pid", id);
}
std::string log_file(const std::string& id) {
  return fmt::format("exec.{}.log", id);
}

/// The container's own process, as its bundle has it, with another command.
Result<json> process_of(const Directory& task, const ExecRequest& request, const std::string& id) {
  DROVER_TRY(const auto bundle, task.subdirectory(kBundle));
  DROVER_TRY(const auto text, bundle.read(kConfiguration));
  DROVER_TRY(auto specification, parse_json(text, "The container's specification"));
  auto process = specification["process"];
  const auto first = process["args"].get<std::vector<std::string>>();
  if (const auto arguments = direct_arguments(first, request.command)) {
    process["args"] = *arguments;
  } else {  // of a container that an earlier version started, whose folder only the runtime could enter, as
            // root
    process["args"] = request.command;
    process["cwd"] = "/";
  }
  process["terminal"] = request.tty;
  if (request.tty) process["consoleSize"] = {{"height", request.rows}, {"width", request.columns}};
  std::map<std::string, std::string> variables;
  for (const auto& entry : process["env"]) {
    const auto assignment = entry.get<std::string>();
    const auto equals = assignment.find('=');
    variables[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  if (request.tty) variables.try_emplace("TERM", "xterm");
  for (const auto& [name, value] : request.environment) variables[name] = value;
  variables[kExecMarker] = id;
  auto assignments = json::array();
  for (const auto& [name, value] : variables) assignments.push_back(name + "=" + value);
  process["env"] = std::move(assignments);
  return process;
}

/// What gives the runtime, and so all that it starts, the score of the container. None when it has that.
std::vector<std::string> before_runtime(const std::string& drover, const json& process) {
  const int score = process.value("oomScoreAdj", 0);
  if (score <= own_oom_score_adj()) return {};
  return {drover, kWithOomScore, std::to_string(score)};
}

Status set_size(int terminal, int rows, int columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(std::clamp(rows, 1, 10'000));
  size.ws_col = static_cast<unsigned short>(std::clamp(columns, 1, 10'000));
  if (::ioctl(terminal, TIOCSWINSZ, &size) != 0) return fail_errno("Failed to resize the terminal", errno);
  return {};
}

void make_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

Result<Spawned> start_runtime(const std::vector<std::string>& words, const ChildDescriptors& descriptors) {
  return spawn({.program = words.front(), .arguments = words, .environment = minimal_environment()},
               descriptors);
}

/// A runtime that joined a container, and the command that it waits for.
class Joined final : public ExecProcess {
 public:
  Joined(Directory task, std::string id, std::string runtime, Cgroup cgroup);
  ~Joined() override;
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  int input() const override { return tty_ ? terminal_.get() : input_.get(); }
  int output() const override { return tty_ ? terminal_.get() : output_.get(); }
  int errors() const override { return tty_ ? -1 : errors_.get(); }
  void close_input() override;
  Status resize(int rows, int columns) override;
  int process() const override { return runtime_process_.process.get(); }
  Result<int> wait() override;
  void kill() override;

 private:
  friend class ExecStarter;

  Directory task_;
  std::string id_;
  std::string runtime_;
  Cgroup cgroup_;
  bool tty_ = false;
  UniqueFd input_, output_, errors_, terminal_;
  Spawned runtime_process_;  ///< waits for the command
  std::optional<int> wait_status_;
};

class ExecStarter {
 public:
  static Result<std::unique_ptr<ExecProcess>> start(const Directory& task, const std::string& task_id,
                                                    const ExecPrograms& programs, Cgroup cgroup,
                                                    const ExecRequest& request) {
    const auto id = next_exec_id();
    DROVER_TRY(const auto joining, lock_joining(task));
    DROVER_TRY(auto folder, Directory::open(task.path()));
    // A daemon before this one may have had this process id.
    for (const auto& name : {pid_file(id), log_file(id)}) DROVER_CHECK_OK(folder.remove_tree(name));
    DROVER_CHECK_OK(cgroup.child(exec_group(id)).create());
    DROVER_TRY(const auto process, process_of(task, request, id));
    DROVER_CHECK_OK(replace_file(task, process_file(id), to_text(process)));
    auto made = std::make_unique<Joined>(std::move(folder), id, programs.runtime, std::move(cgroup));
    made->tty_ = request.tty;
    auto words = before_runtime(programs.drover, process);
    const auto file = [&](const std::string& name) { return task.path() + "/" + name; };
    words.insert(words.end(), {programs.runtime, "--root", file(kRuntimeState), "--log", file(log_file(id)),
                               "--log-format", "json", "exec", "--cgroup", exec_group(id), "--process",
                               file(process_file(id)), "--pid-file", file(pid_file(id)), task_id});
    DROVER_TRY(made->runtime_process_, request.tty ? with_terminal(*made, words, request, joining.get())
                                                   : with_pipes(*made, words, joining.get()));
    return made;
  }

 private:
  static Result<Spawned> with_pipes(Joined& made, const std::vector<std::string>& words, int joining) {
    ChildDescriptors descriptors;
    DROVER_TRY(auto pipes, give_standard_pipes(descriptors, joining));
    made.input_ = std::move(pipes.input.write);
    made.output_ = std::move(pipes.output.read);
    made.errors_ = std::move(pipes.errors.read);
    for (const auto* ours : {&made.input_, &made.output_, &made.errors_}) make_nonblocking(ours->get());
    return start_runtime(words, descriptors);
  }

  /// The runtime has its own pair inside, and carries between the two.
  static Result<Spawned> with_terminal(Joined& made, const std::vector<std::string>& words,
                                       const ExecRequest& request, int joining) {
    made.terminal_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 64> name{};
    if (!made.terminal_.valid() || ::grantpt(made.terminal_.get()) != 0 ||
        ::unlockpt(made.terminal_.get()) != 0 ||
        ::ptsname_r(made.terminal_.get(), name.data(), name.size()) != 0)
      return fail_errno("Failed to create a terminal", errno);
    DROVER_CHECK_OK(set_size(made.terminal_.get(), request.rows, request.columns));
    make_nonblocking(made.terminal_.get());
    ChildDescriptors descriptors;
    // Opened by the leader of a new session, it becomes the terminal of that session.
    descriptors.open(name.data(), STDIN_FILENO);
    descriptors.give(STDIN_FILENO, STDOUT_FILENO);
    descriptors.give(STDIN_FILENO, STDERR_FILENO);
    descriptors.close_others(joining);
    return start_runtime(words, descriptors);
  }
};

Joined::Joined(Directory task, std::string id, std::string runtime, Cgroup cgroup)
    : task_(std::move(task)), id_(std::move(id)), runtime_(std::move(runtime)), cgroup_(std::move(cgroup)) {}

Joined::~Joined() {
  if (runtime_process_.pid > 0) {
    kill();
    if (!wait_status_) (void)::waitpid(runtime_process_.pid, nullptr, 0);
    cgroup_.child(exec_group(id_)).remove();
  }
  for (const auto& name : {process_file(id_), pid_file(id_), log_file(id_)}) (void)task_.remove_tree(name);
}

void Joined::close_input() {
  input_.reset();
}

Status Joined::resize(int rows, int columns) {
  if (!tty_) return {};
  return set_size(terminal_.get(), rows, columns);
}

Result<int> Joined::wait() {
  if (!wait_status_) {
    int status = 0;
    while (::waitpid(runtime_process_.pid, &status, 0) < 0 && errno == EINTR) continue;
    wait_status_ = status;
  }
  // Without a process id the runtime has not come so far as to start anything.
  if (!task_.exists(pid_file(id_))) {
    const auto log = task_.read(log_file(id_));
    return Failure(explain_runtime_failure(runtime_, last_word(log ? *log : "", ""), wait_status_));
  }
  return WIFEXITED(*wait_status_) ? WEXITSTATUS(*wait_status_) : 128 + WTERMSIG(*wait_status_);
}

void Joined::kill() {
  kill_exec(cgroup_, id_);
  if (wait_status_) return;  // the runtime has gone, and starts nothing more
  send_signal(runtime_process_.process, SIGKILL);
  // It may just have been about to start the command.
  kill_exec(cgroup_, id_);
}

}  // namespace

Result<std::unique_ptr<ExecProcess>> start_exec(const Directory& task, const std::string& task_id,
                                                const ExecPrograms& programs, Cgroup cgroup,
                                                const ExecRequest& request) {
  if (request.command.empty() || request.command.front().empty())
    return fail(ErrorKind::kInvalid, "There is no command to run", "write it after '--'", "/command");
  if (!task.exists(kBundle) || cgroup.processes().empty())
    return fail(ErrorKind::kConflict, fmt::format("Task '{}' does not run", task_id),
                "'drover ps' shows what does");
  return ExecStarter::start(task, task_id, programs, std::move(cgroup), request);
}

Result<std::unique_ptr<ExecProcess>> Containerizer::exec(const std::string&, const ExecRequest&) {
  return fail(ErrorKind::kUnsupported, "Commands cannot be run in containers of this kind");
}

Result<UniqueFd> Containerizer::connect_input(const std::string&) {
  return fail(ErrorKind::kUnsupported, "Containers of this kind take no input");
}

Result<CommandOutcome> await_command(ExecProcess& process, std::chrono::milliseconds timeout) {
  process.close_input();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  CommandOutcome outcome;
  const auto drain = [&](int fd) {
    std::array<char, 4096> buffer;
    for (int reads = 0; reads < kReadsAtOnce; ++reads) {
      const auto count = ::read(fd, buffer.data(), buffer.size());
      if (count <= 0) return count == 0;  // its end
      outcome.output.append(buffer.data(), static_cast<std::size_t>(count));
      if (outcome.output.size() > 2 * kKeptOutput)
        outcome.output.erase(0, outcome.output.size() - kKeptOutput);
    }
    return false;
  };
  std::array<bool, 2> ended{};
  while (true) {
    std::array<pollfd, 3> polls = {pollfd{process.process(), POLLIN, 0},
                                   pollfd{ended[0] ? -1 : process.output(), POLLIN, 0},
                                   pollfd{ended[1] ? -1 : process.errors(), POLLIN, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      process.kill();
      return fail(ErrorKind::kTimeout,
                  fmt::format("the command took longer than {}", format_duration(timeout)));
    }
    (void)::poll(polls.data(), polls.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    for (std::size_t i = 0; i < ended.size(); ++i)
      if (polls[i + 1].revents != 0) ended[i] = drain(polls[i + 1].fd);
    if (polls[0].revents == 0) continue;
    // What it wrote last is there when it has ended.
    for (const int fd : {process.output(), process.errors()}) drain(fd);
    DROVER_TRY(outcome.exit_status, process.wait());
    return outcome;
  }
}

}  // namespace drover::container
