#include "control/definitions.h"

#include "control/usage.h"

namespace drover::control {
namespace {

/// Quicker than to look at each of the tasks.
std::uint64_t rough_bytes(std::uint64_t definition, int instances) {
  return (static_cast<std::uint64_t>(instances) + 2) * (kRecordBytes + definition);
}

}  // namespace

Definitions& Definitions::operator+=(const Definitions& other) {
  count += other.count;
  instances += other.instances;
  bytes += other.bytes;
  return *this;
}

Definitions& Definitions::operator-=(const Definitions& other) {
  count -= other.count;
  instances -= other.instances;
  bytes -= other.bytes;
  return *this;
}

Definitions size_of(const workload::Service& service) {
  return {1, static_cast<std::uint64_t>(service.instances),
          rough_bytes(service.definition.size(), service.instances)};
}

Definitions size_of(const workload::Schedule& schedule) {
  return {1, 0, rough_bytes(schedule.definition.size(), 0)};
}

Definitions size_of(const ServiceRecord& record) {
  auto size = size_of(record.target);
  for (const auto& version : record.versions) size.bytes += rough_bytes(version.definition.size(), 0);
  return size;
}

Definitions size_of(const GroupRecord&) {
  return {1, 0, 0};
}

Definitions size_of(const ScheduleRecord& record) {
  return size_of(record.schedule);
}

}  // namespace drover::control
