#pragma once

// The room that a plan hands out, at three moments, as clusters to ask:
//   brief()    what is free now and will not be needed soon; for jobs that end before the reservation begins
//   lasting()  what is in addition not needed by the reservation; for all others
//   soon()     what will be free when everything that is ending has ended, apart from what the reservation
//   needs
// Room is kept by allocating, beside what really runs, what is needed later and is free now: node by node,
// the most that is short at any of the later moments. So nothing that fits into lasting() can delay anybody.
//
// It works on the caller's cluster, and puts it back as it was when it ends. One plan long.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "placement/schedule.h"
#include "placement/schedule/footprint.h"
#include "placement/schedule/limits.h"

namespace drover::placement::schedule {

class Room {
 public:
  /// `cluster` holds the running jobs, `ending` is to end soon. Both outlive this.
  Room(Cluster& cluster, const std::vector<const RunningJob*>& ending);
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room();

  Cluster& brief() { return cluster_; }
  Cluster& lasting() { return lasting_ ? *lasting_ : cluster_; }
  Cluster& soon();
  /// Whether anything is kept for a reservation, that is, whether brief() and lasting() differ.
  bool reserved() const { return lasting_ != nullptr; }
  /// Whether soon() may have more room than brief(), or other room.
  bool changes_soon() const { return changes_soon_; }

  /// Starts it where it was placed, in brief() or lasting().
  Status start(const Job& job, const std::vector<Decision>& decisions, Span span);
  /// Keeps room for a job placed in soon() after `victims` are gone, who are to end now.
  void hold(const Job& job, const std::vector<Decision>& decisions,
            const std::vector<const RunningJob*>& victims);
  /// Keeps room for a job that starts when `gone` have ended. At most once.
  void reserve(const Job& job, const std::vector<Decision>& decisions,
               const std::vector<const RunningJob*>& gone);

  /// The cluster with what was started and nothing kept: what is free now. Only after the last of the above.
  Cluster& bare();

 private:
  /// On a node, against what is taken of it now.
  struct Balance {
    Footprint soon;   ///< what will be taken more (or less, where negative) soon
    Footprint peak;   ///< the most of that on the way
    Footprint delta;  ///< how much more when the reservation has begun
  };

  void keep(Cluster& cluster, const std::string& node, const Footprint& footprint);
  void refresh(const std::string& node);
  void drop_kept(Cluster& cluster);

  Cluster& cluster_;
  bool learning_;  ///< before: what is tried out is not what comes
  std::unique_ptr<Cluster> lasting_;
  std::unique_ptr<Cluster> soon_;
  std::vector<const RunningJob*> ending_;
  std::map<std::string, Balance> balances_;   ///< of nodes where something is kept
  std::map<std::string, Footprint> freeing_;  ///< by node: what is ending from the beginning
  std::set<std::string> started_;             ///< ids of allocations
  bool changes_soon_ = false;
};

/// Takes or gives back all members of a job.
void take(Cluster& cluster, const Job& job, const std::vector<Decision>& decisions);
void give_back(Cluster& cluster, const Job& job);

}  // namespace drover::placement::schedule
