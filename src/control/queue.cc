#include "control/queue.h"

#include <fmt/format.h>

namespace drover::control {

std::variant<placement::whole::Decision, placement::whole::Reasons> place_behind(
    const placement::whole::Node& node, const placement::whole::Usage& usage, const Reservation& ahead,
    const placement::whole::Request& request) {
  if (ahead.tasks == 0) return placement::whole::place(node, usage, request);
  const auto stands_behind = [](int count) {
    return count == 1 ? std::string("1 task stands before it in the queue")
                      : fmt::format("{} tasks stand before it in the queue", count);
  };
  if (must_wait(ahead, request)) {
    auto reasons = placement::whole::shortages(node, usage, request);
    reasons.list.push_back(stands_behind(ahead.tasks_with_gpus));
    return reasons;
  }
  auto reserved = usage;
  reserved.milli_cpus += ahead.milli_cpus;
  reserved.memory_bytes += ahead.memory_bytes;
  auto answer = placement::whole::place(node, reserved, request);
  if (auto* reasons = std::get_if<placement::whole::Reasons>(&answer))
    reasons->list.push_back(stands_behind(ahead.tasks));
  return answer;
}

}  // namespace drover::control
