#include "pods/attachment.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/pause.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

constexpr std::chrono::milliseconds kFirstRetry{100}, kLongestRetry{5000};
constexpr std::size_t kOutputPiece = 64 << 10;

kube::RemoteCommandRequest request_of(const AttachmentOrder& order) {
  kube::RemoteCommandRequest request{
      .name_space = order.pod.name_space, .pod = order.pod.name, .container = kContainer};
  request.tty = order.reads.terminal.has_value();
  if (!order.reads.terminal) return request;
  request.rows = order.reads.terminal->rows;
  request.columns = order.reads.terminal->columns;
  return request;
}

}  // namespace

Result<std::unique_ptr<Attachment>> Attachment::open(kube::Api& api, kube::ServerConfig server,
                                                     const Directory& task, AttachmentOrder order) {
  DROVER_TRY(auto input, container::TaskInput::open(task));
  std::optional<TerminalOutput> output;
  if (order.reads.terminal) {
    DROVER_TRY(output, TerminalOutput::open(task, order.pod));
  }
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return fail_errno("Failed to join a task to who writes to it", errno);
  std::unique_ptr<Attachment> made(new Attachment(api, std::move(server), std::move(order), std::move(input),
                                                  std::move(output), std::move(wake)));
  made->thread_ = std::jthread([self = made.get()](const std::stop_token& stop) { self->run(stop); });
  return made;
}

Attachment::Attachment(kube::Api& api, kube::ServerConfig server, AttachmentOrder order,
                       container::TaskInput input, std::optional<TerminalOutput> output, UniqueFd wake)
    : api_(api),
      server_(std::move(server)),
      order_(std::move(order)),
      input_(std::move(input)),
      output_(std::move(output)),
      wake_(std::move(wake)) {}

Attachment::~Attachment() {
  thread_.request_stop();
  ::eventfd_write(wake_.get(), 1);
}

void Attachment::finish(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  over_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, patience, [this] { return done_; });
}

void Attachment::run(const std::stop_token& stop) {
  Backoff backoff(kFirstRetry, kLongestRetry);
  std::unique_lock lock(mutex_);
  while (!over_ && !stop.stop_requested()) {
    lock.unlock();
    if (const auto connection = kube::RemoteCommand::start(server_, request_of(order_), stop)) {
      backoff.reset();
      converse(**connection, stop);
    }
    lock.lock();
    changed_.wait_for(lock, stop, backoff.next(), [this] { return over_; });
  }
  done_ = true;
  changed_.notify_all();
}

void Attachment::converse(kube::RemoteCommand& connection, const std::stop_token& stop) {
  if (output_) static_cast<void>(output_->catch_up(api_, stop));
  UniqueFd sink(::fcntl(connection.input(), F_DUPFD_CLOEXEC, 0));
  connection.close_input();  // that of the task is the last
  input_.begin(std::move(sink), output_.has_value(),
               [&connection](int rows, int columns) { connection.resize(rows, columns); });
  bool first = true;
  while (!stop.stop_requested()) {
    const auto inputs = input_.polls();
    std::array<pollfd, 6> polls = {inputs[0],
                                   inputs[1],
                                   inputs[2],
                                   pollfd{connection.output(), POLLIN, 0},
                                   pollfd{wake_.get(), POLLIN, 0},
                                   pollfd{connection.errors(), POLLIN, 0}};
    if (::poll(polls.data(), polls.size(), -1) < 0) continue;
    input_.take(polls.data());
    std::array<char, kOutputPiece> nobodys;
    if (polls[5].revents != 0) static_cast<void>(::read(connection.errors(), nobodys.data(), nobodys.size()));
    if (polls[3].revents != 0 && !take_output(connection, std::exchange(first, false))) break;
  }
  input_.suspend();
}

bool Attachment::take_output(const kube::RemoteCommand& connection, bool first) {
  std::array<char, kOutputPiece> buffer;
  const auto count = ::read(connection.output(), buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (output_) output_->add({buffer.data(), static_cast<std::size_t>(count)}, first);
  return count > 0;
}

}  // namespace drover::pods
