#pragma once

// What a task is told that makes room for another, on one machine and on a cluster. Pure.

#include <optional>
#include <string>

namespace drover::placement {

/// `lender`: the queue that takes back what it had lent; "" for one that is not known by name, nullopt when
/// the other has a higher priority. `job`: the other; "" when the task is not to know.
std::string why_preempted(const std::optional<std::string>& lender, const std::string& job);

}  // namespace drover::placement
