#include "engine/event_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <utility>

#include "control/controller.h"
#include "control/journal.h"
#include "engine/accounting.h"

namespace drover::engine {
namespace {

namespace event = control::event;

constexpr std::chrono::seconds kRetry{1};
constexpr std::chrono::seconds kSilence{10};
/// What waits is decided for so long, and then it is somebody else's turn on the strand.
constexpr std::chrono::milliseconds kTurn{5};
constexpr std::size_t kMostBytes = 4ULL << 20;

/// Numbers start above the time in milliseconds: so they grow, too, when an older journal was put back, or
/// none, and nobody who asks for what came after a number misses anything.
std::uint64_t first_number(const store::Journal& journal, TimePoint now) {
  const auto time = static_cast<std::uint64_t>(now.time_since_epoch().count());
  return std::max(time, journal.last_event().value_or(0));
}

/// If it cannot be kept, another one comes.
bool passes(const control::Event& event) {
  return std::holds_alternative<event::Tick>(event) || std::holds_alternative<event::Checked>(event);
}

/// Of several that follow each other, the last one says it all.
bool replaces(const control::Event& event, const control::Event& earlier) {
  return event.index() == earlier.index() &&
         (std::holds_alternative<event::Tick>(event) || std::holds_alternative<event::NodeChanged>(event));
}

/// Whoever asks again says nothing new.
bool repeats(const control::Event& event, const control::Event& earlier) {
  const auto* stop = std::get_if<event::StopRequested>(&event);
  const auto* other = std::get_if<event::StopRequested>(&earlier);
  return stop != nullptr && other != nullptr && *stop == *other;
}

/// As if they were made one after the other.
store::Changes joined(const std::vector<control::Outcome>& outcomes) {
  std::map<std::string, std::optional<std::string>> last;
  for (const auto& outcome : outcomes) {
    auto [put, removed] = control::changes_of(outcome);
    if (outcomes.size() == 1) return {std::move(put), std::move(removed)};
    for (auto& [key, text] : put) last.insert_or_assign(std::move(key), std::move(text));
    for (auto& key : removed) last.insert_or_assign(std::move(key), std::nullopt);
  }
  store::Changes changes;
  for (auto& [key, text] : last)
    if (text)
      changes.put.emplace_back(key, std::move(*text));
    else
      changes.removed.push_back(key);
  return changes;
}

}  // namespace

EventLoop::EventLoop(const Ports& ports, store::Journal journal, control::State& state, EventHooks hooks)
    : ports_(ports),
      journal_(std::make_shared<store::Journal>(std::move(journal))),
      state_(state),
      hooks_(std::move(hooks)),
      last_event_(first_number(*journal_, ports_.now())),
      unsaved_trouble_(ports.log) {}

void EventLoop::transact(Work run, std::function<void(Status)> done) {
  if (const auto silent = silence()) {
    if (done) done(Failure(*silent));
    return;
  }
  queue_.push_back({.run = std::move(run), .done = std::move(done)});
  go_on();
}

void EventLoop::rehearse(control::State& draft, const Work& run) {
  Batch batch;
  batch.counts = false;
  batch.parts.emplace_back();
  std::swap(state_, draft);
  auto* const open = std::exchange(open_, &batch);
  run();
  settle();
  open_ = open;
  std::swap(state_, draft);
}

Result<control::Made> EventLoop::change(const control::Event& event) {
  if (open_ == nullptr) return fail(ErrorKind::kInternal, "Something was to change outside of a transaction");
  settle();
  if (open_->counts) hooks_.before(event);
  DROVER_TRY(auto outcome, control::decide(state(), event, Moment(ports_.now(), ports_.steady())));
  if (outcome.broken && open_->counts) hooks_.broken(*outcome.broken);
  if (const auto* stop = std::get_if<event::StopRequested>(&event))
    open_->parts.back().stops.push_back(*stop);
  auto made = outcome.made;
  take(std::move(outcome), std::holds_alternative<event::Tick>(event));
  return made;
}

void EventLoop::note(control::Outcome outcome) {
  if (open_ != nullptr) take(std::move(outcome), false);
}

void EventLoop::then(Work work) {
  if (open_ != nullptr) open_->parts.back().then.push_back(std::move(work));
}

void EventLoop::take(control::Outcome outcome, bool is_tick) {
  ++open_->parts.back().outcomes;
  open_->outcomes.push_back(std::move(outcome));
  open_->ticks.push_back(is_tick);
}

void EventLoop::settle() const {
  if (open_ == nullptr || open_->settled == open_->outcomes.size()) return;
  if (!open_->other) open_->other = state_;
  for (; open_->settled < open_->outcomes.size(); ++open_->settled)
    control::apply(state_, open_->outcomes[open_->settled]);
}

void EventLoop::happened(control::Event event) {
  // It need not wait behind what cannot be kept.
  if (std::holds_alternative<event::Checked>(event) && !unsaved_.empty()) return;
  if (silence()) {
    if (passes(event)) return ports_.wake_at(ports_.steady() + kRetry);  // a later tick says what is due
    if (const auto* stop = std::get_if<event::StopRequested>(&event)) hooks_.end_first(*stop);
  }
  if (!unsaved_.empty()) {
    wait(std::move(event));
    return retry();
  }
  queue_.push_back({.event = std::move(event)});
  go_on();
}

void EventLoop::go_on() {
  if (std::exchange(busy_, true)) return;
  while (!queue_.empty()) {
    const auto batch = gather();
    if (std::ranges::any_of(batch->outcomes, control::is_kept)) {
      write(batch);
      if (writes_beside()) return;
    } else {
      finish(*batch, {});
    }
  }
  busy_ = false;
}

/// What waits, decided as if all before it counted already.
std::shared_ptr<EventLoop::Batch> EventLoop::gather() {
  const auto batch = std::make_shared<Batch>();
  const auto until = ports_.steady() + kTurn;
  open_ = batch.get();
  do {
    auto part = std::move(queue_.front());
    queue_.pop_front();
    decide(std::move(part));
  } while (!queue_.empty() && !queue_.front().alone && !batch->parts.back().alone && ports_.steady() < until);
  open_ = nullptr;
  if (batch->other) std::swap(state_, *batch->other);
  return batch;
}

void EventLoop::decide(Part part) {
  open_->parts.push_back(std::move(part));
  auto& own = open_->parts.back();
  own.outcomes = 0;
  own.stops.clear();
  own.then.clear();
  if (own.run) {
    settle();
    return own.run();
  }
  // What the state does not allow any more is passed over.
  if (own.again || unsaved_.empty()) {
    (void)change(*own.event);
    return;
  }
  wait(std::move(*own.event));
  own = {.run = [] {}};
}

void EventLoop::write(const std::shared_ptr<Batch>& batch) {
  batch->leftovers = leftovers_.size();
  writing_since_ = ports_.steady();
  if (*writing_since_ >= watched_until_) watch();
  number_events(*batch);
  for (const auto& outcome : batch->outcomes)
    std::ranges::move(accounts_of(outcome, *writing_since_), std::back_inserter(batch->ended));
  on_journal([this, batch, leftovers = leftovers_](store::Journal& journal) -> Work {
    auto changes = joined(batch->outcomes);
    changes.removed.insert(changes.removed.end(), leftovers.begin(), leftovers.end());
    const auto kept = commits_.time([&] { return journal.commit(changes, batch->events, batch->ended); });
    return [this, batch, kept] {
      writing_since_.reset();
      finish(*batch, kept);
      if (!writes_beside()) return;
      busy_ = false;
      go_on();
    };
  });
}

/// Only here, in the order in which they are told: what is not kept leaves a gap, which nobody minds.
void EventLoop::number_events(Batch& batch) {
  for (const auto& outcome : batch.outcomes)
    for (auto& event : hooks_.events(outcome)) {
      event.number = ++last_event_;
      batch.events.push_back(std::move(event));
    }
}

/// Somebody looks when it has taken too long.
void EventLoop::watch() {
  watched_until_ = *writing_since_ + kSilence;
  ports_.wake_at(watched_until_);
}

void EventLoop::on_journal(std::function<Work(store::Journal&)> work) {
  if (!writes_beside()) return work(*journal_)();
  ports_.journal([this, journal = journal_, work = std::move(work)] { ports_.post(work(*journal)); });
}

void EventLoop::finish(Batch& batch, const Status& kept) {
  if (kept)
    accept(batch);
  else
    undo(batch, kept.error());
}

/// Each outcome is the state before the next one is told of.
void EventLoop::accept(Batch& batch) {
  const auto gone = static_cast<std::ptrdiff_t>(batch.leftovers);
  leftovers_.erase(leftovers_.begin(), leftovers_.begin() + gone);
  const bool is_there = batch.outcomes.size() == 1 && batch.settled == 1;
  if (is_there) state_ = std::move(*batch.other);
  std::size_t next = 0;
  for (auto& part : batch.parts) {
    for (const auto end = next + part.outcomes; next < end; ++next) {
      if (!is_there) control::apply(state_, batch.outcomes[next]);
      hooks_.counts(batch.outcomes[next], batch.ticks[next]);
    }
    if (part.again) {
      unsaved_.pop_front();
      retrying_ = false;
      if (unsaved_.empty()) unsaved_trouble_.report({});
      retry();
    }
    for (const auto& work : part.then) work();
    if (part.done) part.done({});
  }
  if (!batch.events.empty()) hooks_.told(std::move(batch.events));
}

/// One of them may be all that cannot be kept: each is tried by itself.
void EventLoop::undo(Batch& batch, const Error& error) {
  if (batch.parts.size() == 1) return give_up(std::move(batch.parts.front()), error);
  for (auto part = batch.parts.rbegin(); part != batch.parts.rend(); ++part) {
    part->alone = true;
    queue_.push_front(std::move(*part));
  }
}

void EventLoop::give_up(Part part, const Error& error) {
  if (!part.event) {
    for (auto& stop : part.stops) happened(std::move(stop));
    if (part.done) part.done(Failure(error));
    return;
  }
  ports_.wake_at(ports_.steady() + kRetry);
  retrying_ = retrying_ && !part.again;
  if (passes(*part.event)) {
    if (part.again) unsaved_.pop_front();
  } else {
    if (!part.again) wait(std::move(*part.event));
    unsaved_trouble_.report(Failure(context(error, "Failed to record what happened, and will try again")));
  }
}

void EventLoop::wait(control::Event event) {
  const auto first = unsaved_.begin() + (retrying_ ? 1 : 0);
  if (std::any_of(first, unsaved_.end(), [&](const auto& earlier) { return repeats(event, earlier); }))
    return;
  unsaved_.erase(
      std::remove_if(first, unsaved_.end(), [&](const auto& earlier) { return replaces(event, earlier); }),
      unsaved_.end());
  const auto* stop = std::get_if<event::StopRequested>(&event);
  if (stop != nullptr) hooks_.end_first(*stop);
  unsaved_.push_back(std::move(event));
}

void EventLoop::retry() {
  if (unsaved_.empty() || std::exchange(retrying_, true)) return;
  queue_.push_back({.event = unsaved_.front(), .again = true, .alone = true});
  go_on();
}

std::optional<Error> EventLoop::silence() const {
  if (!writing_since_) return std::nullopt;
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(ports_.steady() - *writing_since_);
  if (waited < kSilence) return std::nullopt;
  return Error{ErrorKind::kUnavailable,
               fmt::format("The disk of the state folder has not taken a change for {} s", waited.count()),
               "nothing can be changed until it does: look for what it waits for", ""};
}

void EventLoop::tick() {
  const auto silent = silence();
  if (!silent) {
    if (writing_since_) watch();
    return;
  }
  std::deque<Part> waiting;
  std::swap(queue_, waiting);
  for (auto& part : waiting)
    if (part.event)
      queue_.push_back(std::move(part));
    else if (part.done)
      part.done(Failure(*silent));
}

}  // namespace drover::engine
