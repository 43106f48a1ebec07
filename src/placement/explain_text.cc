#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "placement/explain.h"
#include "placement/filter.h"
#include "placement/part_fit.h"
#include "placement/words.h"

namespace drover::placement {
namespace {

std::string free_gpus_text(int count) {
  return fmt::format("{} free GPU{}", count, count == 1 ? "" : "s");
}

/// What is short: devices of one claim, or of all together.
struct Wanted {
  int count = 0;
  DeviceFilter filter;     ///< says nothing when it is about all together
  DeviceMask allowed = 0;  ///< on this kind, whatever is free
  std::string of_model;    ///< " of model A100", where the claim names one
};

Wanted wanted_of(const Shape& shape, const Obstacle& obstacle, const NodeState& state) {
  const auto& fit = shape.on(*state.kind);
  if (obstacle.which == Obstacle::kTogether) return {shape.gpus(), {}, fit.allowed, ""};
  const auto which = static_cast<std::size_t>(obstacle.which);
  const auto& claim = shape.request().gpus[which];
  const auto& models = claim.filter.models;
  return {claim.count, claim.filter, fit.claims[which].allowed,
          models.empty() ? "" : " of model " + or_text(models)};
}

/// Two amounts that differ are never written the same.
struct TwoAmounts {
  std::string wanted;
  std::string has;
};
TwoAmounts in_bytes(std::uint64_t wanted, std::int64_t has) {
  const auto rest = static_cast<std::uint64_t>(std::max<std::int64_t>(has, 0));
  if (format_bytes(wanted) != format_bytes(rest) || wanted == rest)
    return {format_bytes(wanted), format_bytes(rest)};
  return {fmt::format("{} B", wanted), fmt::format("{} B", rest)};
}

/// "model A100", "GPU with 40 GiB": what the filter says of this dimension.
std::string filter_text(const DeviceFilter& filter, const Share& share, Dimension dimension) {
  switch (dimension) {
    case Dimension::kModel:
      return "model " + or_text(filter.models);
    case Dimension::kGpuMemory:
      return "GPU with " + format_bytes(std::max(filter.min_memory_bytes, share.memory_bytes));
    case Dimension::kComputeCapability:
      return fmt::format("GPU of compute capability {}.{}", filter.min_compute_capability->major,
                         filter.min_compute_capability->minor);
    default:
      return *filter.ecc ? "GPU with ECC" : "GPU without ECC";
  }
}

std::string filter_clause(const Shape& shape, const Obstacle& obstacle, const NodeView& view, bool alone) {
  if (obstacle.which == Obstacle::kTogether) return "lacks GPUs for all claims at once";
  const auto wanted = wanted_of(shape, obstacle, view.state);
  const auto& driver = view.state.kind->driver;
  if (obstacle.dimension == Dimension::kDriver)
    return fmt::format("lacks driver {} or newer{}", wanted.filter.min_driver,
                       alone && !driver.empty() ? " (has " + driver + ")" : "");
  const auto text = filter_text(wanted.filter, shape.request().share, obstacle.dimension);
  if (obstacle.variant == 0) return "has no " + text;
  return fmt::format("has fewer than {} × {}", wanted.count, text);
}

/// "2 across sockets": the set that the node would give without the minimum.
std::string best_without_minimum(const Shape& shape, const NodeState& state) {
  const auto& wiring = state.kind->wiring;
  const auto chosen =
      choose(wiring, device_criteria(state, shape, devices_with_room(state, shape), Dimension::kFreeGpus));
  if (!chosen) return "";
  gpu::Link worst{1 << 20, gpu::PcieLevel::kSameDevice};
  for (auto rest = *chosen; rest != 0; rest &= rest - 1)
    for (auto others = rest & (rest - 1); others != 0; others &= others - 1) {
      const auto& link = wiring.link(std::countr_zero(rest), std::countr_zero(others));
      if (near_enough(link, shape.request().interconnect)) continue;
      if (std::pair(-link.nvlinks, link.pcie) > std::pair(-worst.nvlinks, worst.pcie)) worst = link;
    }
  return fmt::format("{} {}", std::popcount(*chosen), link_text(worst));
}

std::string amount_text(const Share& share) {
  return share.memory_bytes > 0 ? format_bytes(share.memory_bytes) : milli_text(share.milli);
}

std::string room_clause(const Shape& shape, const Obstacle& obstacle, const NodeState& state, bool alone) {
  const auto wanted = wanted_of(shape, obstacle, state);
  const auto roomy = std::popcount(wanted.allowed & devices_with_room(state, shape));
  const auto has = alone && obstacle.which != Obstacle::kTogether ? fmt::format(" (has {})", roomy) : "";
  if (obstacle.dimension == Dimension::kUnhealthy)
    return fmt::format("lacks {}{} in good health", gpus_text(wanted.count), wanted.of_model);
  if (shape.whole()) return fmt::format("lacks {}{}{}", free_gpus_text(wanted.count), wanted.of_model, has);
  const auto amount = amount_text(shape.request().share);
  if (wanted.count == 1) return fmt::format("has no GPU{} with {} left", wanted.of_model, amount);
  return fmt::format("lacks {}{} with {} left{}", gpus_text(wanted.count), wanted.of_model, amount, has);
}

/// How large the share of one device could be, when it is asked for by thousandths, or by bytes.
std::int64_t most_milli(const DeviceState& device, const DeviceKind& kind) {
  if (kind.memory_bytes == 0) return device.free_milli;
  __extension__ using Wide = __int128;
  const auto by_memory =
      ((Wide{device.free_memory} + 1) * 1000 - 1) / static_cast<std::int64_t>(kind.memory_bytes);
  return static_cast<std::int64_t>(std::min<Wide>(device.free_milli, by_memory));
}
std::int64_t most_memory(const DeviceState& device, const DeviceKind& kind) {
  __extension__ using Wide = __int128;
  const auto by_milli =
      ((Wide{device.free_milli} + 1) * static_cast<std::int64_t>(kind.memory_bytes) - 1) / 1000;
  return static_cast<std::int64_t>(std::min<Wide>(device.free_memory, by_milli));
}

/// "0.5 of a GPU is wanted and at most 0.3 of one is left".
std::string share_sentence(const Share& share, DeviceMask allowed, const NodeState& state) {
  std::int64_t most = 0;
  for (auto rest = allowed & state.healthy; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    const auto& device = state.devices[i];
    const auto& kind = state.kind->devices[i];
    most = std::max(most, share.memory_bytes > 0 ? most_memory(device, kind) : most_milli(device, kind));
  }
  if (share.memory_bytes == 0)
    return fmt::format("{} of a GPU is wanted and at most {} of one is left", milli_text(share.milli),
                       milli_text(most));
  const auto [wanted, has] = in_bytes(share.memory_bytes, most);
  return fmt::format("{} of a GPU's memory are wanted and at most {} of one are left", wanted, has);
}

/// ", 1 unfit, 2 cordoned": of these devices, what nobody has and nobody gets.
std::string withheld_text(DeviceMask devices, const NodeView& view) {
  int unfit = 0;
  int cordoned = 0;
  for (auto rest = devices & view.state.idle & ~view.state.healthy; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(rest));
    ++(view.node.inventory.devices[i].unhealthy.empty() ? cordoned : unfit);
  }
  return (unfit > 0 ? fmt::format(", {} unfit", unfit) : "") +
         (cordoned > 0 ? fmt::format(", {} cordoned", cordoned) : "");
}

std::string room_sentence(const Shape& shape, const Obstacle& obstacle, const NodeView& view) {
  const auto& state = view.state;
  const auto wanted = wanted_of(shape, obstacle, state);
  const auto& share = shape.request().share;
  const auto roomy = std::popcount(wanted.allowed & devices_with_room(state, shape));
  const auto all = std::popcount(wanted.allowed);
  const auto rest = withheld_text(wanted.allowed, view);
  if (obstacle.which == Obstacle::kTogether)
    return fmt::format("{} are wanted and {} of {} {} {}, too few for all claims at once{}",
                       gpus_text(wanted.count), roomy, all, are(roomy),
                       shape.whole() ? "free" : "free enough", rest);
  if (shape.whole())
    return fmt::format("{}{} {} wanted and {} of {} {} free{}", gpus_text(wanted.count), wanted.of_model,
                       are(wanted.count), roomy, all, are(roomy), rest);
  if (wanted.count == 1) return share_sentence(share, wanted.allowed, state) + rest;
  return fmt::format("{}{} with {} left are wanted and {} of {} {} so much{}", gpus_text(wanted.count),
                     wanted.of_model, amount_text(share), roomy, all, roomy == 1 ? "has" : "have", rest);
}

std::string attribute_text(const Shape& shape, const Obstacle& obstacle) {
  const auto& constraint = shape.request().attributes[static_cast<std::size_t>(obstacle.which)];
  return constraint.name + " " + or_text(constraint.any_of);
}

}  // namespace

