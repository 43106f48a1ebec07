#include "engine/event_query.h"

#include <algorithm>

namespace drover::engine {
namespace {

constexpr std::size_t kMostOfPage = 128;
constexpr std::size_t kBytesOfPage = 32U << 10;

bool is_of(const EventView& event, const std::string& task) {
  if (event.task_id.empty()) return false;
  const bool begins = task.size() >= EventQuery::kShortestBeginning && event.task_id.starts_with(task);
  return begins || event.task_id == task || event.name == task || event.part_of == task;
}

}  // namespace

bool EventQuery::takes(const EventView& event) const {
  if (!kinds.empty() && std::ranges::find(kinds, event.kind) == kinds.end()) return false;
  if (since && event.at < *since) return false;
  if (until && event.at > *until) return false;
  if (!user.empty() && event.user != user) return false;
  return task.empty() || is_of(event, task);
}

bool may_hear(const Caller& caller, const EventView& event) {
  return caller.is_root() || event.owner == EventView::kEverybody || event.owner == caller.user.uid;
}

bool EventPage::add(const Caller& caller, const EventQuery& query, const EventView& event) {
  reached = event.number;
  if (!may_hear(caller, event) || !query.takes(event)) return true;
  bytes_ += sizeof(EventView) + event.message.size() + event.facts.size();
  events.push_back(event);
  return events.size() < kMostOfPage && bytes_ < kBytesOfPage;
}

}  // namespace drover::engine
