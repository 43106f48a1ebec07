#pragma once

// The side of simulated CUDA of the live state (sim/live.h): one slot of the file, mapped, with which a
// process takes memory and time of GPUs that it shares with others. A process that is killed at any
// instruction costs the others nothing, and one that is stopped a fifth of a second for each piece of memory
// that is hard to get.
//
// Thread safe. It is the process's that made it: after fork(), the child must not touch it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "sim/live.h"

namespace drover::sim {

/// How long a process has the GPU before it is another's turn, if one waits.
inline constexpr std::uint64_t kTurnNs = 2'000'000;

/// On the clock of monotonic_ns().
struct Turn {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
};

class LiveProcess {
 public:
  /// Takes a slot. Makes the file when it is missing; where that is not allowed, or it is not a live state,
  /// the process is alone with a state of its own. Null when every slot is taken. `gpus` is how many the
  /// profile has; `groups` are those that the process counts in, for as long as this lives.
  static std::unique_ptr<LiveProcess> open(const std::filesystem::path& file, std::size_t gpus,
                                           const Groups& groups = {});
  ~LiveProcess();  ///< gives all back
  LiveProcess(const LiveProcess&) = delete;
  LiveProcess& operator=(const LiveProcess&) = delete;

  /// Takes `bytes` of a GPU's memory unless live processes would then hold more than `room` bytes together,
  /// or those of a group that has a limit more than that.
  /// Of several that race near the limit, one that fits is never refused because of another that does not.
  /// `gpu` is a position in the profile.
  bool reserve(std::size_t gpu, std::uint64_t bytes, std::uint64_t room);
  void release(std::size_t gpu, std::uint64_t bytes);
  /// What this process holds, and what all that live hold together.
  std::uint64_t held(std::size_t gpu) const;
  std::uint64_t held_by_all(std::size_t gpu);
  /// What its own group may hold, and what it holds; none when it has no limit.
  struct GroupLimit {
    std::uint64_t hard = 0;
    std::uint64_t held = 0;
  };
  std::optional<GroupLimit> own_limit(std::size_t gpu) const;

  /// Takes the next turn on a GPU, of at most kTurnNs: from `ready_ns` on, which may be past, or when the
  /// turns that were taken before end. Whoever asks for one turn at a time shares the GPU evenly.
  Turn take_turn(std::size_t gpu, std::uint64_t ready_ns, std::uint64_t wanted_ns);
  /// Notes that the process had the GPU, once the turn is over.
  void add_busy(std::size_t gpu, Turn turn);

  bool shared() const { return descriptor_ >= 0; }
  std::size_t slot() const { return slot_; }
  /// As live_slots() has them; none when nobody else sees the state.
  SlotOwners slots() const;

 private:
  struct Sum {
    std::uint64_t held = 0;
    std::uint64_t with_wanted = 0;
    bool others_wait = false;  ///< another process is about to take some
  };
  enum class Tried { kTaken, kOthersWait, kNoRoom };  ///< the worst last

  LiveProcess(LiveState* state, std::size_t gpus, int descriptor, std::size_t slot, const Groups& groups);
  /// Of the processes in a group; 0: of all.
  Sum sum(std::size_t gpu, Group group = 0) const;
  /// The nearest that holds this process.
  std::optional<LiveLimit> limit(std::size_t gpu) const;
  Tried try_reserve(std::size_t gpu, std::uint64_t bytes, std::uint64_t room);
  void clear(std::size_t gpu, std::size_t slot);
  void reap(std::size_t gpu);

  LiveState* const state_;
  const std::size_t gpus_;
  const int descriptor_;  ///< -1: nobody else sees the state
  const std::size_t slot_;
  const Groups groups_;
  std::mutex mutex_;
};

}  // namespace drover::sim
