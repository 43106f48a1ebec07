#include "engine/feed.h"

#include <algorithm>

namespace drover::engine {
namespace {

constexpr std::size_t kKept = 4096;

}  // namespace

void Feed::add(EventView event) {
  event.number = ++last_;
  kept_.push_back(std::move(event));
  if (kept_.size() > kKept) kept_.pop_front();
  listeners_.notify();
}

std::vector<EventView> Feed::after(const Caller& caller, std::uint64_t number, std::size_t most) const {
  std::vector<EventView> result;
  // Numbers have no gaps, so nobody who is up to date looks at what he has seen.
  const auto newer = static_cast<std::size_t>(last_ - std::min(number, last_));
  const auto behind = std::min(newer, kept_.size());
  for (auto event = kept_.end() - static_cast<std::ptrdiff_t>(behind);
       event != kept_.end() && result.size() < most; ++event)
    if (caller.is_root() || event->task_id.empty() || event->owner == caller.user.uid)
      result.push_back(*event);
  return result;
}

}  // namespace drover::engine