std::string clause(const Shape& shape, const Obstacle& obstacle, const NodeView& view, bool alone) {
  const auto& request = shape.request();
  const auto& state = view.state;
  const auto detail = [&](const std::string& text) { return alone ? " (" + text + ")" : ""; };
  switch (obstacle.dimension) {
    case Dimension::kCordon:
      return "is cordoned" + (view.node.cordoned.empty() ? "" : " (" + view.node.cordoned + ")");
    case Dimension::kEligibility:
      return request.eligibility->reasons[static_cast<std::size_t>(obstacle.which)];
    case Dimension::kAttribute:
      return "lacks " + attribute_text(shape, obstacle);
    case Dimension::kGpuCount:
      if (state.kind->count() == 0) return "has no GPU";
      return fmt::format("has fewer than {}{}", gpus_text(shape.gpus()),
                         detail("has " + std::to_string(state.kind->count())));
    case Dimension::kModel:
    case Dimension::kGpuMemory:
    case Dimension::kComputeCapability:
    case Dimension::kEcc:
    case Dimension::kDriver:
      return filter_clause(shape, obstacle, view, alone);
    case Dimension::kUnhealthy:
    case Dimension::kFreeGpus:
    case Dimension::kShare:
      return room_clause(shape, obstacle, state, alone);
    case Dimension::kParts:
      return part_clause(state, view.node, request, obstacle);
    case Dimension::kInterconnect:
      return fmt::format("lacks {} {}{}", free_gpus_text(shape.gpus()),
                         interconnect_text(request.interconnect),
                         alone ? detail("has " + best_without_minimum(shape, state)) : "");
    case Dimension::kCapabilities:
      return fmt::format("lacks {} {}: {}", free_gpus_text(shape.gpus()),
                         capabilities_text(request.capabilities), request.capabilities.reason);
    case Dimension::kDifferentModels:
      return fmt::format("lacks {} of different models", free_gpus_text(shape.gpus()));
    case Dimension::kCpuAffinity:
      return fmt::format("lacks {} CPUs near free GPUs", cpus_text(request.milli_cpus));
    case Dimension::kNic:
      return "has no NIC near free GPUs";
    case Dimension::kCpus:
      return fmt::format("lacks {} free CPUs{}", cpus_text(request.milli_cpus),
                         detail("has " + cpus_text(std::max<std::int64_t>(0, state.free_milli_cpus))));
    case Dimension::kMemory:
      return fmt::format("lacks {} of free memory{}",
                         in_bytes(request.memory_bytes, state.free_memory).wanted,
                         detail("has " + in_bytes(request.memory_bytes, state.free_memory).has));
    default:
      return "has no room";
  }
}

