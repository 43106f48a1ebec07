#pragma once

// The rules of sharing as JSON: as the journal keeps them and as the API reads and shows them. Pure.

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "placement/queues.h"

namespace drover::control {

// A queue: {"queue": "research/vision", "limit": {"gpus": 8, "cpus": 64, "memory": "1TiB"},
//           "guarantee": {…}, "weight": 2, "users": ["alice"]}
// A quota: {"user": "alice", "limit": {…}, "max_priority": 10}, or with "namespace" instead of "user".
// Amounts are numbers (GPUs and CPUs exact to thousandths); memory may also be bytes. What is absent is not
// limited. A cordon: {"gpu": "GPU-…", "by": "root", "reason": "a fan is loud"}, without "gpu" of the whole
// machine. All mistakes at once; unknown fields are mistakes. decode(encode(x)) == x.

nlohmann::json encode(const placement::Queue& queue);
Result<placement::Queue> decode_queue(const nlohmann::json& value);
nlohmann::json encode(const placement::Quota& quota);
Result<placement::Quota> decode_quota(const nlohmann::json& value);
nlohmann::json encode(const placement::Limits& limits);
nlohmann::json encode(const std::string& gpu, const placement::Cordon& cordon);

/// {"queues": […], "quotas": […], "cordons": […]}
nlohmann::json encode(const placement::Rules& rules);
Result<placement::Rules> decode_rules(const nlohmann::json& value);

}  // namespace drover::control
