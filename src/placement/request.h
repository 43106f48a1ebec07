#pragma once

// What is asked of placement, for one container: the resources of a task. validate() before it is used.

#include "base/result.h"
#include "workload/resources.h"

namespace drover::placement {

/// Of one GPU, in bytes. More is a mistake, and sums would overflow.
inline constexpr std::uint64_t kMostGpuMemory = 1ULL << 50;

using workload::Arrangement;
using workload::AttributeConstraint;
using workload::CapabilitySets;
using workload::DeviceClaim;
using workload::DeviceFilter;
using workload::Eligibility;
using workload::Interconnect;
using workload::Preference;
using workload::Share;
using Request = workload::Resources;

/// Refuses what is contradictory, zero, negative, absurd or would overflow; the error's path names the field
/// ("/gpus/0/count").
Status validate(const Request& request);

/// So many of the only kind that is asked for. What only several GPUs can have is left out for one.
void set_gpus(Request& request, int count);

}  // namespace drover::placement
