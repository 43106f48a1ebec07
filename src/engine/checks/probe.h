#pragma once

// One look at a server, over TCP, HTTP or HTTPS. Heavy (Boost.Beast): for the `.cc` files of this folder.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "engine/checks/checks.h"
#include "workload/service.h"

namespace drover::engine {

struct ProbeRequest {
  workload::CheckKind kind = workload::CheckKind::kHttp;  ///< not kCommand
  std::string host;
  int port = 0;
  std::string path = "/";
  std::chrono::milliseconds timeout{};
  bool wants_body = false;
};

struct ProbeAnswer {
  std::optional<CheckResponse> response;  ///< HTTP: the server answered
  std::string trouble;                    ///< why there is no answer, in one sentence; "" when there is
};

/// Never throws, and is done within the timeout.
boost::asio::awaitable<ProbeAnswer> probe(ProbeRequest request);

/// "200 (OK)".
std::string status_text(int status);

}  // namespace drover::engine
