#pragma once

// One POST over HTTP or HTTPS. Heavy (Boost.Beast): for the `.cc` files of this folder.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>

#include "workload/webhook.h"

namespace drover::engine {

struct PostAnswer {
  bool taken = false;            ///< the server answered 2xx
  bool worth_repeating = false;  ///< it may go better another time
  std::string trouble;           ///< why it was not taken, one clause
};

/// Never throws. The timeout counts from the connection on; how long it may take to find the address of a
/// name is the machine's own setting. Certificates are checked against those that the machine trusts.
boost::asio::awaitable<PostAnswer> post_json(workload::Webhook to, std::string body,
                                             std::chrono::milliseconds timeout);

}  // namespace drover::engine
