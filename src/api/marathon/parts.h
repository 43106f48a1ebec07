#pragma once

// What the Marathon API keeps besides the daemon's state. Owned by the server; used on the control strand,
// but for what says otherwise.

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/marathon/event_hub.h"
#include "base/units.h"
#include "workload/service.h"

namespace drover::api::marathon_v2 {

/// The service ports of definitions, so that none is parsed twice. Thread safe.
class ServicePorts {
 public:
  std::vector<int> of(const workload::Service& service);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, TimePoint>, std::vector<int>> known_;  ///< by id and version
};

struct Parts {
  explicit Parts(engine::Api& daemon) : events(daemon) {}

  bool strict = false;  ///< GPUs only for containers of type MESOS, as Marathon itself
  EventHub events;
  ServicePorts service_ports;
};

}  // namespace drover::api::marathon_v2
