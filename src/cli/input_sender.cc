#include "cli/input_sender.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/files.h"
#include "base/ids.h"
#include "cli/context.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr int kRetryMs = 300;

std::string new_session() {
  std::random_device random;
  const auto half = [&] { return static_cast<std::uint64_t>(random()) << 32 | random(); };
  const auto high = half();
  return uuid_of(high, half());
}

void send_frame(int socket, const Frame& frame) {
  // A connection that is lost is found so by reading.
  (void)write_all(socket, to_text(frame), "the connection to the daemon");
}

}  // namespace

InputSender::InputSender(Client client, std::string task, InputOptions options)
    : client_(std::move(client)),
      task_(std::move(task)),
      options_(std::move(options)),
      session_(new_session()),
      begun_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      quit_(::eventfd(0, EFD_CLOEXEC)) {
  sigset_t resizes;
  ::sigemptyset(&resizes);
  ::sigaddset(&resizes, SIGWINCH);
  ::pthread_sigmask(SIG_BLOCK, &resizes, nullptr);
  resized_.reset(::signalfd(-1, &resizes, SFD_CLOEXEC | SFD_NONBLOCK));
  thread_ = std::thread([this] { run(); });
}

InputSender::~InputSender() {
  ::eventfd_write(quit_.get(), 1);
  thread_.join();
}

void InputSender::begin() {
  ::eventfd_write(begun_.get(), 1);
}

bool InputSender::wait_for_begin() {
  std::array<pollfd, 2> polls = {pollfd{quit_.get(), POLLIN, 0}, pollfd{begun_.get(), POLLIN, 0}};
  while (::poll(polls.data(), polls.size(), -1) < 0) {
  }
  return polls[0].revents == 0;
}

void InputSender::run() {
  while (wait_for_begin()) {
    auto connection = connect();
    if (connection && converse(std::move(*connection)) == Next::kEnd) return;
    if (!connection && connection.error().kind == ErrorKind::kUnsupported) {
      report_error(connection.error());
      return;
    }
    pollfd quit{quit_.get(), POLLIN, 0};
    if (::poll(&quit, 1, kRetryMs) > 0) return;
  }
}

Result<Upgraded> InputSender::connect() const {
  return client_.upgrade(task_target(task_, "/input"), json::object(), "drover-input");
}

InputSender::Next InputSender::converse(Upgraded connection) {
  const int socket = connection.socket.get();
  greet(socket);
  FrameParser parser;
  parser.append(connection.rest);
  while (true) {
    while (const auto frame = parser.next())
      if (!handle(*frame, socket)) return Next::kEnd;
    const bool reads = options_.reads && greeted_ && !ended_ && unsent_.has_room();
    std::array<pollfd, 4> polls = {pollfd{quit_.get(), POLLIN, 0}, pollfd{socket, POLLIN, 0},
                                   pollfd{options_.is_terminal ? resized_.get() : -1, POLLIN, 0},
                                   pollfd{reads ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(polls.data(), polls.size(), -1) < 0) continue;
    if (polls[0].revents != 0) return Next::kEnd;
    if (polls[2].revents != 0) send_size(socket);
    if (polls[3].revents != 0) read_input(socket);
    if (keys_.pressed()) {
      raw_.reset();
      options_.left();
      return Next::kEnd;
    }
    if (polls[1].revents == 0) continue;
    std::array<char, 4096> buffer;
    const auto count = ::read(socket, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Next::kAgain;
    parser.append({buffer.data(), static_cast<std::size_t>(count)});
  }
}

/// What was not taken is sent when the task has said how much it was.
void InputSender::greet(int socket) {
  greeted_ = false;
  send_frame(socket, {to_daemon::kSession, session_});
  if (!options_.is_terminal) return;
  if (!raw_ && options_.reads) raw_.emplace();
  if (auto size = terminal_size(); options_.redraw) {  // programs draw anew when the size has changed
    size["rows"] = size["rows"].get<int>() + 1;
    send_frame(socket, {to_daemon::kResize, size.dump()});
  }
  send_frame(socket, {to_daemon::kResize, terminal_size().dump()});
}

void InputSender::send_size(int socket) {
  signalfd_siginfo info{};
  while (::read(resized_.get(), &info, sizeof info) > 0) {
  }
  send_frame(socket, {to_daemon::kResize, terminal_size().dump()});
}

void InputSender::send_rest(int socket) {
  if (!unsent_.rest().empty()) send_frame(socket, {to_daemon::kInput, std::string(unsent_.rest())});
  if (ended_) send_frame(socket, {to_daemon::kInput, ""});
}

void InputSender::read_input(int socket) {
  std::array<char, 32768> buffer;
  const auto count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  std::string piece(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  ended_ = count <= 0;
  if (options_.is_terminal && !ended_) piece = keys_.pass(piece);
  if (piece.empty() && !ended_) return;
  unsent_.append(piece);
  send_frame(socket, {to_daemon::kInput, piece});
}

bool InputSender::handle(const Frame& frame, int socket) {
  const auto value = json::parse(frame.payload, nullptr, false);
  if (frame.channel == from_daemon::kEnd) {
    raw_.reset();
    const auto error = value.is_object() ? value.value("error", json::object()) : json::object();
    report(error.value("message", "The task takes no more input"));
    return false;
  }
  if (frame.channel != from_daemon::kTaken || !value.is_object()) return true;
  const bool known = unsent_.take(value.value("bytes", std::uint64_t{0}));
  if (!known && !options_.is_terminal) {
    report("the task was started again, without the input that it had read");
    ended_ = true;
    unsent_ = {};
  }
  if (!std::exchange(greeted_, true)) send_rest(socket);
  return true;
}

Result<std::vector<json>> follow_with_input(const Client& client, const std::string& task,
                                            Foreground& foreground, InputOptions options) {
  if (!options.reads && !options.is_terminal) return foreground.follow();
  options.left = [&] {
    report(fmt::format("left it running; 'drover attach {}' comes back", task));
    std::_Exit(EXIT_SUCCESS);  // what follows it waits for output that may never come
  };
  InputSender sender(client, task, std::move(options));
  foreground.on_state([&](const json& record) {
    if (record.value("state", "") == "running") sender.begin();
  });
  return foreground.follow();
}

}  // namespace drover::cli
