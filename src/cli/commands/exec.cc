// `drover exec`: a command in the container of a task that runs, with our input and outputs or our terminal.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/files.h"
#include "base/frames.h"
#include "cli/commands/commands.h"
#include "cli/line.h"
#include "cli/terminal.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr int kCannotRun = 126;
constexpr int kNoSuchCommand = 127;
constexpr std::chrono::seconds kLongestStart{60};
constexpr std::chrono::milliseconds kStartAsked{200};

struct ExecOptions {
  std::string task;
  bool interactive = false;
  bool tty = false;
  std::vector<std::string> environment;
};

Error still_starting(const std::string& task, const json& record) {
  const auto reason = record.value("reason", "");
  return {ErrorKind::kTimeout,
          fmt::format("The task '{}' has not started within {} s{}", task, kLongestStart.count(),
                      reason.empty() ? "" : ": " + reason),
          fmt::format("'drover explain {}' says how far it is; try again when it runs", task), ""};
}

/// What the last frame says. A command that could not be started is told as shells tell it.
int status_of(const std::string& end) {
  const auto value = json::parse(end, nullptr, false);
  if (value.is_object() && value.contains("exit_status")) return value.at("exit_status").get<int>();
  const auto error = value.is_object() ? value.value("error", json::object()) : json::object();
  const auto kind = error_kind_from_name(error.value("kind", ""));
  report_error({kind, error.value("message", "The command was lost"), error.value("hint", ""), ""});
  if (kind == ErrorKind::kNotFound) return kNoSuchCommand;
  return kind == ErrorKind::kPermissionDenied ? kCannotRun : kNotRun;
}

/// Carries between our descriptors and the connection, until the command has ended.
class Exchange {
 public:
  Exchange(Upgraded connection, bool interactive, bool tty)
      : connection_(std::move(connection)), reads_input_(interactive), tty_(tty) {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGWINCH, SIGTERM, SIGHUP, SIGINT}) ::sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // the terminal must be set back first
    signals_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    parser_.append(connection_.rest);
  }

  Result<int> run() {
    if (!reads_input_) send(to_daemon::kInput, "");
    while (true) {
      DROVER_TRY(const auto status, take_frames());
      if (status) return *status;
      std::array<pollfd, 3> polls = {pollfd{connection_.socket.get(), POLLIN, 0},
                                     pollfd{signals_.get(), POLLIN, 0},
                                     pollfd{reads_input_ ? STDIN_FILENO : -1, POLLIN, 0}};
      if (::poll(polls.data(), polls.size(), -1) < 0) continue;
      if (polls[1].revents != 0) DROVER_CHECK_OK(take_signals());
      if (polls[2].revents != 0) pass_on_input();
      if (polls[0].revents != 0) DROVER_CHECK_OK(receive());
    }
  }

 private:
  /// A daemon that hears no more has said how the command ended, which is still to be read, or is gone, which
  /// reading tells too.
  void send(char channel, std::string_view payload) {
    if (!write_all(connection_.socket.get(), to_text(Frame{channel, std::string(payload)}),
                   "the connection to the daemon"))
      reads_input_ = false;
  }

  Status receive() {
    std::array<char, 65536> buffer;
    const auto count = ::read(connection_.socket.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return {};
    if (count <= 0) return fail(ErrorKind::kUnavailable, "Lost the connection to the daemon");
    parser_.append({buffer.data(), static_cast<std::size_t>(count)});
    return {};
  }

  void pass_on_input() {
    std::array<char, 32768> buffer;
    const auto count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) reads_input_ = false;
    send(to_daemon::kInput, {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
  }

  Status take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo != SIGWINCH)
        return fail(ErrorKind::kUnavailable, "Interrupted: the command has been ended");
      if (tty_) send(to_daemon::kResize, terminal_size().dump());
    }
    return {};
  }

  Result<std::optional<int>> take_frames() {
    while (const auto frame = parser_.next()) {
      if (frame->channel == from_daemon::kEnd) return status_of(frame->payload);
      // Who does not want to see the output any more does not want the command either.
      DROVER_CHECK_OK(write_all(frame->channel == from_daemon::kErrors ? STDERR_FILENO : STDOUT_FILENO,
                                frame->payload, "the output"));
    }
    return std::nullopt;
  }

  Upgraded connection_;
  bool reads_input_;
  bool tty_;
  UniqueFd signals_;
  FrameParser parser_;
};

/// A task that starts is waited for: its files may have to be brought first.
Result<Upgraded> connect(const Client& client, const std::string& task, const json& body) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestStart;
  for (bool told = false;;) {
    auto connection = client.upgrade(task_target(task, "/exec"), body, "drover-exec");
    if (connection || connection.error().kind != ErrorKind::kConflict) return connection;
    const auto record = client.get(task_target(task));
    const auto state = record ? record->value("state", "") : "";
    // It may have begun to run since.
    if (state != "starting" && state != "running") return connection;
    if (std::chrono::steady_clock::now() > deadline) return Failure(still_starting(task, *record));
    if (!std::exchange(told, true))
      report(fmt::format("waiting for '{}' to start, {} s at most", task, kLongestStart.count()));
    std::this_thread::sleep_for(kStartAsked);
  }
}

Result<int> exchange(Context& context, const ExecOptions& options) {
  if (context.command.empty())
    return fail(ErrorKind::kInvalid, "There is no command to run",
                "write for example: drover exec -it TASK bash");
  if (options.tty && ::isatty(STDIN_FILENO) == 0)
    return fail(ErrorKind::kInvalid, "-t needs a terminal as standard input", "leave it out in scripts");
  json body = {{"command", context.command}, {"tty", options.tty}, {"env", json::object()}};
  if (options.tty) {
    body.update(terminal_size());
    if (const char* term = ::getenv("TERM"); term != nullptr) body["env"]["TERM"] = term;
  }
  for (const auto& assignment : options.environment) {
    const auto equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos)
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is not NAME=VALUE", assignment));
    body["env"][assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  DROVER_TRY(auto connection, connect(context.client(), options.task, body));
  Exchange exchange(std::move(connection), options.interactive, options.tty);
  std::optional<RawTerminal> raw;
  if (options.tty) raw.emplace();
  return exchange.run();
}

Result<int> exec(Context& context, const ExecOptions& options) {
  auto status = exchange(context, options);
  if (status || status.error().kind == ErrorKind::kInvalid) return status;
  report_error(status.error());
  return kNotRun;
}

}  // namespace

void add_exec(CLI::App& app, Context& context) {
  auto options = std::make_shared<ExecOptions>();
  auto* command = app.add_subcommand("exec", "Run a command in the container of a task that runs");
  command->add_option("task", options->task, "Id or name of the task")->required()->type_name("TASK");
  command->add_flag("-i,--interactive", options->interactive, "Pass standard input on");
  command->add_flag("-t,--tty", options->tty, "Give the command a terminal");
  command->add_option("-e,--env", options->environment, "Set a variable, beside the task's own")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("command")->description("What to run in it")->type_name(kCommandType);
  on_call(command, context, options, exec);
}

}  // namespace drover::cli
