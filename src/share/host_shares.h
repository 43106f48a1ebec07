#pragma once

// What is arranged on this machine for those who share its GPUs, and put back when nobody wants it any more:
// time slices, compute modes, MPS daemons. Who wants what, and what was before, is in a file before anything
// is done, so whoever comes after one who was killed puts it back, or goes on. Blocks while NVIDIA's programs
// answer, which has a deadline. Thread safe.
//
//   HostShares shares({state, [] { return programs; }, warn});
//   shares.make("claim-…", arrangement);  …  shares.undo("claim-…");
//   every few seconds: shares.keep();

#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "base/result.h"
#include "share/gpu_settings.h"
#include "share/ledger.h"
#include "share/mps_daemons.h"

namespace drover::share {

class HostShares {
 public:
  struct Options {
    std::string state;  ///< folder; nobody else writes there
    std::function<Result<Programs>()> programs;
    std::function<void(const std::string& sentence)> warn;
    /// Hears of an owner whose MPS daemon had ended and is another one now: what its clients had is lost. May
    /// be empty.
    std::function<void(const std::string& owner)> restarted = {};
  };
  /// Does nothing yet.
  explicit HostShares(Options options);

  /// From now on the owner has that. The same again does what is missing. kConflict, and nothing is changed,
  /// when somebody else has something else on one of the GPUs. On an error what he had before stays, and what
  /// was begun is undone; what of it cannot be is the owner's until end(), undo() or keep() gets through.
  Status make(const std::string& owner, const Arrangement& arrangement);
  /// One that has nothing is fine. What cannot be put back now is tried again by keep().
  Status undo(const std::string& owner);
  /// The same for one with MPS alone whose GPUs are about to be somebody else's: an Error as long as anything
  /// of it is left, and then it may be called again. make() has it all again.
  Status end(const std::string& owner);
  /// Undoes what those owners have whose names begin so and that `is_there` does not know.
  Status keep_only(const std::string& prefix, const std::function<bool(const std::string& owner)>& is_there);
  /// Starts daemons again that have ended, which is warned of, and tries again what could not be put back.
  Status keep();
  MpsPlaces places(const std::string& owner) const { return daemons_.places(owner); }
  /// Processes of all MPS daemons, which the driver tells of beside those of their clients. Waits for nobody.
  std::set<pid_t> processes() const { return daemons_.processes(); }

 private:
  Status load();
  Status write() const;
  Status settle(const std::string& owner);
  Status set_exclusive(const Programs& programs, const std::string& gpu);
  Status put_back();
  Status put_back(const Programs& programs, const std::string& gpu);
  Status drop(const std::string& owner);
  Status end_now(const std::string& owner);
  Status start_daemon(const std::string& owner, const MpsLimits& limits, const Programs& programs);
  Status end_ownerless();

  const Options options_;
  std::mutex mutex_;  ///< of what follows
  bool loaded_ = false;
  Ledger ledger_;
  std::set<std::string> settled_;  ///< owners, by this process
  std::set<std::string> ending_;   ///< owners that end() has not come through with
  MpsDaemons daemons_;
};

}  // namespace drover::share
