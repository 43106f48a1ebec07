#pragma once

// Groups of GPUs that are all joined with each other. The scheduler can only ask for devices that have one
// attribute in common (matchAttribute), so "joined by NVLink" has to be a partition into such groups. Pure.

#include <functional>
#include <vector>

namespace drover::kube::dra {

/// One partition: the group of every device, ascending, the device among them; empty for a device that is
/// alone.
using Partition = std::vector<std::vector<int>>;

/// How strongly two devices are joined; 0: not at all. Symmetric.
using Joined = std::function<int(int, int)>;

/// Partitions into groups whose members are all joined with each other, the first with the largest groups.
/// Together they have every two joined devices in one group somewhere, unless that takes more than `most`
/// partitions.
std::vector<Partition> joined_groups(int devices, const Joined& joined, int most);

}  // namespace drover::kube::dra
