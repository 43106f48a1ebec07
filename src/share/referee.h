#pragma once

// Who holds more of a shared GPU's memory than he was given. Nothing refuses programs memory that is not
// theirs, so it is looked, again and again, at what the driver says they hold; the referee decides what
// follows from the looks:
//
//   over by at most kTolerance, or in a single look    counted
//   over by more in two looks in a row                 an offence, which is told once; where offenders are
//                                                      killed, the task that holds most is ended
//
// An offence is over when nothing was over for kForgiven.
//
// Who holds more because his allowance was made smaller is told, and not ended: he may keep what he holds, as
// long as it does not grow, until he was once within his allowance. Pure, but for what it remembers of
// earlier looks: the time is passed in. Not thread safe.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/usage.h"

namespace drover::share {

using Time = std::chrono::steady_clock::time_point;

inline constexpr std::uint64_t kTolerance = 64ULL << 20;        ///< bytes; contexts of the driver come and go
inline constexpr std::chrono::milliseconds kInterval{100};      ///< between looks
inline constexpr std::chrono::milliseconds kForgiven{10'000};   ///< within its share, until it is forgotten
inline constexpr std::chrono::milliseconds kEndedAgain{1'000};  ///< where somebody is still over

/// What becomes of offenders: they are told; ended if they went round the guard (kGuarded); ended.
enum class Punishment { kReport, kKillGuarded, kKill };

/// What one task, or those of a group together, may hold of one GPU.
struct Allowance {
  std::string gpu;              ///< UUID
  std::string name;             ///< of the task or the group: one name, one allowance of a GPU
  std::set<std::string> tasks;  ///< their ids
  std::uint64_t bytes = 0;
  std::string tier = {};      ///< gpu/share_tier.h
  std::uint64_t earlier = 0;  ///< more than `bytes`: so much it was, before it was made smaller

  bool operator==(const Allowance&) const = default;
};

/// Of one process on one GPU.
struct HeldMemory {
  std::uint32_t pid = 0;
  std::uint64_t bytes = 0;
  std::uint64_t born = 0;  ///< when the process was started, in ticks of the kernel; 0: it is not there
  std::string task;        ///< "": it is in none
};

/// At one GPU.
struct Look {
  gpu::Reading
      used;  ///< of the whole GPU, without what the driver keeps for itself; absent when it tells not
  std::vector<HeldMemory> processes;
};
using Looks = std::map<std::string, Look>;  ///< by UUID; a GPU that did not answer is not among them

struct Verdict {
  enum class Kind { kOffence, kEnd };
  Kind kind = Kind::kOffence;
  std::string task;  ///< that holds most
  Allowance allowance;
  std::uint64_t held = 0;  ///< by all of them

  bool operator==(const Verdict&) const = default;
};

/// Since the allowance is watched.
struct Account {
  Allowance allowance;
  std::uint64_t held = 0;      ///< in the last look
  std::uint64_t overruns = 0;  ///< looks in which more was held than granted
  std::uint64_t offences = 0;
};

class Referee {
 public:
  explicit Referee(Punishment punishment) : punishment_(punishment) {}

  /// From now on these hold. What is remembered of others is forgotten.
  void set(std::vector<Allowance> allowances);
  /// What follows from looks at `at`; by allowance, as they were set.
  std::vector<Verdict> judge(const Looks& looks, Time at);

  const std::vector<Account>& accounts() const { return accounts_; }
  /// Bytes of GPUs that are held by no task's process, as far as the driver tells; by UUID, as of the last
  /// look at each.
  const std::map<std::string, std::uint64_t>& unattributed() const { return unattributed_; }

 private:
  /// What is remembered of an account.
  struct Memory {
    std::optional<Time> over_since;  ///< in every look since
    std::optional<Time> offended;    ///< an offence is under way, and was seen last then
    std::optional<Time> ended;       ///< somebody was, last
    std::uint64_t spared = 0;        ///< more than the allowance: so much may be held until it was less
  };
  /// Its process is another one than the one that the driver told of first.
  bool is_reused(const std::string& gpu, const HeldMemory& process) const;
  void remember_processes(const std::string& gpu, const Look& look);
  std::map<std::string, std::uint64_t> held_by_task(const std::string& gpu, const Look& look) const;
  void judge_one(Account& account, Memory& memory, const std::map<std::string, std::uint64_t>& held, Time at,
                 std::vector<Verdict>& verdicts) const;

  const Punishment punishment_;
  std::vector<Account> accounts_;
  std::vector<Memory> memories_;                                        ///< of each account
  std::map<std::string, std::map<std::uint32_t, std::uint64_t>> born_;  ///< by GPU and process, while told of
  std::map<std::string, std::uint64_t> unattributed_;
};

}  // namespace drover::share
