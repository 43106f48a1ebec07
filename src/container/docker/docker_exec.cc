#include "container/docker/docker_exec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/fd.h"
#include "base/json_text.h"
#include "base/spawn.h"
#include "container/docker/frames.h"
#include "container/exec_mark.h"
#include "container/init.h"
#include "container/runtime_failure.h"

namespace drover::container::docker {
namespace {

using nlohmann::json;

constexpr std::size_t kExecPiece = 32 << 10;
constexpr auto kExitPatience = std::chrono::seconds(10);
constexpr auto kExitPoll = std::chrono::milliseconds(10);
constexpr auto kHeldPoll = std::chrono::milliseconds(3);
/// After that a command that is held is looked for less often.
constexpr auto kUsualStart = std::chrono::seconds(2);
constexpr auto kLateHeldPoll = std::chrono::milliseconds(50);
/// In place of output, when the command could not be started.
constexpr std::string_view kRuntimeWord = "OCI runtime exec failed";

/// The init enters the container's working folder as the user, which the engine would do as root.
std::vector<std::string> exec_words(const ExecRequest& request, const ContainerState& container, bool held) {
  return direct_arguments(container.entrypoint, request.command, held)
      .value_or(request.command);  // of an earlier version
}

json exec_body(const ExecRequest& request, const ContainerState& container, const std::string& id,
               bool held) {
  auto environment = request.environment;
  if (request.tty) environment.try_emplace("TERM", "xterm");
  environment[kExecMarker] = id;
  auto assignments = json::array();
  for (const auto& [name, value] : environment) assignments.push_back(name + "=" + value);
  return {{"AttachStdin", true},
          {"AttachStdout", true},
          {"AttachStderr", true},
          {"Tty", request.tty},
          {"Cmd", exec_words(request, container, held)},
          {"Env", std::move(assignments)},
          {"WorkingDir", "/"}};
}

Result<Pipe> nonblocking_pipe() {
  DROVER_TRY(auto pipe, make_pipe());
  for (const auto* end : {&pipe.read, &pipe.write}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

class DockerExec final : public ExecProcess {
 public:
  DockerExec(Engine engine, std::string exec, std::string mark, std::optional<Cgroup> cgroup, bool held,
             bool tty, Exchange stream)
      : engine_(std::move(engine)),
        exec_(std::move(exec)),
        mark_(std::move(mark)),
        cgroup_(std::move(cgroup)),
        held_(held),
        tty_(tty),
        stream_(std::move(stream)) {}

  ~DockerExec() override {
    leaving_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
    kill();
  }
  DockerExec(const DockerExec&) = delete;
  DockerExec& operator=(const DockerExec&) = delete;

  Status begin(int rows, int columns) {
    DROVER_TRY(input_, nonblocking_pipe());
    for (auto& output : outputs_) {
      DROVER_TRY(output.pipe, nonblocking_pipe());
    }
    wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    ended_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_.valid() || !ended_.valid()) return fail_errno("Failed to follow a command", errno);
    if (tty_) size_ = size_of(rows, columns);
    thread_ = std::thread([this] { carry(); });
    return {};
  }

  int input() const override { return input_.write.get(); }
  int output() const override { return outputs_[0].pipe.read.get(); }
  int errors() const override { return tty_ ? -1 : outputs_[1].pipe.read.get(); }
  void close_input() override { input_.write.reset(); }
  Status resize(int rows, int columns) override {
    if (!tty_) return {};
    size_ = size_of(rows, columns);
    wake();
    return {};
  }
  int process() const override { return ended_.get(); }
  Result<int> wait() override {
    done_.wait(false);
    return outcome_;
  }
  void kill() override {
    if (cgroup_) kill_exec(*cgroup_, mark_);
  }

 private:
  struct Output {
    Pipe pipe;
    std::string pending;
  };

  static std::uint64_t size_of(int rows, int columns) {
    return static_cast<std::uint64_t>(rows) << 32 | static_cast<std::uint32_t>(columns);
  }
  void wake() {
    if (wake_.valid()) ::eventfd_write(wake_.get(), 1);
  }

  // What follows is the thread's.

  void carry() {
    if (held_) let_go();
    while (!leaving_ && !(stream_ended_ && outputs_[0].pending.empty() && outputs_[1].pending.empty())) {
      if (const auto size = size_.exchange(0); size != 0)
        (void)engine_.resize_exec(exec_, static_cast<int>(size >> 32), static_cast<int>(size & 0xffff'ffff));
      carry_once();
    }
    if (!leaving_) outcome_ = find_outcome();
    for (auto& output : outputs_) output.pipe.write.reset();
    done_ = true;
    done_.notify_all();
    ::eventfd_write(ended_.get(), 1);
  }

  /// Nothing comes of the command before, unless the engine could not start it. However long a loaded machine
  /// takes to start it: what is held waits for nothing else. For a while also when nobody wants it any more,
  /// since what is still held could not be ended.
  void let_go() {
    const auto begun = std::chrono::steady_clock::now();
    std::optional<std::chrono::steady_clock::time_point> deadline;
    while (!enclose_exec(*cgroup_, mark_)) {
      const auto now = std::chrono::steady_clock::now();
      if (leaving_ && !deadline) deadline = now + kExitPatience;
      if (deadline && now > *deadline) return;
      pollfd said{stream_.fd(), POLLIN, 0};
      const auto pause = now - begun < kUsualStart ? kHeldPoll : kLateHeldPoll;
      if (::poll(&said, 1, static_cast<int>(pause.count())) <= 0) continue;
      if (const auto state = engine_.inspect_exec(exec_); !state || !state->running) return;
      std::this_thread::sleep_for(pause);
    }
  }

  void carry_once() {
    const bool room = outputs_[0].pending.size() + outputs_[1].pending.size() < kExecPiece;
    const auto wanted = static_cast<short>((room ? POLLIN : 0) | (to_send_.empty() ? 0 : POLLOUT));
    const auto writable = [this](std::size_t i) {
      const bool any = !outputs_[i].pending.empty() && !withheld();
      return pollfd{any ? outputs_[i].pipe.write.get() : -1, POLLOUT, 0};
    };
    std::array<pollfd, 5> polls = {
        pollfd{wake_.get(), POLLIN, 0}, pollfd{stream_ended_ || wanted == 0 ? -1 : stream_.fd(), wanted, 0},
        pollfd{to_send_.empty() ? input_.read.get() : -1, POLLIN, 0}, writable(0), writable(1)};
    if (::poll(polls.data(), polls.size(), -1) < 0) return;
    eventfd_t ignored = 0;
    if (polls[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
    if ((polls[1].revents & POLLOUT) != 0) send();
    if ((polls[1].revents & ~POLLOUT) != 0) receive();
    if (polls[2].revents != 0) read_input();
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (polls[i + 3].revents != 0) write_output(outputs_[i]);
  }

  /// Whether all that has come is the runtime's word, which is told as an Error at the end.
  bool withheld() const {
    return !wrote_any_ && !stream_ended_ &&
           kRuntimeWord.starts_with(std::string_view(outputs_[0].pending).substr(0, kRuntimeWord.size()));
  }

  void receive() {
    const auto received = stream_.receive();
    const auto bytes = stream_.take();
    if (tty_)
      outputs_[0].pending += bytes;
    else if (!frames_.feed(bytes,
                           [this](std::size_t i, std::string_view part) { outputs_[i].pending += part; }))
      stream_ended_ = true;
    if (!received || stream_.ended()) stream_ended_ = true;
    if (!stream_ended_ || wrote_any_ || !outputs_[0].pending.starts_with(kRuntimeWord)) return;
    refused_ = std::exchange(outputs_[0].pending, {});
  }

  void send() {
    const auto sent = stream_.send(to_send_);
    if (!sent) to_send_.clear();
    if (sent) to_send_.erase(0, *sent);
  }

  void read_input() {
    std::array<char, kExecPiece> buffer;
    const auto count = ::read(input_.read.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) {
      to_send_.assign(buffer.data(), static_cast<std::size_t>(count));
      return;
    }
    input_.read.reset();
    stream_.finish_sending();
  }

  void write_output(Output& output) {
    const auto count = ::write(output.pipe.write.get(), output.pending.data(), output.pending.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    wrote_any_ = true;
    if (count < 0) output.pending.clear();  // nobody reads it any more
    if (count > 0) output.pending.erase(0, static_cast<std::size_t>(count));
  }

  /// The engine may say for a moment that a command runs whose output has ended.
  Result<int> find_outcome() const {
    const auto deadline = std::chrono::steady_clock::now() + kExitPatience;
    while (true) {
      DROVER_TRY(const auto state, engine_.inspect_exec(exec_));
      if (!state.running && !refused_.empty()) return Failure(explain_runtime_failure("Docker", refused_));
      if (!state.running) return state.exit_code;
      if (std::chrono::steady_clock::now() > deadline || leaving_)
        return fail(ErrorKind::kTimeout, "The Docker Engine does not say how the command ended");
      std::this_thread::sleep_for(kExitPoll);
    }
  }

  const Engine engine_;
  const std::string exec_;
  const std::string mark_;
  const std::optional<Cgroup> cgroup_;
  const bool held_;
  const bool tty_;
  Exchange stream_;
  FrameReader frames_;
  Pipe input_;
  std::array<Output, 2> outputs_;
  std::string to_send_;
  std::string refused_;  ///< what the runtime said when it could not start the command
  bool stream_ended_ = false;
  bool wrote_any_ = false;
  UniqueFd wake_;   ///< eventfd: look again
  UniqueFd ended_;  ///< eventfd: outcome_ is there
  Result<int> outcome_ = fail(ErrorKind::kConflict, "The command was let go of before it ended");
  std::atomic<std::uint64_t> size_{0};  ///< of the terminal, when it is to be changed: rows and columns
  std::atomic<bool> leaving_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ExecProcess>> start_docker_exec(const Engine& engine, const ContainerState& container,
                                                       std::optional<Cgroup> cgroup,
                                                       const ExecRequest& request) {
  if (request.command.empty() || request.command.front().empty())
    return fail(ErrorKind::kInvalid, "There is no command to run", "write it after '--'", "/command");
  const auto mark = next_exec_id();
  const bool held = cgroup && can_hold(container.entrypoint);
  const auto body = exec_body(request, container, mark, held);
  DROVER_TRY(const auto exec, engine.create_exec(container.id, to_text(body)));
  DROVER_TRY(auto stream, engine.start_exec(exec, request.tty));
  auto made = std::make_unique<DockerExec>(engine, exec, mark, std::move(cgroup), held, request.tty,
                                           std::move(stream));
  DROVER_CHECK_OK(made->begin(request.rows, request.columns));
  return made;
}

}  // namespace drover::container::docker
