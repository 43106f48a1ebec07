#include "placement/feasibility.h"

#include <algorithm>
#include <bit>

#include "placement/filter.h"
#include "placement/part_fit.h"

namespace drover::placement {
namespace {

Part part_of(const Share& share, const DeviceKind& device, int index) {
  const auto held = workload::held_of(share, device.memory_bytes);
  return {index, held.milli, static_cast<std::int64_t>(held.memory_bytes)};
}

std::vector<ClaimMask> claims_up_to(const Request& request, const NodeKind& kind, Dimension up_to) {
  std::vector<ClaimMask> claims;
  for (const auto& claim : request.gpus)
    claims.push_back({claim.count, allowed_devices(kind, claim.filter, request.share, up_to)});
  return claims;
}

/// The first claim that finds too few devices alone; Obstacle::kTogether when only all together find too few.
std::optional<int> short_claim(const std::vector<ClaimMask>& claims, DeviceMask available) {
  for (std::size_t i = 0; i < claims.size(); ++i)
    if (std::popcount(claims[i].allowed & available) < claims[i].count) return static_cast<int>(i);
  if (serves(claims, available)) return std::nullopt;
  return Obstacle::kTogether;
}

std::optional<Obstacle> never_on(const Request& request, const NodeKind& kind, int gpus) {
  if (kind.count() < gpus) return Obstacle{Dimension::kGpuCount, 0, kind.count() > 0};
  for (const auto dimension : kFilterDimensions) {
    const auto claims = claims_up_to(request, kind, dimension);
    if (const auto claim = short_claim(claims, kind.all)) {
      const bool some =
          *claim == Obstacle::kTogether || claims[static_cast<std::size_t>(*claim)].allowed != 0;
      return Obstacle{dimension, *claim, some};
    }
  }
  return std::nullopt;
}

std::vector<DeviceMask> devices_by_model(const NodeKind& kind) {
  std::map<std::string, DeviceMask> models;
  for (int i = 0; i < kind.count(); ++i)
    models[kind.devices[static_cast<std::size_t>(i)].model] |= device_bit(i);
  std::vector<DeviceMask> masks;
  for (const auto& [model, mask] : models) masks.push_back(mask);
  return masks;
}

KindFit make_kind_fit(const Request& request, const NodeKind& kind, int gpus) {
  KindFit fit;
  if (gpus == 0) return fit;
  fit.claims = claims_up_to(request, kind, Dimension::kDriver);
  for (const auto& claim : fit.claims) fit.allowed |= claim.allowed;
  if (request.different_models) fit.exclusive = devices_by_model(kind);
  fit.together = devices_by_capabilities(kind, request.capabilities);
  for (int i = 0; i < kind.count(); ++i)
    fit.parts.push_back(part_of(request.share, kind.devices[static_cast<std::size_t>(i)], i));
  fit.never = never_on(request, kind, gpus);
  return fit;
}

int devices_of(const Request& request) {
  return request.part.empty() ? request.gpu_count() : 0;
}

bool without_conditions(const Request& request) {
  return !request.interconnect.asks() && !request.different_models && request.capabilities.sets.empty() &&
         request.cpu_affinity != Preference::kRequire && request.nic != Preference::kRequire;
}

/// The NUMA nodes to which a container with devices on these is pinned: these alone, or with those without
/// devices that are left to them; 0 when not even those have the CPUs, or that would be all that there are.
NumaMask pinned_to(const NodeKind& kind, const std::bitset<256>& suffice, NumaMask numa) {
  if (suffice.test(numa)) return numa;
  const auto wider = with_beside(kind, numa);
  return suffice.test(wider) && wider + 1U != 1U << kind.numa_cpus.size() ? wider : NumaMask{0};
}

}  // namespace

const KindFit& KindFits::on(const NodeKind& kind) {
  const auto id = static_cast<std::size_t>(kind.id);
  if (id >= fits_.size()) fits_.resize(id + 1);
  if (!fits_[id])
    fits_[id] = std::make_shared<const KindFit>(make_kind_fit(request_, kind, devices_of(request_)));
  return *fits_[id];
}

Shape::Shape(const Request& request, std::shared_ptr<KindFits> fits)
    : request_(request),
      gpus_(devices_of(request)),
      unconditional_(without_conditions(request)),
      fits_(std::move(fits)) {}

bool serves(const std::vector<ClaimMask>& claims, DeviceMask available) {
  for (unsigned set = 1; set < 1U << claims.size(); ++set) {
    ClaimMask together;
    for (std::size_t i = 0; i < claims.size(); ++i)
      if ((set >> i & 1) != 0)
        together = {together.count + claims[i].count, together.allowed | claims[i].allowed};
    if (std::popcount(together.allowed & available) < together.count) return false;
  }
  return true;
}

DeviceMask devices_with_room(const NodeState& state, const Shape& shape) {
  if (shape.whole()) return state.whole();
  const auto& parts = shape.on(*state.kind).parts;
  DeviceMask room = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& device = state.devices[i];
    if (device.free_milli >= parts[i].milli && device.free_memory >= parts[i].memory)
      room |= device_bit(static_cast<int>(i));
  }
  return room & state.healthy;
}

