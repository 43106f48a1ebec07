#pragma once

// What a node offers to the kubelet: the devices of each resource. A GPU may be offered under several names
// (generic, model, shared) without being given out twice: what one name has taken is unhealthy under the
// others. Pure.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "kube/plugin/config.h"

namespace drover::kube {

/// A device as the kubelet counts it: a GPU, or one replica of a shared one.
struct OfferedDevice {
  std::string id;                ///< the GPU's UUID; "<UUID>::<n>" of a replica
  std::optional<int> numa_node;  ///< of the GPU
  std::string trouble;           ///< why it must not be given to anyone now; "" when it is healthy

  bool operator==(const OfferedDevice&) const = default;
};

struct OfferedResource {
  std::string name;
  bool shared = false;
  std::vector<OfferedDevice> devices;  ///< by index of the GPU, then by replica

  bool operator==(const OfferedResource&) const = default;
};

/// The UUID in the id of a device; the id itself when it is no replica.
std::string_view uuid_in(std::string_view device_id);

/// Of a GPU whose users are held to parts of it: what each of them gets.
struct ReplicaShare {
  std::string uuid;
  ShareWay way = ShareWay::kMps;
  int milli = 0;  ///< thousandths: of its multiprocessors with MPS, else of its time
  std::optional<std::uint64_t> memory_mib;  ///< absent when the GPU's is not known

  bool operator==(const ReplicaShare&) const = default;
};

/// As which GPU has the resource of that name; nullopt when nobody is held to a part of it.
std::optional<ReplicaShare> replica_share(const gpu::Device& device, const std::string& resource,
                                          const PluginConfig& config);

/// Into how many replicas the rule makes the GPU; none when not even one fits.
int replicas_of(const gpu::Device& device, const ShareRule& rule);

/// Which resources' devices are in use: UUID of a GPU → names of the resources.
using Holders = std::map<std::string, std::set<std::string>, std::less<>>;

/// UUID → name of a resource.
using ResourceNames = std::map<std::string, std::string, std::less<>>;

/// What the GPUs are offered as. A name without any GPU is left out. `troubles` are by UUID, and so are
/// `resources`, of MIG devices: these have that name only.
std::vector<OfferedResource> offer(const gpu::Inventory& inventory, const PluginConfig& config,
                                   const Holders& holders, const std::map<std::string, std::string>& troubles,
                                   const ResourceNames& resources = {});

}  // namespace drover::kube
