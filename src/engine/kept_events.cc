#include "engine/kept_events.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "control/retention.h"

namespace drover::engine {
namespace {

/// Takes about a millisecond to read, and some to remove.
constexpr std::size_t kRowsAtOnce = 1000;
constexpr std::size_t kMostRemovedAtOnce = 250;
/// Of as many as there may be: so many more come before some go.
constexpr std::size_t kPartRemoved = 10;

}  // namespace

Result<EventPage> KeptEvents::page_of(const store::Journal& journal, const Reading& reading) {
  const auto& query = reading.query;
  const bool backwards = reading.order == EventOrder::kNewestFirst;
  EventPage page;
  page.reached = backwards ? query.before : query.after;
  bool full = false;
  DROVER_TRY(const auto visited, journal.visit_events({query.after, query.before, backwards}, kRowsAtOnce,
                                                      [&](const EventView& event) {
                                                        full = !page.add(reading.caller, query, event);
                                                        return !full;
                                                      }));
  page.end = !full && visited < kRowsAtOnce;
  if (page.end && !backwards) page.reached = std::max(page.reached, std::min(reading.last, query.before - 1));
  return page;
}

void KeptEvents::read(const Caller& caller, const EventQuery& query, EventOrder order, std::uint64_t last,
                      EventPageTaker done) {
  waiting_[caller.user.uid].push_back({caller, query, order, last, std::move(done)});
  read_next();
}

void KeptEvents::read_next() {
  if (reading_ || waiting_.empty()) return;
  auto next = waiting_.upper_bound(turn_);
  if (next == waiting_.end()) next = waiting_.begin();
  turn_ = next->first;
  const auto reading = std::make_shared<Reading>(std::move(next->second.front()));
  next->second.pop_front();
  if (next->second.empty()) waiting_.erase(next);
  reading_ = true;
  loop_.on_journal([this, reading](store::Journal& journal) -> Work {
    auto page = std::make_shared<Result<EventPage>>(page_of(journal, *reading));
    return [this, reading, page] {
      reading_ = false;
      reading->done(std::move(*page));
      read_next();
    };
  });
}

void KeptEvents::refuse(const Error& error) {
  for (auto& [user, readings] : std::exchange(waiting_, {}))
    for (auto& reading : readings) reading.done(Failure(error));
}

void KeptEvents::start(std::uint64_t last) {
  last_ = last;
  count();
}

void KeptEvents::count() {
  counts_.clear();
  total_ = 0;
  counted_ = false;
  count_after(0, last_);
}

void KeptEvents::count_after(std::uint64_t number, std::uint64_t last) {
  loop_.on_journal([this, number, last](store::Journal& journal) -> Work {
    store::EventCounts counts;
    auto reached = number;
    const auto visited = journal.visit_events({number, last + 1}, kRowsAtOnce, [&](const EventView& event) {
      ++counts[event.owner];
      reached = event.number;
      return true;
    });
    return [this, counts, reached, last, visited] {
      for (const auto& [owner, count] : counts) {
        counts_[owner] += count;
        total_ += count;
      }
      if (!visited) trouble_.report(Failure(visited.error()));
      if (visited && *visited == kRowsAtOnce) return count_after(reached, last);
      counted_ = true;
      tidy();
    };
  });
}

void KeptEvents::added(const std::vector<EventView>& events, bool disk_is_full) {
  last_ = events.back().number;
  for (const auto& event : events) ++counts_[event.owner];
  total_ += events.size();
  // They make way for the accounts that come with them, too (kept_allocations.h).
  room_ = disk_is_full ? room_ - std::min(room_, 2 * events.size()) : 0;
  if (disk_is_full && room_ < piece() / 2)
    remove_before(TimePoint::max());
  else if (total_ > limits_.most + limits_.most / kPartRemoved)
    trim();
}

std::size_t KeptEvents::piece() const {
  return std::clamp<std::size_t>(limits_.most / kPartRemoved, 1, kMostRemovedAtOnce);
}

/// Of one owner at a time.
void KeptEvents::trim() {
  if (!counted_ || removing_) return;
  const auto lost = control::events_to_forget(counts_, limits_.most);
  if (lost.empty()) return;
  const auto whose = *std::ranges::max_element(lost, {}, [](const auto& entry) { return entry.second; });
  remove([owner = whose.first, most = std::min(whose.second, piece())](
             store::Journal& journal) { return journal.remove_events_of(owner, most); },
         [this](std::size_t removed) { removed > 0 ? trim() : count(); });
}

void KeptEvents::tidy() {
  remove_before(ports_.steady() - limits_.longest);
}

void KeptEvents::remove_before(TimePoint steady) {
  if (!counted_ || removing_) return;
  const bool for_room = steady == TimePoint::max();
  remove([steady,
          most = piece()](store::Journal& journal) { return journal.remove_events_before(steady, most); },
         [this, steady, for_room](std::size_t removed) {
           if (for_room) room_ += removed;
           if (removed >= piece() && !for_room) return remove_before(steady);
           if (total_ > limits_.most + limits_.most / kPartRemoved) trim();
         });
}

void KeptEvents::remove(Remove remove, std::function<void(std::size_t)> then) {
  removing_ = true;
  loop_.on_journal(
      [this, remove = std::move(remove), then = std::move(then)](store::Journal& journal) -> Work {
        return [this, removed = remove(journal), then] {
          removing_ = false;
          trouble_.report(removed.map([](const auto&) {}));
          if (!removed) return;
          std::size_t all = 0;
          for (const auto& [owner, gone] : *removed) {
            const auto own = counts_.find(owner);
            if (own == counts_.end()) continue;
            own->second -= std::min(own->second, gone);
            if (own->second == 0) counts_.erase(own);
            all += gone;
          }
          total_ -= std::min(total_, all);
          then(all);
        };
      });
}

}  // namespace drover::engine
