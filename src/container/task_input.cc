#include "container/task_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/unix_socket.h"
#include "container/task_folder.h"
#include "http/client.h"
#include "workload/task.h"

namespace drover::container {
namespace {

constexpr std::size_t kLongestWord = 256;  // of what is neither input nor output
constexpr auto kPatience = std::chrono::seconds(5);

}  // namespace

Result<TaskInput> TaskInput::open(const Directory& task) {
  TaskInput input;
  DROVER_TRY(input.listener_, listen_at(task, kInputSocket));
  return input;
}

void TaskInput::begin(UniqueFd sink, bool is_terminal, Resize resize) {
  ::fcntl(sink.get(), F_SETFL, ::fcntl(sink.get(), F_GETFL) | O_NONBLOCK);
  sink_ = std::move(sink);
  is_terminal_ = is_terminal;
  resize_ = std::move(resize);
  begun_ = true;
}

void TaskInput::suspend() {
  begun_ = false;
  sink_.reset();
  resize_ = {};
}

std::array<pollfd, 3> TaskInput::polls() const {
  const bool listens = begun_ && pending_.empty();
  return {pollfd{listener_.get(), POLLIN, 0}, pollfd{listens ? client_.get() : -1, POLLIN, 0},
          pollfd{pending_.empty() ? -1 : sink_.get(), POLLOUT, 0}};
}

void TaskInput::take(const pollfd* polls) {
  if (polls[2].revents != 0) {
    pass_on();
    handle_frames();
  }
  if (polls[1].revents != 0) receive();
  if (polls[0].revents != 0) accept();
}

void TaskInput::accept() {
  UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client.valid()) return;
  if (client_.valid())
    send({from_daemon::kEnd,
          R"({"error":{"kind":"conflict","message":"Somebody else writes to the task now"}})"});
  client_ = std::move(client);
  parser_ = {};
  pending_.clear();  // was not acknowledged
}

void TaskInput::receive() {
  std::array<char, 65536> buffer;
  const auto count = ::read(client_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) {
    client_.reset();
    return;
  }
  parser_.append({buffer.data(), static_cast<std::size_t>(count)});
  handle_frames();
}

void TaskInput::handle_frames() {
  while (client_.valid() && pending_.empty()) {
    auto frame = parser_.next();
    if (!frame) break;
    handle(std::move(*frame));
  }
  if (parser_.is_broken()) client_.reset();
  if (taken_ != acknowledged_) acknowledge();
}

void TaskInput::handle(Frame frame) {
  if (frame.channel == to_daemon::kInput && !frame.payload.empty()) {
    pending_ = std::move(frame.payload);
    pass_on();
  } else if (frame.channel == to_daemon::kInput) {
    if (!is_terminal_) sink_.reset();
  } else if (frame.payload.size() <= kLongestWord) {
    if (frame.channel == to_daemon::kSession) greet(frame.payload);
    if (frame.channel == to_daemon::kResize) resize(frame.payload);
  }
}

void TaskInput::greet(const std::string& session) {
  if (session != session_ || session.empty()) taken_ = 0;
  session_ = session;
  acknowledge();
}

void TaskInput::resize(const std::string& size) const {
  const auto value = nlohmann::json::parse(size, nullptr, false);
  const auto side = [&](const char* name) -> unsigned short {
    const auto found = value.is_object() ? value.find(name) : value.end();
    const bool given = value.is_object() && found != value.end() && found->is_number_unsigned();
    const auto number = given ? found->get<std::uint64_t>() : 0;
    return static_cast<unsigned short>(std::min<std::uint64_t>(number, workload::kMaxTerminalSide));
  };
  winsize wanted{};
  wanted.ws_row = side("rows");
  wanted.ws_col = side("columns");
  if (!is_terminal_ || wanted.ws_row == 0 || wanted.ws_col == 0) return;
  if (resize_)
    resize_(wanted.ws_row, wanted.ws_col);
  else
    ::ioctl(sink_.get(), TIOCSWINSZ, &wanted);
}

void TaskInput::pass_on() {
  const auto count = sink_.valid() ? ::write(sink_.get(), pending_.data(), pending_.size()) : -1;
  if (count < 0 && sink_.valid() && (errno == EINTR || errno == EAGAIN)) return;
  if (count < 0) sink_.reset();  // nobody reads it any more: what comes is taken and goes nowhere
  const auto taken = count < 0 ? pending_.size() : static_cast<std::size_t>(count);
  pending_.erase(0, taken);
  taken_ += taken;
}

void TaskInput::acknowledge() {
  acknowledged_ = taken_;
  send({from_daemon::kTaken, fmt::format(R"({{"bytes":{}}})", taken_)});
}

/// Who does not read what he is told loses the connection.
void TaskInput::send(const Frame& frame) {
  const auto text = to_text(frame);
  if (client_.valid() && ::send(client_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
                             static_cast<ssize_t>(text.size()))
    client_.reset();
}

Result<UniqueFd> connect_input(const Directory& task) {
  if (!task.exists(kInputSocket))
    return fail(ErrorKind::kUnsupported, "The task takes no input",
                "start it with 'drover run -i', or with -it for a terminal");
  auto connected = http::connect_unix(socket_path(task, kInputSocket), kPatience);
  if (!connected)
    return fail(ErrorKind::kUnavailable,
                fmt::format("The task does not take input now: {}", connected.error().message()));
  return std::move(*connected);
}

}  // namespace drover::container
