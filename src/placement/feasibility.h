#pragma once

// Whether a request fits on a node, and what keeps it off. Pure.
// The order in which conditions are looked at is the order of Dimension: decision.h.

#include <compare>
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
  static constexpr int kTogether = -1;

  Dimension dimension{};
  int which = 0;    ///< the claim, the attribute or the reason, by its place in the request; of several, the
                    ///< first
                    ///< kTogether: each claim finds enough devices, but not all claims at once
  int variant = 0;  ///< tells apart what is said differently: why it is cordoned; 1: there are some, but few

  auto operator<=>(const Obstacle&) const = default;
};

/// A request on one kind of node, whatever is free.
struct KindFit {
  std::vector<ClaimMask> claims;      ///< devices that are what is asked for
  DeviceMask allowed = 0;             ///< of any claim
  std::vector<DeviceMask> exclusive;  ///< devices of one model, when models must differ
  std::vector<DeviceMask> together;   ///< devices of one set of capabilities, when there are any
  std::vector<Part> parts;            ///< [device]: what it takes of each device
  std::optional<Obstacle> never;      ///< no node of this kind can hold it
};

/// A request on every kind of node. Not thread safe: on() makes what is asked for first.
class KindFits {
 public:
  /// The parts of a request for them are chosen apart (part_fit.h): of devices it wants none here.
  explicit KindFits(Request request) : request_(std::move(request)) {}
  /// Stays valid.
  const KindFit& on(const NodeKind& kind);

 private:
  Request request_;
  std::vector<std::shared_ptr<const KindFit>> fits_;  ///< by NodeKind::id
};

/// A request made ready for many nodes. Copies share what is known of kinds.
class Shape {
 public:
  explicit Shape(const Request& request) : Shape(request, std::make_shared<KindFits>(request)) {}
  /// `fits` is of a request that differs in nothing but CPUs and memory.
  Shape(const Request& request, std::shared_ptr<KindFits> fits);

  const Request& request() const { return request_; }
  /// Devices that it wants whole, or shares of.
  int gpus() const { return gpus_; }
  bool wants_parts() const { return !request_.part.empty(); }
  bool whole() const { return request_.share.whole(); }
  /// No condition but the number of devices and what each must be.
  bool unconditional() const { return unconditional_; }
  const KindFit& on(const NodeKind& kind) const { return fits_->on(kind); }

 private:
  Request request_;
  int gpus_;
  bool unconditional_;
  std::shared_ptr<KindFits> fits_;
};

/// As many devices as the claims ask for can be handed out to them, out of `available`.
bool serves(const std::vector<ClaimMask>& claims, DeviceMask available);

/// Healthy devices that have left what the request takes of each.
DeviceMask devices_with_room(const NodeState& state, const Shape& shape);

/// The first condition that is not met, CPUs and memory left out. Groups are the ledger's business.
std::optional<Obstacle> obstacle(const NodeState& state, const Node& node, const Shape& shape);
/// Its parts, in order: what the node is; too few devices, or too few with room; conditions on sets of
/// devices, where there are enough with room.
std::optional<Obstacle> node_obstacle(const Node& node, const Shape& shape);
std::optional<Obstacle> room_obstacle(const NodeState& state, const Node& node, const Shape& shape);
std::optional<Obstacle> set_obstacle(const NodeState& state, const Shape& shape);
/// Of CPUs and memory, near GPUs or not.
std::optional<Obstacle> host_obstacle(const NodeState& state, const Request& request);

/// What choose() is asked for, of the devices in `room`. Conditions on sets are read up to a dimension, for
/// telling which one fails.
DeviceCriteria device_criteria(const NodeState& state, const Shape& shape, DeviceMask room,
                               Dimension up_to = Dimension::kNic);

/// The node as it is when the request got these devices.
NodeState after(const NodeState& before, const Shape& shape, DeviceMask devices);

/// NUMA nodes whose CPUs the request is pinned to when it gets these devices; 0: it floats.
NumaMask pinning(const NodeState& state, const Request& request, DeviceMask devices);

}  // namespace drover::placement
