#include "api/marathon/event_hub.h"

#include <algorithm>
#include <utility>

#include "api/marathon/events.h"

namespace drover::api::marathon_v2 {

Follower::Follower(const engine::Caller& caller, std::set<std::string> types, std::function<void()> wake)
    : is_root_(caller.is_root()), uid_(caller.user.uid), types_(std::move(types)), wake_(std::move(wake)) {}

void Follower::offer(const WireEvent& event) {
  if (cut_ || (!types_.empty() && !types_.contains(event.type))) return;
  if (event.owner && !is_root_ && *event.owner != uid_) return;
  waiting_.push_back(event.text);
  bytes_ += event.text->size();
  if (waiting_.size() > kMostWaitingEvents || bytes_ > kMostWaitingBytes) {
    cut_ = true;
    waiting_.clear();
  }
  wake_();
}

std::shared_ptr<const std::string> Follower::take() {
  if (waiting_.empty()) return nullptr;
  auto text = std::move(waiting_.front());
  waiting_.pop_front();
  bytes_ -= text->size();
  return text;
}

std::shared_ptr<Follower> EventHub::follow(const engine::Caller& caller, std::set<std::string> types,
                                           std::function<void()> wake) {
  if (watch_ == nullptr) watch_ = daemon_.watch([this](const control::Notice& notice) { tell(notice); });
  auto follower = std::make_shared<Follower>(caller, std::move(types), std::move(wake));
  follower->offer(attached_event(true, daemon_.now()));
  followers_.push_back(follower);
  return follower;
}

void EventHub::tell_post(uid_t caller, const workload::Service& service) {
  if (anybody()) tell({post_event(caller, service, daemon_.now())});
}

void EventHub::tell_detached() {
  if (anybody()) tell({attached_event(false, daemon_.now())});
}

void EventHub::tell(const control::Notice& notice) {
  if (anybody()) tell(events_of(notice, daemon_.state(), daemon_.now()));
}

void EventHub::tell(const std::vector<WireEvent>& events) {
  for (const auto& event : events)
    for (const auto& weak : followers_)
      if (const auto follower = weak.lock()) follower->offer(event);
}

bool EventHub::anybody() {
  std::erase_if(followers_, [](const auto& weak) { return weak.expired(); });
  if (followers_.empty()) watch_.reset();
  return !followers_.empty();
}

}  // namespace drover::api::marathon_v2
