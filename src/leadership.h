#pragma once

// That of several copies of a program on a cluster one acts at a time, by a Lease: the scheduler's, and the
// control plane's. Thread safe.

#include <atomic>
#include <string>

#include "kube/client/lease.h"

namespace drover {

/// Of this process alone.
kube::LeaseOptions lease_of(const std::string& name_space, const std::string& name);

/// Leads from when it has taken the lease until the program ends, or until this goes, which releases the
/// lease once nothing is written any more. Whoever loses it ends at once, so that nothing of his is written
/// late.
class Leadership {
 public:
  /// Begins to try. `api` must outlive it.
  Leadership(kube::Api& api, kube::LeaseOptions lease);
  ~Leadership() { ending_ = true; }
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  bool is_leader() const { return election_.candidate().is_leader(); }
  /// It leads, and what the one before may have written late has come by now.
  bool may_begin() const;
  /// Who leads, as far as it was seen; "" for nobody.
  std::string holder() const { return election_.candidate().holder(); }

 private:
  void lost() const;

  const std::string lease_;  ///< for messages
  std::atomic<bool> started_ = false;
  std::atomic<bool> ending_ = false;
  kube::LeaderElection election_;  ///< goes first: it calls back
};

/// An API server to which nothing is written without the lease: a program that was held up, and goes on after
/// another has begun, changes nothing in the moment before it ends.
class FencedApi final : public kube::Api {
 public:
  /// Both outlive it.
  FencedApi(kube::Api& api, const Leadership& leadership) : api_(api), leadership_(leadership) {}

  Result<nlohmann::json> send(const kube::ApiRequest& request, const std::stop_token& stop,
                              const kube::TakeItem& take) override;
  Status watch(const kube::WatchRequest& request, const TakeEvent& take,
               const std::stop_token& stop) override {
    return api_.watch(request, take, stop);
  }
  Status read(const kube::ApiRequest& request, const TakeText& take, const std::stop_token& stop) override {
    return api_.read(request, take, stop);
  }

 private:
  kube::Api& api_;
  const Leadership& leadership_;
};

}  // namespace drover
