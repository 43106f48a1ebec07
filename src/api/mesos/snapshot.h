#pragma once

// What answers of the master and of its agent are written from: everything that one caller may ask for, as it
// was at one moment. May be read on any thread.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/beside.h"
#include "api/mesos/agents.h"
#include "api/mesos/master.h"
#include "control/offers.h"

namespace drover::api::mesos {

struct Snapshot {
  std::shared_ptr<const control::State> state;
  engine::Caller caller;
  std::vector<Agent> agents;  ///< not empty but of a cluster without nodes
  TimePoint now{};
  std::string address;  ///< Services::address
  /// What containers use now, of all users, by ids of tasks. From any thread; empty of a glance.
  std::function<std::map<std::string, use::Latest>()> latest_use;
  // Of the master
  std::string master_id, marathon_id, chronos_id;
  MasterOptions options;
  TimePoint started_at{};
  std::set<std::string> connected;                          ///< ids of frameworks
  std::map<std::string, control::Offer> offers;             ///< that are out, by id
  std::map<std::string, control::ResourceAmounts> offered;  ///< the same, by framework
};

/// As it is now. On the control strand.
Snapshot snapshot_of(const Services& services, const engine::Caller& caller);
/// For what is soon told of one task or framework: reads the daemon's own state, on the strand and until that
/// changes. Without the agents and the offers.
Snapshot glance_at(const Services& services, const engine::Caller& caller);

/// How an answer is written by write(snapshot, request) on another thread.
using WriteSnapshot = Result<Response> (*)(const Snapshot& snapshot, const Request& request);
template <WriteSnapshot write>
Result<Write> from_snapshot(const Services& services, const Request& request) {
  return [snapshot = snapshot_of(services, *request.caller), request] { return write(snapshot, request); };
}

}  // namespace drover::api::mesos
