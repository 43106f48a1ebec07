#include "kube/events/event_book.h"

#include <algorithm>

namespace drover::kube {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

}  // namespace

void EventBook::add(const EventTarget& target, const EventText& text, TimePoint now) {
  forget_old(now);
  auto found = entries_.find({target, text});
  if (found == entries_.end()) {
    if (entries_.size() >= limits_.most && !written_.empty()) forget(written_.begin()->second);
    if (entries_.size() >= limits_.most || !may_begin(target, now)) {
      ++dropped_;
      return;
    }
    found = entries_.try_emplace({target, text}).first;
    found->second.first = found->second.not_before = now;
  } else {
    leave_line(found);
  }
  auto& entry = found->second;
  ++entry.count;
  entry.last = now;
  entry.pending = true;
  line_up(found);
}

void EventBook::line_up(Entries::iterator entry) {
  auto& what = entry->second;
  what.place = {what.pending ? what.not_before : what.last, ++turns_};
  line_of(what).emplace(what.place, entry);
}

void EventBook::leave_line(Entries::iterator entry) {
  line_of(entry->second).erase(entry->second.place);
}

void EventBook::forget(Entries::iterator entry) {
  leave_line(entry);
  entries_.erase(entry);
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
  for (auto next = entries_.begin(); next != entries_.end();) {
    const auto entry = next++;
    if (!entry->second.pending && now - entry->second.first >= limits_.fresh) forget(entry);
  }
  std::erase_if(buckets_, [&](const auto& pair) {
    return (now - pair.second.refilled) / limits_.refill >= limits_.burst - pair.second.tokens;
  });
}

std::optional<EventWrite> EventBook::next(TimePoint now) {
  if (pending_.empty() || pending_.begin()->first.when > now) return std::nullopt;
  const auto& [key, entry] = *pending_.begin()->second;
  const auto& [target, text] = key;
  return EventWrite{target, text, entry.count, entry.first, entry.last, entry.name};
}

void EventBook::wrote(const EventWrite& write, const std::string& name, TimePoint now) {
  const auto found = entries_.find({write.target, write.text});
  if (found == entries_.end()) return;
  leave_line(found);
  auto& entry = found->second;
  entry.name = name;
  entry.failures = 0;
  entry.pending = entry.count > write.count;  // it happened again meanwhile
  entry.not_before = now + limits_.again;
  line_up(found);
}

void EventBook::failed(const EventWrite& write, bool may_pass, TimePoint now) {
  const auto found = entries_.find({write.target, write.text});
  if (found == entries_.end()) return;
  leave_line(found);
  auto& entry = found->second;
  entry.not_before = now + limits_.again;
  if (!may_pass || ++entry.failures >= limits_.tries) {
    entry.failures = 0;
    entry.pending = entry.count > write.count;
  }
  line_up(found);
  if (entry.pending) return;
  dropped_ += static_cast<std::uint64_t>(entry.count);
  forget(found);
}

std::optional<TimePoint> EventBook::due() const {
  if (pending_.empty()) return std::nullopt;
  return pending_.begin()->first.when;
}

}  // namespace drover::kube
