#pragma once

// The rules of sharing as JSON: as the journal keeps them, the API reads and shows them, and people write
// them into files. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/result.h"
#include "placement/queues.h"

namespace drover::placement {

// A queue: {"queue": "research/vision", "limit": {"gpus": 8, "cpus": 64, "memory": "1TiB"},
//           "guarantee": {…}, "weight": 2, "users": ["alice"]}
// A quota: {"user": "alice", "limit": {…}, "max_priority": 10}, or with "namespace" instead of "user".
// Amounts are numbers (GPUs and CPUs exact to thousandths); memory may also be bytes. What is absent is not
// limited. A cordon: {"gpu": "GPU-…", "by": "root", "reason": "a fan is loud"}, without "gpu" of the whole
// machine. All mistakes at once; unknown fields are mistakes. decode(encode(x)) == x.

/// Or every mistake, each with its path.
template <typename T>
using Read = tl::expected<T, std::vector<Error>>;

nlohmann::json encode(const Queue& queue);
Read<Queue> read_queue(const nlohmann::json& value);
/// The same, with all mistakes as one Error.
Result<Queue> decode_queue(const nlohmann::json& value);
nlohmann::json encode(const Quota& quota);
Read<Quota> read_quota(const nlohmann::json& value);
Result<Quota> decode_quota(const nlohmann::json& value);
nlohmann::json encode(const Limits& limits);
nlohmann::json encode(const std::string& gpu, const Cordon& cordon);

/// {"queues": […], "quotas": […], "cordons": […]}
nlohmann::json encode(const Rules& rules);
Result<Rules> decode_rules(const nlohmann::json& value);

/// "user:alice", "namespace:vision"
std::string to_string(const Subject& subject);

/// Of an error of validate(): whose it is, and the field in the words of this form.
/// "/queues/a~1b/limit/gpu_milli" is "/queues/a~1b" and "/limit/gpus".
struct RulePath {
  std::string rule;
  std::string field;
};
RulePath rule_path(const std::string& path);

}  // namespace drover::placement
