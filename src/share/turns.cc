#include "share/turns.h"

#include <algorithm>
#include <utility>

namespace drover::share {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kWantedFor = milliseconds(10);     // after somebody has asked
constexpr Duration kContendedFor = milliseconds(50);  // the same: turns do not begin and end all the time
constexpr Duration kLending = milliseconds(5);  // at a time: whoever comes waits no longer for what was lent
constexpr Duration kLead = milliseconds(2);     // before a turn ends, it is made longer
constexpr Duration kTick = milliseconds(1);
constexpr Duration kDrainTick = microseconds(200);
constexpr Duration kRestTick = milliseconds(10);
constexpr Duration kQuietTick = milliseconds(25);  // while nobody asks

}  // namespace

bool GpuTurns::Member::wants(Time at) const {
  return wanted && at - *wanted < kWantedFor && !overran;
}

void GpuTurns::set(std::vector<TurnShare> shares, Time at) {
  if (phase_ == Phase::kTurn || phase_ == Phase::kDrain) end_turn(at);
  const auto holder = members_.empty() ? "" : members_[holder_].share.name;
  auto before = std::exchange(members_, {});
  for (auto& share : shares) {
    const auto same =
        std::ranges::find(before, share.name, [](const Member& member) { return member.share.name; });
    auto& member = members_.emplace_back();
    member.since = at;
    if (same != before.end()) member = std::move(*same);
    member.figures.name = share.name;
    member.share = std::move(share);
  }
  phase_ = Phase::kNobody;
  const auto place =
      std::ranges::find(members_, holder, [](const Member& member) { return member.share.name; });
  holder_ = place == members_.end() ? 0 : static_cast<std::size_t>(place - members_.begin());
}

void GpuTurns::step(const std::vector<Claim>& claims, Time at) {
  const auto passed = stepped_ == Time::min() ? Duration(0) : at - stepped_;
  stepped_ = at;
  for (std::size_t i = 0; i < members_.size() && i < claims.size(); ++i)
    observe(members_[i], claims[i], passed, at);
  if (phase_ == Phase::kTurn || phase_ == Phase::kDrain) follow(at);
  if (phase_ == Phase::kTurn || phase_ == Phase::kDrain) return;
  phase_ = is_contended(at) ? Phase::kNobody : Phase::kFree;
  if (phase_ == Phase::kNobody) choose(at);
}

void GpuTurns::observe(Member& member, const Claim& claim, Duration passed, Time at) {
  const auto before = member.last.value_or(claim);
  const Duration known = at - member.since;
  member.moved = claim.asked != before.asked;
  if (member.moved) member.wanted = at;
  if (!claim.in_flight || (member.overran && at - *member.overran >= kForgotten)) member.overran.reset();
  // Whoever stays away pays his debt with the time that would have been his.
  if (!member.wants(at) && !member.overran && member.credit < Duration(0))
    member.credit = std::min(Duration(0), member.credit + passed * member.share.milli / 1000);
  auto& figures = member.figures;
  const auto more = claim.busy > before.busy ? std::min(claim.busy - before.busy, known) : Duration(0);
  figures.busy = std::min(figures.busy + more, known);
  figures.longest = std::max(figures.longest, std::min(claim.longest, known));
  member.last = claim;
}

bool GpuTurns::is_contended(Time at) const {
  int lenient = 0;
  for (const auto& member : members_) {
    if (!member.wanted || at - *member.wanted >= kContendedFor) continue;
    if (member.share.strict) return true;
    ++lenient;
  }
  return lenient > 1;
}

bool GpuTurns::others_want(Time at) const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& member = members_[i];
    if (i != holder_ && member.wants(at) && (!member.share.strict || member.due <= at + kLending))
      return true;
  }
  return false;
}

void GpuTurns::follow(Time at) {
  auto& holder = members_[holder_];
  const bool in_flight = holder.last && holder.last->in_flight;
  if (phase_ == Phase::kTurn) {
    if (holder.moved || in_flight) active_ = at;
    if (at - active_ >= kIdle) {
      holder.wanted.reset();
      end_turn(active_);
      holder.credit = std::min(holder.credit, Duration(0));
      return;
    }
    if (!holder.share.strict && until_ - at <= kLead && at < until_ && !others_want(at)) {
      until_ += kLending;
      lent_ += kLending;
    }
    if (at < until_) return;
    phase_ = Phase::kDrain;
  }
  if (in_flight && at - until_ < kPatience) return;
  if (in_flight) {
    holder.overran = at;
    ++holder.figures.overruns;
  }
  end_turn(at);
}

void GpuTurns::end_turn(Time at) {
  auto& holder = members_[holder_];
  const auto held = std::max(at - started_, Duration(0));
  const auto lent = std::min(lent_, held);
  holder.figures.held += held;
  holder.figures.lent += lent;
  holder.credit = std::max(holder.credit - (held - lent), -kMostDebt);
  phase_ = Phase::kNobody;
}

// Rounds go on until somebody is out of debt; they end when nobody may earn.
void GpuTurns::choose(Time at) {
  for (bool earned = true; earned;) {
    earned = false;
    for (std::size_t step = 1; step <= members_.size(); ++step) {
      const auto index = (holder_ + step) % members_.size();
      auto& member = members_[index];
      if (!member.wants(at) || !earn(member, at)) continue;
      earned = true;
      if (member.credit >= kShortest) return grant(index, at);
    }
  }
}

bool GpuTurns::earn(Member& member, Time at) const {
  if (member.share.strict) {
    if (at < member.due) return false;
    // Late by less than a period, it comes earlier the next time.
    const bool is_regular = member.due != Time::min() && member.due + kPeriod > at;
    member.due = (is_regular ? member.due : at) + kPeriod;
  }
  member.credit = std::min(member.credit + member.slice(), std::max(2 * member.slice(), kShortest));
  return member.slice() > Duration(0);
}

void GpuTurns::grant(std::size_t index, Time at) {
  auto& member = members_[index];
  until_ = at + std::min(member.credit, std::max(member.slice(), kShortest));
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& other = members_[i];
    if (i != index && other.share.strict && other.wants(at) && other.due > at)
      until_ = std::min(until_, std::max(other.due, at + kShortest));
  }
  holder_ = index;
  phase_ = Phase::kTurn;
  started_ = active_ = at;
  lent_ = Duration(0);
  ++member.figures.turns;
}

Time GpuTurns::admitted_until(std::size_t member) const {
  if (phase_ == Phase::kFree) return members_[member].share.strict ? Time::min() : Time::max();
  return phase_ == Phase::kTurn && member == holder_ ? until_ : Time::min();
}

Duration GpuTurns::patience() const {
  const auto asks = [this](const Member& member) {
    return member.wanted && stepped_ - *member.wanted < kContendedFor;
  };
  if (phase_ == Phase::kFree) return std::ranges::any_of(members_, asks) ? kRestTick : kQuietTick;
  return phase_ == Phase::kDrain ? kDrainTick : kTick;
}

std::vector<TurnFigures> GpuTurns::figures() const {
  std::vector<TurnFigures> all;
  for (const auto& member : members_) all.push_back(member.figures);
  return all;
}

}  // namespace drover::share