std::string sentence(const Shape& shape, const Obstacle& obstacle, const NodeView& view) {
  const auto& request = shape.request();
  const auto& state = view.state;
  switch (obstacle.dimension) {
    case Dimension::kUnhealthy:
    case Dimension::kFreeGpus:
    case Dimension::kShare:
      return room_sentence(shape, obstacle, view);
    case Dimension::kGpuCount:
      return fmt::format("{} {} wanted and the machine has {}", gpus_text(shape.gpus()), are(shape.gpus()),
                         state.kind->count() == 0 ? "none" : std::to_string(state.kind->count()));
    case Dimension::kCpus:
      return fmt::format("{} CPUs are wanted and {} of {} are free", cpus_text(request.milli_cpus),
                         cpus_text(std::max<std::int64_t>(0, state.free_milli_cpus)),
                         cpus_text(state.milli_cpus));
    case Dimension::kMemory:
      return fmt::format("{} of memory are wanted and {} of {} are free",
                         in_bytes(request.memory_bytes, state.free_memory).wanted,
                         in_bytes(request.memory_bytes, state.free_memory).has,
                         format_bytes(static_cast<std::uint64_t>(state.memory_bytes)));
    case Dimension::kEligibility:
      return clause(shape, obstacle, view, true);
    default:
      return "the machine " + clause(shape, obstacle, view, true);
  }
}

}  // namespace drover::placement
