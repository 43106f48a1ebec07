// Containers that launch as the guard lets them, played in steps of a quarter of a millisecond.

#include "share/turns.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace drover::share {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStep = 250us;

/// One that wants the GPU whenever `wants`, with kernels of one length, of which one more is launched as soon
/// as less than 2 ms are in flight.
struct Player {
  TurnShare share;
  Duration kernel = 1ms;
  std::function<bool(Time)> wants = [](Time) { return true; };
  std::function<void(Claim&)> lie = [](Claim&) {};
  Claim claim{};
  Duration left{0};  ///< of what is in flight
  Duration used{0};
  Duration longest_wait{0};
  Time waits_since{};

  void launch(Time until, Time at) {
    if (!wants(at)) {
      waits_since = at;
      return;
    }
    ++claim.asked;
    if (at < until || left > Duration(0)) waits_since = at;
    longest_wait = std::max(longest_wait, at - waits_since);
    while (at < until && left < 2ms) left += kernel;
  }
};

/// A GPU that runs what is in flight, evenly for all.
class Play {
 public:
  explicit Play(std::vector<Player> players) : players_(std::move(players)) {
    std::vector<TurnShare> shares;
    for (auto& player : players_) {
      shares.push_back(player.share);
      player.waits_since = now_;
    }
    turns_.set(shares, now_);
  }
  void run(Duration duration) {
    for (const auto end = now_ + duration; now_ < end; now_ += kStep) {
      if (now_ >= next_) {
        std::vector<Claim> claims;
        for (auto& player : players_) {
          auto claim = player.claim;
          claim.in_flight = player.left > Duration(0);
          player.lie(claim);
          claims.push_back(claim);
        }
        turns_.step(claims, now_);
        next_ = now_ + std::min(turns_.patience(), Duration(1ms));
      }
      for (std::size_t i = 0; i < players_.size(); ++i) players_[i].launch(turns_.admitted_until(i), now_);
      const auto busy =
          std::ranges::count_if(players_, [](const Player& player) { return player.left > Duration(0); });
      if (busy == 0) idle_ += kStep;
      for (auto& player : players_) {
        const auto part = std::min(player.left, kStep / std::max<long>(busy, 1));
        player.left -= part;
        player.used += part;
        player.claim.busy += part;
      }
    }
  }
  /// Of the GPU's time that anybody used, in thousandths.
  long milli(std::size_t player) const {
    Duration all{0};
    for (const auto& each : players_) all += each.used;
    return all == Duration(0) ? 0 : 1000 * players_[player].used / all;
  }
  Duration used(std::size_t player) const { return players_[player].used; }
  Duration idle() const { return idle_; }
  const Player& player(std::size_t index) const { return players_[index]; }
  TurnFigures figures(std::size_t player) const { return turns_.figures()[player]; }
  GpuTurns& turns() { return turns_; }

 private:
  std::vector<Player> players_;
  GpuTurns turns_;
  Time now_ = Time(1h);
  Time next_ = now_;
  Duration idle_{0};
};

Player player(const std::string& name, int milli, Duration kernel = 1ms, bool strict = false) {
  return {.share = {name, milli, strict}, .kernel = kernel};
}
std::function<bool(Time)> never() {
  return [](Time) { return false; };
}

TEST(GpuTurnsTest, EverybodyGetsHisShare) {
  Play two({player("a", 300), player("b", 700)});
  two.run(10s);
  EXPECT_NEAR(two.milli(0), 300, 20);
  Play three({player("a", 250, 50us), player("b", 250, 2ms), player("c", 500, 10ms)});
  three.run(10s);
  EXPECT_NEAR(three.milli(0), 250, 20);
  EXPECT_NEAR(three.milli(1), 250, 20);
  EXPECT_LT(three.idle(), 500ms);
  EXPECT_GT(three.figures(0).turns, 50U);
}

TEST(GpuTurnsTest, LongKernelsArePaidBack) {
  Play play({player("long", 250, 70ms), player("short", 750, 100us)});
  play.run(20s);
  EXPECT_NEAR(play.milli(0), 250, 30);
  EXPECT_EQ(play.figures(0).overruns, 0U);
}

TEST(GpuTurnsTest, AKernelThatDoesNotEndHoldsUpNobodyForLong) {
  Play play({player("endless", 500, 3s), player("short", 500)});
  play.run(12s);
  EXPECT_GT(play.figures(0).overruns, 0U);
  EXPECT_LT(play.player(1).longest_wait, 500ms);
  EXPECT_GT(play.milli(1), 300);
}

TEST(GpuTurnsTest, WhatOneDoesNotWantTheOthersHave) {
  Play play({player("a", 250), player("b", 250), player("idle", 500)});
  Player idle = player("idle", 500);
  idle.wants = never();
  Play lent({player("a", 250), player("b", 250), idle});
  lent.run(5s);
  EXPECT_NEAR(lent.milli(0), 500, 20);
  EXPECT_LT(lent.idle(), 250ms);
  Play alone({player("a", 250), idle});
  alone.run(5s);
  EXPECT_EQ(alone.turns().admitted_until(0), Time::max());
  EXPECT_GE(alone.used(0), 4950ms);
}

// Its neighbour comes once in a while, for a kernel: between, all is lent.
TEST(GpuTurnsTest, AVisitorCostsLittle) {
  Player visitor = player("visitor", 500);
  visitor.wants = [](Time at) { return at.time_since_epoch() % 200ms < kStep; };
  Play play({player("a", 500), visitor});
  play.run(10s);
  EXPECT_LT(play.idle(), 500ms);
  EXPECT_GT(play.used(0), 9s);
}

