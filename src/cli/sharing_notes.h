#pragma once

// What is said after a queue or a quota was set: what it is now, and what of it can never come true. Pure,
// but for the look at the machine's users.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace drover::cli {

/// "vision: guarantee 6 GPUs, limit -, weight 1, users all". `queue`: as GET /v1/queues lists it.
std::string queue_line(const nlohmann::json& queue);

/// "user:ann: limit 2 GPUs, highest priority 0". `quota`: as GET /v1/quotas lists it.
std::string quota_line(const nlohmann::json& quota);

/// A sentence for each guarantee that is more than all `nodes` of GET /v1/nodes have together.
std::vector<std::string> guarantees_too_large(const nlohmann::json& queue, const nlohmann::json& nodes);

/// A sentence for each name that is no user of this machine.
std::vector<std::string> unknown_users(const std::vector<std::string>& names);

}  // namespace drover::cli
