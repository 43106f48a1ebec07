#pragma once

// What operators are told of one task, in whatever form: views.h writes it as JSON of the master's state,
// v1_views.h as a message of the v1 API. Pure.

#include <limits>
#include <string>
#include <string_view>

#include "api/mesos/seen_frameworks.h"
#include "api/mesos/values.h"

namespace drover::api::mesos {

/// Valid as long as the snapshot and the framework that it was made from.
struct SeenTask {
  SeenTask(const Snapshot& snapshot, const SeenFramework& its_framework, const control::TaskRecord& task);

  const control::TaskRecord& record;
  const std::string& framework;  ///< its id
  const std::string& id;         ///< as its framework calls the task
  const std::string& executor;
  const bool alone;  ///< it has the executor to itself
  const std::string name;
  const std::string state;  ///< "TASK_RUNNING"
  const control::ResourceAmounts held;

  bool is_instance() const { return record.task.origin.kind == workload::OriginKind::kService; }

  /// Calls visit(state, time) for every status that it has had, as far as that is known.
  template <typename Visit>
  void each_status(const Visit& visit) const {
    if (record.started_at) visit("TASK_RUNNING", *record.started_at);
    if (record.finished_at) visit(state, *record.finished_at);
  }

  /// Calls visit(name, number, protocol) for every port at which an instance is found, as Marathon tells it.
  template <typename Visit>
  void each_port(const Visit& visit) const {
    static const workload::Port kUnnamed;
    const auto& wanted = record.task.network.ports;
    for (std::size_t i = 0; i < record.ports.size(); ++i) {
      const auto& port = i < wanted.size() ? wanted[i] : kUnnamed;
      // One of both protocols is told twice.
      if (port.protocol != workload::PortProtocol::kUdp) visit(port.name, record.ports[i], "tcp");
      if (port.protocol != workload::PortProtocol::kTcp) visit(port.name, record.ports[i], "udp");
    }
  }

  /// Calls visit(name, amount) for each limit that it has said, "cpus" or "mem"; infinity is as much as there
  /// is.
  template <typename Visit>
  void each_limit(const Visit& visit) const {
    const auto or_infinity = [](double amount) {
      return amount > 0 ? amount : std::numeric_limits<double>::infinity();
    };
    const auto& limits = record.task.limits;
    if (limits.milli_cpus) visit("cpus", or_infinity(static_cast<double>(*limits.milli_cpus) / 1000));
    if (limits.memory_bytes) visit("mem", or_infinity(static_cast<double>(*limits.memory_bytes) / kMiB));
  }
};

}  // namespace drover::api::mesos
