#pragma once

// What the API server says when it refuses: a Status object, or whatever a proxy before it says. Pure.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/client/api.h"

namespace drover::kube {

struct Refusal {
  int code = 0;         ///< as in HTTP
  std::string message;  ///< one line of printable text; "" when it says nothing
  std::optional<std::chrono::seconds> retry_after;
};

/// Of a Status object, as one may come in a watch.
Refusal read_refusal(const nlohmann::json& status);
/// Of an answer with this HTTP status.
Refusal read_refusal(int http_status, std::string_view body);

/// `doing` begins the sentence: "Failed to get nodes 'a'".
Error refusal_error(const Refusal& refusal, std::string_view doing, const ApiRequest& request);

}  // namespace drover::kube
