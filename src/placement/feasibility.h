#pragma once

// Whether a request fits on a node, what keeps it off, and which devices it could get there. Pure.
// The order in which conditions are looked at is the order of Dimension: decision.h.

#include <boost/container/small_vector.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/decision.h"
#include "placement/device_choice.h"
#include "placement/node_state.h"
#include "placement/request.h"

namespace drover::placement {

/// What keeps a request off a node.
struct Obstacle {
  Dimension dimension{};
  int which =
      0;  ///< the claim or the attribute, by its place in the request; where several are short, the first

  auto operator<=>(const Obstacle&) const = default;
};

/// A request on one kind of node, whatever is free.
struct KindFit {
  std::vector<ClaimMask> claims;      ///< devices that are what is asked for
  DeviceMask allowed = 0;             ///< of any claim
  std::vector<DeviceMask> exclusive;  ///< devices of one model, when models must differ
  std::vector<Part> parts;            ///< [device]: what it takes of each device
  std::optional<Obstacle> never;      ///< no node of this kind can hold it
};

/// A request made ready for many nodes.
class Shape {
 public:
  explicit Shape(const Request& request);

  const Request& request() const { return request_; }
  int gpus() const { return gpus_; }
  bool whole() const { return request_.share.whole(); }
  /// Made at the first call for a kind; stays valid.
  const KindFit& on(const NodeKind& kind) const;

 private:
  Request request_;
  int gpus_;
  mutable std::vector<std::unique_ptr<const KindFit>> fits_;  ///< by NodeKind::id
};

/// As many devices as the claims ask for can be handed out to them, out of `available`.
bool serves(const std::vector<ClaimMask>& claims, DeviceMask available);

/// Fit devices that have left what the request takes of each.
DeviceMask devices_with_room(const NodeState& state, const Shape& shape);

using Attributes = std::map<std::string, std::vector<std::string>>;

/// The first condition that is not met; none when the request fits. Groups are the ledger's business.
std::optional<Obstacle> obstacle(const NodeState& state, const Attributes& attributes, const Shape& shape);
/// Only what is about devices.
std::optional<Obstacle> device_obstacle(const NodeState& state, const Shape& shape);
std::optional<Obstacle> attribute_obstacle(const Attributes& attributes, const Shape& shape);
/// Only CPUs and memory.
std::optional<Obstacle> host_obstacle(const NodeState& state, const Shape& shape);

/// How far the conditions on a set of devices are looked at, for telling which one fails.
DeviceWish device_wish(const NodeState& state, const Shape& shape, Dimension up_to = Dimension::kNic);

/// Sets of devices worth a comparison, on a node where the request fits. One set, the best by
/// device_choice.h, but for a share of a single GPU: then the best of each different filling, fullest first.
boost::container::small_vector<DeviceMask, 8> candidates(const NodeState& state, const Shape& shape);

/// NUMA nodes whose CPUs the request is pinned to when it gets these devices; 0: it floats.
NumaMask pinning(const NodeState& state, const Shape& shape, DeviceMask devices);

}  // namespace drover::placement
