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
  // A listener may subscribe or leave while it is called.
  const auto listeners = listeners_;
  for (const auto& weak : listeners)
    if (const auto listener = weak.lock()) (*listener)();
  std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
}

std::vector<EventView> Feed::after(const Caller& caller, std::uint64_t number) const {
  std::vector<EventView> result;
  for (const auto& event : kept_) {
    const bool may_hear = caller.is_root() || event.task_id.empty() || event.owner == caller.user.uid;
    if (event.number > number && may_hear) result.push_back(event);
  }
  return result;
}

std::shared_ptr<void> Feed::subscribe(std::function<void()> listener) {
  auto handle = std::make_shared<std::function<void()>>(std::move(listener));
  listeners_.push_back(handle);
  return handle;
}

}  // namespace drover::engine