std::optional<Obstacle> node_obstacle(const Node& node, const Shape& shape) {
  if (const auto& eligibility = shape.request().eligibility)
    if (const auto* reason = eligibility->why_not(node.name))
      return Obstacle{Dimension::kEligibility, static_cast<int>(*reason)};
  const auto& constraints = shape.request().attributes;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const auto found = node.attributes.find(constraints[i].name);
    if (found == node.attributes.end() ||
        std::ranges::find_first_of(found->second, constraints[i].any_of) == found->second.end())
      return Obstacle{Dimension::kAttribute, static_cast<int>(i)};
  }
  return std::nullopt;
}

DeviceCriteria device_criteria(const NodeState& state, const Shape& shape, DeviceMask room, Dimension up_to) {
  const auto& request = shape.request();
  const auto& fit = shape.on(*state.kind);
  DeviceCriteria criteria{.claims = fit.claims, .free = state.whole() | room};
  if (up_to >= Dimension::kNic && request.nic == Preference::kRequire) room &= state.kind->near_nic;
  for (auto& claim : criteria.claims) claim.allowed &= room;
  if (up_to >= Dimension::kCapabilities) criteria.together = fit.together;
  if (up_to >= Dimension::kInterconnect) criteria.minimum = request.interconnect;
  if (up_to >= Dimension::kDifferentModels) criteria.exclusive = fit.exclusive;
  if (up_to >= Dimension::kCpuAffinity) criteria.cpu_affinity = request.cpu_affinity;
  if (criteria.cpu_affinity != Preference::kNone) {
    const auto suffice = cpus_suffice(state, request.milli_cpus);
    for (unsigned numa = 1; numa < 1U << state.kind->beside.size(); ++numa)
      criteria.cpus_suffice[numa] = pinned_to(*state.kind, suffice, static_cast<NumaMask>(numa)) != 0;
  }
  if (request.nic == Preference::kPrefer) criteria.preferred = state.kind->near_nic;
  return criteria;
}

std::optional<Obstacle> room_obstacle(const NodeState& state, const Node& node, const Shape& shape) {
  if (shape.wants_parts()) return part_obstacle(state, node, shape.request());
  if (shape.gpus() == 0) return std::nullopt;
  const auto& fit = shape.on(*state.kind);
  if (fit.never) return fit.never;
  const auto claim = short_claim(fit.claims, devices_with_room(state, shape));
  if (!claim) return std::nullopt;
  if (const auto unhealthy = short_claim(fit.claims, state.healthy))
    return Obstacle{Dimension::kUnhealthy, *unhealthy};
  return Obstacle{shape.whole() ? Dimension::kFreeGpus : Dimension::kShare, *claim};
}

std::optional<Obstacle> set_obstacle(const NodeState& state, const Shape& shape) {
  if (shape.gpus() == 0 || shape.unconditional()) return std::nullopt;
  const auto room = devices_with_room(state, shape);
  const auto possible = [&](Dimension up_to) {
    return choose(state.kind->wiring, device_criteria(state, shape, room, up_to)).has_value();
  };
  if (possible(Dimension::kNic)) return std::nullopt;
  for (const auto dimension : {Dimension::kCapabilities, Dimension::kInterconnect,
                               Dimension::kDifferentModels, Dimension::kCpuAffinity})
    if (!possible(dimension)) return Obstacle{dimension};
  return Obstacle{Dimension::kNic};
}

std::optional<Obstacle> obstacle(const NodeState& state, const Node& node, const Shape& shape) {
  if (state.cordon != 0) return Obstacle{Dimension::kCordon, 0, state.cordon};
  if (const auto found = node_obstacle(node, shape)) return found;
  if (const auto found = room_obstacle(state, node, shape)) return found;
  return set_obstacle(state, shape);
}

std::optional<Obstacle> host_obstacle(const NodeState& state, const Request& request) {
  if (state.free_milli_cpus < request.milli_cpus) return Obstacle{Dimension::kCpus};
  if (state.free_memory < static_cast<std::int64_t>(request.memory_bytes))
    return Obstacle{Dimension::kMemory};
  return std::nullopt;
}

NodeState after(const NodeState& before, const Shape& shape, DeviceMask devices) {
  auto state = before;
  const auto& request = shape.request();
  for (auto rest = devices; rest != 0; rest &= rest - 1)
    take(state, shape.on(*before.kind).parts[static_cast<std::size_t>(std::countr_zero(rest))]);
  take(state, pinning(before, request, devices), request.milli_cpus,
       static_cast<std::int64_t>(request.memory_bytes));
  return state;
}

NumaMask pinning(const NodeState& state, const Request& request, DeviceMask devices) {
  if (devices == 0 || request.cpu_affinity == Preference::kNone) return 0;
  const auto numa = numa_of(state.kind->wiring, devices);
  return pinned_to(*state.kind, cpus_suffice(state, request.milli_cpus), numa);
}

}  // namespace drover::placement
