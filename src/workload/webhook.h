#pragma once

// A URL that is told of something by a POST. Values; pure.

#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::workload {

struct Webhook {
  bool secure = false;  ///< https
  std::string host;     ///< a name or an address; IPv6 without brackets
  int port = 80;
  std::string target = "/";  ///< path and query, as they go into the request
  std::string credentials;   ///< "user:password", decoded; "" for none

  bool operator==(const Webhook&) const = default;
};

/// "https://user:password@example.org:8443/path?query", of 2048 bytes at most. Errors are kInvalid, and show
/// no password.
Result<Webhook> parse_webhook(std::string_view url);

}  // namespace drover::workload
