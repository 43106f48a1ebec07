#pragma once

// Whose turn it is. At every queue, the candidates are the first job of each child queue and of the queue's
// own jobs; of these goes first
//   1. one that the guarantee of its queue covers (on the way from there down to the job);
//   2. the higher priority;
//   3. the smaller dominant share by weight (dominant-resource fairness, Ghodsi et al., NSDI '11;
//   hierarchical
//      as in H-DRF: each queue's share is of the whole cluster and compared among siblings);
//   4. the earlier arrival.
// Between the users of one queue: priority, dominant share, arrival. Of one user's jobs of one priority, the
// one that came first stands first, and what it needs is kept for it (schedule.h), so that nobody waits for
// ever; behind it those that run shortest (length_of()), which is what makes all complete soonest on
// average. What a queue holds counts at once when a job starts, so that shares even out within one plan.
// O(levels × log siblings) a job. Deterministic.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "placement/queues.h"
#include "placement/schedule.h"
#include "placement/schedule/load.h"

namespace drover::placement::schedule {

class FairShare {
 public:
  /// `total` is what the cluster has.
  FairShare(const Rules& rules, const Load& total);

  /// The job's queue; made when nobody has named it before.
  int queue_of(const Job& job);

  /// To wait in line. Only before the first next(). The job outlives this; `tag` is the caller's.
  void add(int queue, const Job& job, const Load& load, std::size_t tag);
  /// The tag of the next job, each once; none when all were taken.
  std::optional<std::size_t> next();

  /// What a queue and a user hold from now on; a negative load gives back.
  void charge(int queue, const std::string& user, const Load& load);

  /// The queue and those above it, lowest first, without the root.
  const std::vector<int>& line(int queue) const;
  /// Whether the queue's guarantee covers the load in addition to what it holds: in every dimension that is
  /// guaranteed and asked for, of which there is one.
  bool covers(int queue, const Load& load) const;
  /// Whether the queue holds no more than it is sure of, of what is in the load.
  bool within_guarantee(int queue, const Load& load, const Load& less) const;
  bool has_guarantee(int queue) const;
  bool any_guarantee() const { return any_guarantee_; }

 private:
  struct Waiting {
    const Job* job = nullptr;
    Load load{};
    std::size_t tag = 0;
  };
  using Backwards = std::int64_t;                                     ///< −priority
  using UserKey = std::tuple<Backwards, double, std::uint64_t, int>;  ///< …, share, arrival, user
  using HeadKey =
      std::tuple<bool, Backwards, double, std::uint64_t, int>;  ///< uncovered, …, child; −1: own jobs
  struct User {
    Load held{};
    std::vector<Waiting> jobs;   ///< last first, once sorted
    std::optional<UserKey> key;  ///< when it stands in line
  };
  struct Node {
    int parent = 0;
    int weight = 1;
    Bounds guarantee;
    bool guaranteed = false;
    Load held{};
    Load own_held{};
    std::vector<int> line;
    std::vector<User> users;
    std::map<std::string, int> user_indices;
    std::set<UserKey> line_of_users;
    std::set<HeadKey> heads;
    std::optional<HeadKey> own_key;        ///< when it has jobs of its own
    std::optional<HeadKey> key_in_parent;  ///< when anybody waits here
  };

  int node_of(std::string_view path);
  int user_of(Node& node, const std::string& name);
  double share(const Load& held) const;
  static void sort(std::vector<Waiting>& jobs);
  const Waiting* first_of(int node) const;
  void refresh_user(Node& node, int user);
  void refresh_own(int node);
  void refresh_upwards(int node);
  void sort();

  const Rules& rules_;
  Load total_;
  std::vector<Node> nodes_;  ///< [0] is the root
  std::map<std::string, int, std::less<>> indices_;
  bool any_guarantee_ = false;
  bool sorted_ = false;
};

}  // namespace drover::placement::schedule
