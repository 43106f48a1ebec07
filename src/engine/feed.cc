#include "engine/feed.h"

namespace drover::engine {
namespace {

constexpr std::size_t kKept = 4096;

}  // namespace

void Feed::add(EventView event) {
  event.number = ++last_;
  kept_.push_back(std::move(event));
  if (kept_.size() > kKept) kept_.pop_front();
  listeners_.tell();
}

std::vector<EventView> Feed::after(const Caller& caller, std::uint64_t number) const {
  std::vector<EventView> result;
  for (const auto& event : kept_) {
    const bool may_hear = caller.is_root() || event.task_id.empty() || event.owner == caller.user.uid;
    if (event.number > number && may_hear) result.push_back(event);
  }
  return result;
}

}  // namespace drover::engine
