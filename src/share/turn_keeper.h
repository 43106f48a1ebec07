#pragma once

// Gives the containers of shared GPUs their turns (share/turns.h): reads what they claim from their accounts,
// and writes into their pages of limits until when they may launch. A thread of its own: every millisecond
// while at least two want the same GPU, less often while they could, and asleep while no GPU
// has two containers, or a strict one. Pages are read and written, and never mapped: a container may truncate
// its account. Whose account cannot be read gets no turn.
//
// When this ends, and wherever it cannot write any more, containers go on without turns within GUARD_BEAT_NS.
// Thread safe.

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "share/turns.h"

namespace drover::share {

/// A container on one GPU whose time it has a share of.
struct Contender {
  std::string gpu;        ///< UUID
  std::string name;       ///< one of the GPU
  int limits = -1;        ///< descriptor of its page of limits, to write to
  int account = -1;       ///< of its account, to read from
  std::size_t entry = 0;  ///< of the GPU in both pages
  int milli = 0;          ///< thousandths, 1 to 1000; the page of limits says the same
  bool strict = false;
};

class Turns {
 public:
  Turns();
  ~Turns();  ///< lets everybody launch
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// From now on these. Who is left out launches without turns; who stays keeps his debts and figures.
  /// Descriptors are duplicated. Refused as a whole, and nothing changes, when one is wrong.
  Status set(const std::vector<Contender>& contenders);

  struct Figures {
    std::string gpu;
    TurnFigures turns;
  };
  /// By GPU, and then as they were set.
  std::vector<Figures> figures() const;

 private:
  struct Pages {
    UniqueFd limits;
    UniqueFd account;
    std::size_t entry = 0;
    bool is_readable = true;     ///< the account
    std::uint64_t until_ns = 0;  ///< as written
    Time written = Time::min();
  };
  struct Gpu {
    GpuTurns turns;
    std::vector<TurnShare> shares;
    std::vector<Pages> pages;
    Time next = Time::min();  ///< step

    bool needs_turns() const;
  };
  using Gpus = std::map<std::string, Gpu>;

  static Result<Gpus> open(const std::vector<Contender>& contenders);
  static std::optional<Claim> claim_of(const Pages& pages);
  static void write(Pages& pages, Time until, Time at);
  static void let_all(Gpus& gpus);
  Time step_all();
  void run();

  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  bool changed_since_ = false;
  bool stopped_ = false;
  Gpus gpus_;
  std::thread thread_;
};

}  // namespace drover::share
