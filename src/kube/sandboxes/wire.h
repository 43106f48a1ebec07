#pragma once

// HTTP between the control plane and the agent of a node, over two stream sockets: one request after the
// other, each answered whole. Only bounded messages are taken. Used by one thread at a time; blocks until the
// deadline that is named.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::kube {

struct WireRequest {
  std::string method;
  std::string target;  ///< path and query
};

struct WireAnswer {
  int status = 200;
  std::string body;
  // Of a piece of a file:
  std::uint64_t size = 0;  ///< of the whole
  std::uint64_t inode = 0;
};

class Wire {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Non-blocking sockets, which outlive it. They may be the same.
  Wire(int input, int output) : input_(input), output_(output) {}

  Status send(const WireRequest& request, Deadline deadline);
  Status send(const WireAnswer& answer, Deadline deadline);
  /// kNotFound when the other side has ended between two messages.
  Result<WireRequest> receive_request(Deadline deadline);
  Result<WireAnswer> receive_answer(Deadline deadline);

 private:
  Status write(std::string_view text, Deadline deadline);
  template <bool kIsRequest, typename Message>
  Result<Message> receive(Deadline deadline);

  int input_, output_;
  std::string unread_;
};

}  // namespace drover::kube
