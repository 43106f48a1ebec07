#pragma once

// Whose turn it is on a GPU that several containers share, each with a share of its time. While at most one
// of them wants the GPU nobody waits. As soon as two do they take turns, by deficit round robin (Shreedhar
// and Varghese, 1995):
//
//   - One round gives each who wants the GPU a slice, its share of kPeriod. Whoever does not want it is left
//     out, so the round is shorter, and the others have his part. Nobody saves up what he did not want.
//   - A turn costs what it lasted, from its beginning until no work is in flight any more; so what is too
//     long is paid back from later slices, up to kMostDebt. How busy the container says it was counts for
//     nothing.
//   - A turn in which nothing happens for kIdle is over. So is one whose work does not end for kPatience,
//     which is told as an overrun: whoever overran gets no slice until his work has ended, or kForgotten.
//   - A strict share is a limit too: one slice each kPeriod, whoever else wants the GPU or not. When it is
//     due, turns of others end.
//
// Pure: the time is passed in, and what containers claim, which may be anything. Not thread safe.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "share/referee.h"

namespace drover::share {

using Duration = std::chrono::nanoseconds;

inline constexpr Duration kPeriod = std::chrono::milliseconds(100);
inline constexpr Duration kMostDebt = 2 * kPeriod;
inline constexpr Duration kPatience = 2 * kPeriod;                   ///< with work in flight after a turn
inline constexpr Duration kShortest = std::chrono::milliseconds(1);  ///< turn; smaller slices are saved up
inline constexpr Duration kIdle = std::chrono::milliseconds(5);
inline constexpr Duration kForgotten = std::chrono::seconds(1);

struct TurnShare {
  std::string name;
  int milli = 0;  ///< thousandths of the GPU's time, above 0
  bool strict = false;
};

/// What the processes of a container say of one GPU; see struct guard_use.
struct Claim {
  std::uint64_t asked = 0;  ///< changes while they launch, or wait to
  Duration busy{0};         ///< since the container began
  Duration longest{0};      ///< kernel or graph
  bool in_flight = false;
};

/// Since the share is known.
struct TurnFigures {
  std::string name;
  std::uint64_t turns = 0;
  std::uint64_t overruns = 0;
  Duration held{0};     ///< turns
  Duration lent{0};     ///< of these, because nobody else wanted the GPU
  Duration busy{0};     ///< as the container says, and never more than the time that has passed
  Duration longest{0};  ///< the same
};

class GpuTurns {
 public:
  /// From now on these; who was there before by his name keeps his debts and figures.
  void set(std::vector<TurnShare> shares, Time at);
  /// `claims` as the shares were set. Times never go back.
  void step(const std::vector<Claim>& claims, Time at);

  /// Until when launches of one are admitted: Time::max() while nobody else wants the GPU, Time::min() while
  /// it is not his turn.
  Time admitted_until(std::size_t member) const;
  /// How long the next step may take to come.
  Duration patience() const;
  std::vector<TurnFigures> figures() const;

 private:
  enum class Phase { kFree, kNobody, kTurn, kDrain };
  struct Member {
    TurnShare share;
    TurnFigures figures;
    Time since;
    std::optional<Claim> last;
    bool moved = false;           ///< in this step
    std::optional<Time> wanted;   ///< when it was seen to ask last
    Duration credit{0};           ///< of time; negative: debt
    Time due = Time::min();       ///< the next slice of a strict one
    std::optional<Time> overran;  ///< its work in flight is from a turn that was over then

    Duration slice() const { return kPeriod * share.milli / 1000; }
    bool wants(Time at) const;
  };

  void observe(Member& member, const Claim& claim, Duration passed, Time at);
  bool is_contended(Time at) const;
  bool others_want(Time at) const;
  void follow(Time at);
  void end_turn(Time at);
  void choose(Time at);
  bool earn(Member& member, Time at) const;
  void grant(std::size_t index, Time at);

  std::vector<Member> members_;
  Phase phase_ = Phase::kFree;
  std::size_t holder_ = 0;  ///< of the turn, or of the last one
  Time stepped_ = Time::min();
  Time started_;  ///< the turn
  Time until_;
  Time active_;       ///< something was seen to happen in it
  Duration lent_{0};  ///< of it
};

}  // namespace drover::share
