#include "kube/events/event_book.h"

#include <algorithm>

namespace drover::kube {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

}  // namespace

void EventBook::add(const EventTarget& target, const EventText& text, TimePoint now) {
  forget_old(now);
  const Key key{target, text};
  if (!entries_.contains(key)) {
    if (entries_.size() >= limits_.most) forget_one_written();
    if (entries_.size() >= limits_.most || !may_begin(target, now)) {
      ++dropped_;
      return;
    }
  }
  auto& entry = entries_[key];
  if (entry.count == 0) entry.first = entry.not_before = now;
  ++entry.count;
  entry.last = now;
  entry.pending = true;
}

bool EventBook::may_begin(const EventTarget& target, TimePoint now) {
  auto& bucket = buckets_.try_emplace(target, Bucket{limits_.burst, now}).first->second;
  const auto more = (now - bucket.refilled) / limits_.refill;
  if (more > 0) {
    bucket.tokens = static_cast<int>(std::min<std::int64_t>(bucket.tokens + more, limits_.burst));
    bucket.refilled += more * limits_.refill;
  }
  if (bucket.tokens == 0) return false;
  --bucket.tokens;
  return true;
}

/// An object whose bucket is full again is as good as new.
void EventBook::forget_old(TimePoint now) {
  if (now >= looked_ && now - looked_ < kBetweenLooks) return;
  looked_ = now;
  std::erase_if(entries_, [&](const auto& pair) {
    return !pair.second.pending && now - pair.second.first >= limits_.fresh;
  });
  std::erase_if(buckets_, [&](const auto& pair) {
    return (now - pair.second.refilled) / limits_.refill >= limits_.burst - pair.second.tokens;
  });
}

/// Of what is new again when it happens again, the one that has not for the longest time.
void EventBook::forget_one_written() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (!entry->second.pending && (oldest == entries_.end() || entry->second.last < oldest->second.last))
      oldest = entry;
  if (oldest != entries_.end()) entries_.erase(oldest);
}

std::optional<EventWrite> EventBook::next(TimePoint now) {
  for (const auto& [key, entry] : entries_) {
    const auto& [target, text] = key;
    if (entry.pending && entry.not_before <= now)
      return EventWrite{target, text, entry.count, entry.first, entry.last, entry.name};
  }
  return std::nullopt;
}

void EventBook::wrote(const EventWrite& write, const std::string& name, TimePoint now) {
  const auto found = entries_.find({write.target, write.text});
  if (found == entries_.end()) return;
  auto& entry = found->second;
  entry.name = name;
  entry.failures = 0;
  entry.pending = entry.count > write.count;  // it happened again meanwhile
  entry.not_before = now + limits_.again;
}

void EventBook::failed(const EventWrite& write, bool may_pass, TimePoint now) {
  const auto found = entries_.find({write.target, write.text});
  if (found == entries_.end()) return;
  auto& entry = found->second;
  entry.not_before = now + limits_.again;
  if (may_pass && ++entry.failures < limits_.tries) return;
  entry.failures = 0;
  entry.pending = entry.count > write.count;
  if (entry.pending) return;
  dropped_ += static_cast<std::uint64_t>(entry.count);
  entries_.erase(found);
}

std::optional<TimePoint> EventBook::due() const {
  std::optional<TimePoint> due;
  for (const auto& [key, entry] : entries_)
    if (entry.pending) due = std::min(due.value_or(entry.not_before), entry.not_before);
  return due;
}

}  // namespace drover::kube