TEST(GpuTurnsTest, AStrictShareIsALimitAndNoLess) {
  Player idle = player("idle", 500);
  idle.wants = never();
  Play alone({player("strict", 250, 1ms, true), idle});
  alone.run(10s);
  EXPECT_NEAR(static_cast<double>(alone.used(0).count()), 2.5e9, 2.5e8);
  Play beside({player("strict", 250, 1ms, true), player("other", 500)});
  beside.run(10s);
  EXPECT_NEAR(beside.milli(0), 250, 25);
  EXPECT_LT(beside.idle(), 500ms);
  Play both({player("a", 300, 1ms, true), player("b", 200, 1ms, true)});
  both.run(10s);
  EXPECT_NEAR(static_cast<double>(both.used(0).count()), 3e9, 3e8);
  EXPECT_NEAR(static_cast<double>(both.used(1).count()), 2e9, 2e8);
}

TEST(GpuTurnsTest, LiesGetNobodyMoreThanHisShare) {
  const std::map<std::string, std::function<void(Claim&)>> lies{
      {"never busy", [](Claim& claim) { claim.busy = Duration(0); }},
      {"always in flight", [](Claim& claim) { claim.in_flight = true; }},
      {"never in flight", [](Claim& claim) { claim.in_flight = false; }},
      {"time runs backwards", [](Claim& claim) { claim.busy = -claim.busy, claim.asked = ~claim.asked; }},
      {"busier than time", [](Claim& claim) { claim.busy *= 1000, claim.longest = Duration::max(); }},
      {"in flight at times", [](Claim& claim) { claim.in_flight = claim.asked % 7 < 5; }},
  };
  for (const auto& [what, lie] : lies) {
    SCOPED_TRACE(what);
    auto liar = player("liar", 500);
    liar.lie = lie;
    Play play({liar, player("honest", 500)});
    play.run(20s);
    EXPECT_LE(play.milli(0), 530);
    EXPECT_GE(play.used(1), 5s);
    EXPECT_LE(play.figures(0).busy, 20s);
    EXPECT_LE(play.figures(0).longest, 20s);
  }
}

// It is stopped in its turn: what it last said stays.
TEST(GpuTurnsTest, AStoppedOneHoldsUpNobody) {
  auto stopped = player("stopped", 500);
  const auto from = Time(1h) + 1s;
  stopped.wants = [=](Time at) { return at < from; };
  Claim last;
  stopped.lie = [last](Claim& claim) mutable {
    if (claim.in_flight) last = claim;
    claim.in_flight = true;
  };
  Play play({stopped, player("other", 500)});
  play.run(2s);
  const auto before = play.used(1);
  play.run(5s);
  EXPECT_GE(play.used(1) - before, 4750ms);
}

TEST(GpuTurnsTest, WhoStaysKeepsHisDebtsAndFigures) {
  Play play({player("a", 500), player("b", 500)});
  play.run(1s);
  const auto turns = play.figures(1).turns;
  EXPECT_GT(turns, 5U);
  play.turns().set({{"c", 100, false}, {"b", 500, false}}, Time(2h));
  EXPECT_EQ(play.turns().figures()[1].turns, turns);
  EXPECT_EQ(play.turns().figures()[0].turns, 0U);
}

/// Shares that add up to at most all, with kernels of any length.
RC_GTEST_PROP(GpuTurnsPropTest, NobodyStarvesAndNothingIsWasted, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(2, 6);
  std::vector<Player> players;
  int sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto milli = *rc::gen::inRange(50, 1000 / static_cast<int>(count) + 1);
    const auto kernel = std::chrono::microseconds(*rc::gen::inRange(500, 20'000));
    sum += milli;
    players.push_back(player("p" + std::to_string(i), milli, kernel));
  }
  Play play(players);
  play.run(4s);
  for (std::size_t i = 0; i < count; ++i) {
    const auto fair = 1000L * players[i].share.milli / sum;
    RC_ASSERT(play.milli(i) >= fair - 60);
    RC_ASSERT(play.milli(i) <= fair + 60);
    RC_ASSERT(play.player(i).longest_wait <= 1s);
  }
  RC_ASSERT(play.idle() <= 400ms);
}

RC_GTEST_PROP(GpuTurnsPropTest, AtMostOneHasATurnWhateverIsClaimed, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<TurnShare> shares;
  for (std::size_t i = 0; i < count; ++i)
    shares.push_back({std::to_string(i), *rc::gen::inRange(1, 1001), *rc::gen::arbitrary<bool>()});
  GpuTurns turns;
  auto now = Time(1h);
  turns.set(shares, now);
  std::vector<Claim> claims(count);
  for (int step = 0; step < 300; ++step, now += *rc::gen::inRange(0, 20'000) * 1us) {
    for (auto& claim : claims) {
      claim.asked = *rc::gen::arbitrary<std::uint64_t>() % 3;
      claim.in_flight = *rc::gen::arbitrary<bool>();
      claim.busy = Duration(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62));
      claim.longest = Duration(*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 62));
    }
    turns.step(claims, now);
    std::size_t admitted = 0;
    for (std::size_t i = 0; i < count; ++i)
      admitted += turns.admitted_until(i) > now && turns.admitted_until(i) != Time::max();
    RC_ASSERT(admitted <= 1U);
    RC_ASSERT(turns.patience() > Duration(0));
  }
}

}  // namespace
}  // namespace drover::share
