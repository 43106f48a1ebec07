#include "engine/feed.h"

#include <algorithm>

namespace drover::engine {
namespace {

constexpr std::size_t kKept = 4096;

}  // namespace

void Feed::add(std::vector<EventView> events) {
  for (auto& event : events) {
    last_ = event.number;
    kept_.push_back(std::move(event));
    if (kept_.size() <= kKept) continue;
    dropped_ = kept_.front().number;
    kept_.pop_front();
  }
  listeners_.notify();
}

EventPage Feed::page(const Caller& caller, const EventQuery& query) const {
  EventPage page;
  page.reached = query.after;
  for (auto event = std::ranges::upper_bound(kept_, query.after, {}, &EventView::number);
       event != kept_.end() && event->number < query.before; ++event)
    if (!page.add(caller, query, *event)) return page;
  page.reached = std::max(page.reached, std::min(last_, query.before - 1));
  page.end = true;
  return page;
}

}  // namespace drover::engine
