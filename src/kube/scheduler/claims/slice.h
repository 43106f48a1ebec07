#pragma once

// Devices as their drivers publish them: what a scheduler has to know of a ResourceSlice
// (resource.k8s.io/v1). What many devices have in common is one value that they share once they stand in
// DevicePools. Pure.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cel/selector.h"
#include "kube/scheduler/claims/amounts.h"
#include "kube/scheduler/labels.h"
#include "kube/scheduler/node.h"

namespace drover::kube::scheduler {

struct DeviceId {
  std::string driver;
  std::string pool;
  std::string device;

  auto operator<=>(const DeviceId&) const = default;
};
/// "gpu.nvidia.com/node-1/gpu-0"
std::string to_string(const DeviceId& id);

struct DeviceAttribute {
  std::string name;  ///< with its domain, or without when that is the driver
  cel::Attribute value;

  auto operator<=>(const DeviceAttribute&) const = default;
};

/// All that selectors can see of a device. Equal ones are one, and remember what selectors say of them.
struct DeviceKind {
  std::string driver = {};
  bool shared = false;  ///< several claims may have it at once
  std::vector<std::shared_ptr<const DeviceAttribute>> attributes = {};  ///< by name
  DeviceCapacities capacities = {};                                     ///< by name

  struct Answers {
    std::uint64_t epoch = 0;
    std::vector<std::uint8_t> by_selector = {};
  };
  mutable Answers answers = {};  ///< Selectors' own

  /// Of values that are shared: equal attributes are the same object.
  bool operator<(const DeviceKind& other) const {
    return std::tie(driver, shared, attributes, capacities) <
           std::tie(other.driver, other.shared, other.attributes, other.capacities);
  }
};
/// By its name with domain; nullptr when the device has none.
const cel::Attribute* attribute(const DeviceKind& kind, std::string_view full_name);

using Counters = std::map<std::string, Nanos, std::less<>>;
/// By the names of sets of counters.
using CounterSets = std::vector<std::pair<std::string, Counters>>;

/// On which nodes a device can be had. None of it: on none.
struct NodeChoice {
  std::string node_name = {};
  bool all = false;
  std::optional<NodeTerms> terms = {};

  auto operator<=>(const NodeChoice&) const = default;
};
bool chooses(const NodeChoice& choice, const Node& node);

struct Device {
  std::string name = {};
  std::shared_ptr<const DeviceKind> kind = {};
  std::shared_ptr<const Taints> taints = {};
  std::shared_ptr<const CounterSets> consumes = {};
  std::shared_ptr<const NodeChoice> nodes = {};  ///< nullptr: those of its slice
  bool binds_to_node = false;
  /// Why we give it to nobody: "uses binding conditions, which …"; nullptr: we do.
  std::shared_ptr<const std::string> unsupported = {};
};

struct ResourceSlice {
  std::string name = {};
  std::string driver = {};
  std::string pool = {};
  std::int64_t generation = 0;
  std::int64_t slice_count = 1;  ///< of the pool
  NodeChoice nodes = {};
  bool nodes_by_device = false;
  CounterSets counters = {};  ///< that devices of the pool consume
  std::vector<Device> devices = {};
  bool has_binding_conditions = false;
  std::string unsupported = {};  ///< why we use nothing of its pool; "": we do
};

/// kInvalid for what no API server gives out. What we do not know how to give is in `unsupported`.
Result<ResourceSlice> read_resource_slice(const nlohmann::json& slice);

}  // namespace drover::kube::scheduler
