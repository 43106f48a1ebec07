#pragma once

// What all users' services, groups and jobs take up. Kept with the state, so that nobody has to look at all
// of them. Pure.

#include <cstdint>

#include "control/schedule_record.h"
#include "control/service_record.h"

namespace drover::control {

struct Definitions {
  std::uint64_t count = 0;
  std::uint64_t instances = 0;
  std::uint64_t bytes = 0;  ///< with the tasks that come of them, about

  Definitions& operator+=(const Definitions& other);
  Definitions& operator-=(const Definitions& other);
  bool operator==(const Definitions&) const = default;
};

Definitions size_of(const workload::Service& service);
Definitions size_of(const workload::Schedule& schedule);

/// Of a row of the state. What a service was before takes up bytes alone.
Definitions size_of(const ServiceRecord& record);
Definitions size_of(const GroupRecord& group);
Definitions size_of(const ScheduleRecord& record);
/// Other rows define nothing.
template <typename Record>
Definitions size_of(const Record&) {
  return {};
}

}  // namespace drover::control
