#pragma once

// One request to a Docker Engine over its unix socket, and the answer as it comes: HTTP/1.1, a connection
// each, so that a long answer (a wait, a log) is one descriptor in somebody's poll loop. What the engine says
// has limits here like everything from outside. Not thread safe.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/request.h"

namespace drover::container::docker {

using http::Request;

class Exchange {
 public:
  /// Connects and sends. kUnavailable when nobody answers at the socket.
  static Result<Exchange> begin(const std::string& socket, Request request);
  Exchange(Exchange&& other) noexcept;
  Exchange& operator=(Exchange&& other) noexcept;
  ~Exchange();

  int fd() const;
  /// Takes in what has come, some 64 KiB at most, without waiting. kUnavailable when the connection broke in
  /// the middle of the answer; kCorrupt when it is no HTTP.
  Status receive();
  /// Of the answer; 0 until its head is there.
  int status() const;
  /// Of the head; "" when it has no such field.
  std::string header(std::string_view name) const;
  /// What has come of the body since the last call.
  std::string take();
  bool ended() const;

  /// Of an upgraded connection: as much as it takes without waiting; 0 when it takes nothing now.
  Result<std::size_t> send(std::string_view bytes);
  /// Of an upgraded connection: there is no more to send.
  void finish_sending();

 private:
  struct Parts;
  explicit Exchange(std::unique_ptr<Parts> parts);
  Error broken(std::string_view why) const;

  std::unique_ptr<Parts> parts_;
};

struct Answer {
  int status = 0;
  std::string body;
  std::string api_version;  ///< what the engine says of itself in every head; may be ""
};

/// The largest answer that is read whole.
inline constexpr std::size_t kLongestAnswer = 16 << 20;

/// Waits until the head has come.
Status await_head(Exchange& exchange, std::chrono::milliseconds timeout);
/// Waits for all of it. kTimeout; kExhausted when it is longer than kLongestAnswer.
Result<Answer> call(const std::string& socket, const Request& request,
                    std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace drover::container::docker
