#include "api/marathon/event_hub.h"

#include <algorithm>
#include <utility>

#include "api/marathon/events.h"

namespace drover::api::marathon_v2 {

void EventLog::add(WireEvent event) {
  bytes_ += event.text.size();
  events_.push_back(std::move(event));
  while (events_.size() > kMostWaitingEvents || bytes_ > kMostWaitingBytes) drop_oldest();
}

void EventLog::forget_before(std::uint64_t number) {
  while (begin_ < number && !events_.empty()) drop_oldest();
}

void EventLog::drop_oldest() {
  bytes_ -= events_.front().text.size();
  events_.pop_front();
  ++begin_;
}

Follower::Follower(const EventLog& log, const engine::Caller& caller, std::set<std::string> types,
                   std::function<void()> wake)
    : log_(log),
      is_root_(caller.is_root()),
      uid_(caller.user.uid),
      types_(std::move(types)),
      wake_(std::move(wake)),
      next_(log.end()) {}

bool Follower::wants(const WireEvent& event) const {
  if (!types_.empty() && !types_.contains(event.type)) return false;
  return !event.owner || is_root_ || *event.owner == uid_;
}

void Follower::greet(const WireEvent& event) {
  if (wants(event)) greeting_ = event.text;
}

void Follower::on_event(std::uint64_t number) {
  // What it does not want is not waited for, unless it stands behind what it has not taken yet.
  if (number < log_.begin() || wants(log_.at(number)))
    wake_();
  else if (next_ == number)
    ++next_;
}

std::string Follower::take(std::size_t bytes) {
  auto text = std::exchange(greeting_, "");
  while (!cut() && next_ < log_.end() && text.size() < bytes) {
    const auto& event = log_.at(next_++);
    if (wants(event)) text += event.text;
  }
  return text;
}

std::shared_ptr<Follower> EventHub::follow(const engine::Caller& caller, std::set<std::string> types,
                                           std::function<void()> wake) {
  if (watch_ == nullptr) watch_ = daemon_.watch([this](const control::Notice& notice) { publish(notice); });
  auto follower = std::make_shared<Follower>(log_, caller, std::move(types), std::move(wake));
  follower->greet(attached_event(true, daemon_.now()));
  followers_.push_back(follower);
  return follower;
}

std::shared_ptr<void> EventHub::expect(Post post) {
  auto handle = std::make_shared<Post>(std::move(post));
  std::erase_if(expected_, [](const auto& weak) { return weak.expired(); });
  expected_.push_back(handle);
  return handle;
}

void EventHub::publish_post(const control::notice::DefinitionsChanged& changed) {
  for (const auto& weak : expected_) {
    const auto post = weak.lock();
    if (post == nullptr || post->version != changed.version ||
        std::ranges::find(changed.services, post->app) == changed.services.end())
      continue;
    const auto& known = daemon_.state().services;
    for (const auto& id : changed.services)
      if (const auto service = known.find(id); service != known.end())
        publish({post_event(post->caller, service->second.target, daemon_.now())});
    return;
  }
}

void EventHub::publish_failed(uid_t caller, const std::vector<std::string>& ids, const std::string& why) {
  if (!anybody()) return;
  for (const auto& id : ids) publish({failed_event(caller, id, why, daemon_.now())});
}

void EventHub::publish_detached() {
  if (anybody()) publish({attached_event(false, daemon_.now())});
}

void EventHub::publish(const control::Notice& notice) {
  if (!anybody()) return;
  if (const auto* changed = std::get_if<control::notice::DefinitionsChanged>(&notice)) publish_post(*changed);
  publish(events_of(notice, daemon_.state(), ip_, daemon_.now()));
}

void EventHub::publish(std::vector<WireEvent> events) {
  auto needed = log_.end();
  for (const auto& weak : followers_)
    if (const auto follower = weak.lock()) needed = std::min(needed, follower->next());
  log_.forget_before(needed);
  for (auto& event : events) {
    log_.add(std::move(event));
    for (const auto& weak : followers_)
      if (const auto follower = weak.lock()) follower->on_event(log_.end() - 1);
  }
}

void EventHub::stop() {
  followers_.clear();
  watch_.reset();
}

bool EventHub::anybody() {
  std::erase_if(followers_, [](const auto& weak) { return weak.expired(); });
  if (followers_.empty()) {
    watch_.reset();
    log_.forget_before(log_.end());
  }
  return !followers_.empty();
}

}  // namespace drover::api::marathon_v2
