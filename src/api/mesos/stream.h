#pragma once

// The live answers of the Mesos APIs: records one after the other, and heartbeats where there is nothing else
// to tell. Used on the control strand only.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "api/http.h"
#include "api/mesos/media_type.h"

namespace google::protobuf {
class Message;
}

namespace drover::api::mesos {

inline constexpr std::chrono::seconds kHeartbeat{15};

/// What one subscriber is sent.
class Stream {
 public:
  Stream(const boost::asio::any_io_executor& executor, MediaType type,
         const google::protobuf::Message& heartbeat, std::chrono::seconds interval = kHeartbeat);

  /// One that does not read is as good as gone: its stream ends.
  void send(const google::protobuf::Message& event);
  /// After what was sent.
  void close();
  /// Writes records until the stream is closed.
  asio::awaitable<void> write(BodyWriter& writer);

  MediaType type() const { return type_; }

 private:
  MediaType type_;
  std::string heartbeat_;
  std::chrono::seconds interval_;  ///< between heartbeats
  std::deque<std::string> records_;
  std::size_t bytes_ = 0;  ///< in `records_`
  bool closed_ = false;
  boost::asio::steady_timer changed_;
};

/// The answer that writes it. `gone` is called however the answer ends, and also when it never begins.
Response follow(std::shared_ptr<Stream> stream, std::function<void()> gone);

}  // namespace drover::api::mesos
