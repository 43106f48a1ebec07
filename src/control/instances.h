#pragma once

// The instances of a service: as many are kept as it is to have, the old make way for the new, and what fails
// is tried again, ever later. Pure.

#include <chrono>
#include <string>
#include <vector>

#include "control/draft.h"
#include "control/service_record.h"

namespace drover::control {

/// The tasks of a service that have not ended, in the order of their acceptance.
struct Instances {
  std::vector<const TaskRecord*> current;   ///< of the configuration that is applied
  std::vector<const TaskRecord*> old;       ///< of an earlier one
  std::vector<const TaskRecord*> stopping;  ///< that will not come back

  bool upgrading = false;  ///< whether any of them all is of an earlier configuration

  std::size_t live() const { return current.size() + old.size(); }
};
Instances instances_of(const Draft& draft, const ServiceRecord& record);

/// Whether an instance does its work: it runs, and its checks say that it is well and ready.
bool is_up(const Draft& draft, const ServiceRecord& record, const TaskRecord& task);

/// Starts and ends instances as is due now.
void settle_instances(Draft& draft, const std::string& service);

/// Takes note of the instances that ended by this event without being asked: the next attempt waits longer.
void note_failures(Draft& draft);

/// Ends an instance, in words.
void end_instance(Draft& draft, const std::string& task, std::string why);

/// What a check found: an instance that fails too often is ended.
void take_check(Draft& draft, const CheckResult& result);

/// The definition that a task was started by; null when it is not kept any more.
const workload::Service* definition_of(const ServiceRecord& record, const TaskRecord& task);

/// An instance that was there so long before it failed was no failed attempt.
inline constexpr std::chrono::seconds kSettled{60};

/// So many ended instances of a service are kept, besides their time.
inline constexpr std::size_t kKeptInstances = 10;

}  // namespace drover::control
