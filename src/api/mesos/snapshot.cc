#include "api/mesos/snapshot.h"

namespace drover::api::mesos {

Snapshot glance_at(const Services& services, const engine::Caller& caller) {
  const auto& master = *services.mesos;
  Snapshot snapshot;
  snapshot.state = {std::shared_ptr<void>(), &services.daemon->state()};
  snapshot.caller = caller;
  snapshot.now = services.daemon->now();
  snapshot.address = services.address;
  snapshot.master_id = master.id();
  snapshot.marathon_id = master.marathon_id();
  snapshot.chronos_id = master.chronos_id();
  snapshot.options = master.options();
  snapshot.started_at = master.started_at();
  snapshot.connected = master.connected();
  return snapshot;
}

Snapshot snapshot_of(const Services& services, const engine::Caller& caller) {
  auto snapshot = glance_at(services, caller);
  snapshot.state = services.daemon->snapshot();
  snapshot.latest_use = [daemon = services.daemon] { return daemon->latest_use(); };
  snapshot.agents = agents_of(*services.daemon, snapshot.options);
  snapshot.offers = services.mesos->book().offers();
  snapshot.offered = services.mesos->offered();
  return snapshot;
}

}  // namespace drover::api::mesos
