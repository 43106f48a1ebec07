#pragma once

// One leader among several processes, by a Lease object as Kubernetes' own components use it: the leader
// renews it; another takes it when it has been released, or was not renewed for its duration by the clock of
// whoever looks on. Clocks of different machines are never compared.
//
// Who leads stops by its own clock before anybody else may begin, whether or not the API server answers: by
// the renew deadline, and the others wait for the duration. Kubernetes does not fence off its late writes,
// though: before the first decision after takeover wait until safe_from(), and give each write what it was
// decided on (a uid, a resourceVersion).

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <thread>

#include "base/units.h"
#include "kube/client/api.h"

namespace drover::kube {

struct LeaseOptions {
  std::string name_space;
  std::string name;
  std::string identity;  ///< of this process alone, in all its lives: its host and something random
  std::chrono::milliseconds duration{15'000};
  std::chrono::milliseconds renew_deadline{10'000};  ///< shorter: a leader without an answer stops by then
  std::chrono::milliseconds retry{2'000};
  std::chrono::milliseconds skew{2'000};  ///< by which clocks may run apart in that time
};

struct LeaseClocks {
  using Time = std::chrono::steady_clock::time_point;
  std::function<Time()> steady = since_boot;
  std::function<TimePoint()> wall = wall_clock;  ///< for what people read in the object

  /// Goes on while the machine sleeps, as the clocks of others do.
  static Time since_boot();
};

/// One who wants to lead. Thread safe, but step() and release() are for one thread.
class LeaseCandidate {
 public:
  using Time = LeaseClocks::Time;
  LeaseCandidate(Api& api, LeaseOptions options, LeaseClocks clocks = {});

  struct Step {
    std::chrono::milliseconds wait;  ///< until the next one
    Status outcome;                  ///< fine while another leads
  };
  /// Looks, and takes or renews the lease where that may be done. Takes no longer than half of the deadline,
  /// and a second.
  Step step(const std::stop_token& stop = {});
  /// Leads no more, from here on.
  void resign();
  /// After resign() and the end of all writes: the next one need not wait.
  Status release();

  /// Of the current time as leader: 0 when there is none, and higher each time.
  std::uint64_t term() const;
  bool is_leader() const { return term() != 0; }
  /// How long it leads without another renewal.
  Time::duration left() const;
  /// When writes of the one before must have ended: now or before when he released the lease.
  Time safe_from() const;
  /// Who leads, as far as it was seen; "" for nobody.
  std::string holder() const;

 private:
  Status look(Time asked, const std::stop_token& stop);
  Status write(Time asked, const std::stop_token& stop);
  void see(nlohmann::json lease);
  nlohmann::json record(bool released) const;
  Result<nlohmann::json> send(const std::string& verb, const nlohmann::json* body,
                              const std::stop_token& stop);

  Api& api_;
  const LeaseOptions options_;
  const LeaseClocks clocks_;
  // Of the thread that steps:
  std::shared_ptr<const nlohmann::json> lease_;  ///< as seen last; null: not there, or unknown
  std::string version_;
  Time seen_;                                 ///< since when it has this version
  Time free_at_;                              ///< when another's lease ends, as far as is known
  std::chrono::milliseconds late_writes_{0};  ///< of one who has not released it: may come so long
  mutable std::mutex mutex_;                  ///< of what follows
  std::string holder_;
  std::uint64_t term_ = 0;
  std::uint64_t terms_ = 0;
  Time until_;
  Time safe_from_;
};

struct LeaderCallbacks {
  std::function<void()> on_started = {};
  /// When it returns this one writes no more: at the end the lease is released then.
  std::function<void()> on_lost = {};
  /// Once for each trouble until it is over; it tries again by itself.
  std::function<void(const Error&)> on_trouble = {};
};

/// A candidate on threads of its own. on_started and on_lost are called in turn, on one thread, and must
/// return soon; by the time of on_lost candidate().is_leader() has been false for a moment already.
class LeaderElection {
 public:
  /// Begins at once. `api` must outlive it.
  LeaderElection(Api& api, LeaseOptions options, LeaderCallbacks callbacks);
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;
  /// Resigns, and releases the lease.
  ~LeaderElection();

  const LeaseCandidate& candidate() const { return candidate_; }

 private:
  void run(const std::stop_token& stop);
  void tell(const std::stop_token& stop);

  const LeaderCallbacks callbacks_;
  LeaseCandidate candidate_;
  std::mutex mutex_;
  std::condition_variable_any stepped_;
  std::uint64_t steps_ = 0;
  std::jthread teller_;
  std::jthread runner_;
};

}  // namespace drover::kube
