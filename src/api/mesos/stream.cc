#include "api/mesos/stream.h"

#include <utility>

#include "api/async.h"
#include "api/mesos/call.h"

namespace drover::api::mesos {
namespace {

constexpr std::size_t kMostUnsent = 16 << 20;

}  // namespace

Stream::Stream(const boost::asio::any_io_executor& executor, MediaType type,
               const google::protobuf::Message& heartbeat, std::chrono::seconds interval)
    : type_(type), heartbeat_(event_record(heartbeat, type)), interval_(interval), changed_(executor) {}

void Stream::send(const google::protobuf::Message& event) {
  if (closed_) return;
  // What is sent at once may be as long as it is: only what waits before it counts.
  if (bytes_ > kMostUnsent) return close();
  records_.push_back(event_record(event, type_));
  bytes_ += records_.back().size();
  changed_.cancel();
}

void Stream::close() {
  closed_ = true;
  changed_.cancel();
}

asio::awaitable<void> Stream::write(BodyWriter& writer) {
  auto next_heartbeat = std::chrono::steady_clock::now() + interval_;
  while (true) {
    while (!records_.empty()) {
      auto record = std::move(records_.front());
      records_.pop_front();
      bytes_ -= record.size();
      co_await writer.write(std::move(record));
    }
    if (closed_) co_return;
    changed_.expires_at(next_heartbeat);
    co_await changed_.async_wait(kAsTuple);
    if (std::chrono::steady_clock::now() < next_heartbeat) continue;
    next_heartbeat += interval_;
    if (!closed_) co_await writer.write(heartbeat_);
  }
}

Response follow(std::shared_ptr<Stream> stream, std::function<void()> gone) {
  Response response;
  response.content_type = std::string(to_string(stream->type()));
  const std::shared_ptr<void> guard(nullptr, [gone = std::move(gone)](void*) { gone(); });
  response.stream = [stream = std::move(stream), guard](BodyWriter& writer) { return stream->write(writer); };
  return response;
}

}  // namespace drover::api::mesos
