#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "placement/explain.h"
#include "placement/filter.h"
#include "placement/words.h"

namespace drover::placement {
namespace {

const DeviceClaim& claim_of(const Shape& shape, const Obstacle& obstacle) {
  return shape.request().gpus[static_cast<std::size_t>(obstacle.which)];
}

/// "model A100", "40 GiB": what the filter says of this dimension.
std::string filter_text(const DeviceClaim& claim, const Share& share, Dimension dimension) {
  const auto& filter = claim.filter;
  switch (dimension) {
    case Dimension::kModel:
      return "model " + or_text(filter.models);
    case Dimension::kGpuMemory:
      return "GPU with " + format_bytes(std::max(filter.min_memory_bytes, share.memory_bytes));
    case Dimension::kComputeCapability:
      return fmt::format("GPU of compute capability {}.{}", filter.min_compute_capability->major,
                         filter.min_compute_capability->minor);
    case Dimension::kEcc:
      return *filter.ecc ? "GPU with ECC" : "GPU without ECC";
    default:
      return "GPU";
  }
}

/// " of model A100" where the claim names one.
std::string of_model(const DeviceClaim& claim) {
  return claim.filter.models.empty() ? "" : " of model " + or_text(claim.filter.models);
}

int allowed_count(const Shape& shape, const Obstacle& obstacle, const NodeState& state) {
  return std::popcount(allowed_devices(*state.kind, claim_of(shape, obstacle).filter, shape.request().share,
                                       obstacle.dimension));
}

/// Of the claim's devices, how many could be taken.
int roomy_count(const Shape& shape, const Obstacle& obstacle, const NodeState& state) {
  const auto& claims = shape.on(*state.kind).claims;
  return std::popcount(claims[static_cast<std::size_t>(obstacle.which)].allowed &
                       devices_with_room(state, shape));
}

std::string has_filter(const Shape& shape, const Obstacle& obstacle, const NodeState& state) {
  const auto& claim = claim_of(shape, obstacle);
  const auto text = filter_text(claim, shape.request().share, obstacle.dimension);
  const auto count = allowed_count(shape, obstacle, state);
  if (count == 0) return "has no " + text;
  return fmt::format("has too few: {} × {} wanted", claim.count, text);
}

/// "2 across sockets": the set that the node would give without the minimum.
std::string best_without_minimum(const Shape& shape, const NodeState& state) {
  const auto& wiring = state.kind->wiring;
  const auto chosen = choose(wiring, device_wish(state, shape, Dimension::kFreeGpus));
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

std::string free_devices_clause(const Shape& shape, const Obstacle& obstacle, const NodeState& state,
                                bool only_node) {
  const auto& claim = claim_of(shape, obstacle);
  const auto& share = shape.request().share;
  const auto has = only_node ? fmt::format(" (has {})", roomy_count(shape, obstacle, state)) : "";
  if (obstacle.dimension == Dimension::kUnfit)
    return fmt::format("lacks {}{} in good health", gpus_text(claim.count), of_model(claim));
  if (shape.whole())
    return fmt::format("lacks {} free GPU{}{}{}", claim.count, claim.count == 1 ? "" : "s", of_model(claim),
                       has);
  if (claim.count == 1)
    return fmt::format("has no GPU{} with {} left", of_model(claim),
                       share.memory_bytes > 0 ? format_bytes(share.memory_bytes) : milli_text(share.milli));
  return fmt::format("lacks {}{} with {} left{}", gpus_text(claim.count), of_model(claim),
                     share.memory_bytes > 0 ? format_bytes(share.memory_bytes) : milli_text(share.milli),
                     has);
}

/// A share is wanted of one GPU: how much the one with most has left.
std::string most_left(const Shape& shape, const Obstacle& obstacle, const NodeState& state) {
  const auto& claims = shape.on(*state.kind).claims;
  const auto allowed = claims[static_cast<std::size_t>(obstacle.which)].allowed & state.fit;
  DeviceState most{.free_milli = 0};
  for (auto rest = allowed; rest != 0; rest &= rest - 1) {
    const auto& device = state.devices[static_cast<std::size_t>(std::countr_zero(rest))];
    most.free_milli = std::max(most.free_milli, device.free_milli);
    most.free_memory = std::max(most.free_memory, device.free_memory);
  }
  return shape.request().share.memory_bytes > 0 ? format_bytes(static_cast<std::uint64_t>(most.free_memory))
                                                : milli_text(most.free_milli);
}

std::string free_devices_sentence(const Shape& shape, const Obstacle& obstacle, const NodeState& state) {
  const auto& claim = claim_of(shape, obstacle);
  const auto& share = shape.request().share;
  const auto roomy = roomy_count(shape, obstacle, state);
  const auto all =
      std::popcount(shape.on(*state.kind).claims[static_cast<std::size_t>(obstacle.which)].allowed);
  const auto unfit =
      std::popcount(shape.on(*state.kind).claims[static_cast<std::size_t>(obstacle.which)].allowed &
                    state.idle & ~state.fit);
  std::string text;
  if (shape.whole())
    text = fmt::format("{}{} {} wanted and {} of {} {} free", gpus_text(claim.count), of_model(claim),
                       are(claim.count), roomy, all, are(roomy));
  else if (claim.count == 1)
    text = fmt::format("{} is wanted and at most {} of one is left", share_text(share),
                       most_left(shape, obstacle, state));
  else
    text = fmt::format("{} of {} GPUs are wanted and {} of {} {} so much left", share_text(share),
                       claim.count, roomy, all, roomy == 1 ? "has" : "have");
  if (unfit > 0) text += fmt::format(", {} unfit", unfit);
  return text;
}

std::string attribute_text(const Shape& shape, const Obstacle& obstacle) {
  const auto& constraint = shape.request().attributes[static_cast<std::size_t>(obstacle.which)];
  return constraint.name + " " + or_text(constraint.any_of);
}

std::uint64_t bytes(std::int64_t amount) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(amount, 0));
}

std::string free_gpus_text(int count) {
  return fmt::format("{} free GPU{}", count, count == 1 ? "" : "s");
}

}  // namespace

std::string clause(const Shape& shape, const Obstacle& obstacle, const NodeView& view, bool only_node) {
  const auto& request = shape.request();
  const auto& state = *view.state;
  const auto detail = [&](const std::string& text) { return only_node ? " (" + text + ")" : ""; };
  switch (obstacle.dimension) {
    case Dimension::kCordon:
      return "is cordoned" + (view.node->cordoned.empty() ? "" : " (" + view.node->cordoned + ")");
    case Dimension::kAttribute:
      return "lacks " + attribute_text(shape, obstacle);
    case Dimension::kGpuCount:
      if (state.kind->count() == 0) return "has no GPU";
      return fmt::format("has fewer than {}{}", gpus_text(shape.gpus()),
                         detail("has " + std::to_string(state.kind->count())));
    case Dimension::kDriver:
      return fmt::format("lacks driver {} or newer{}", claim_of(shape, obstacle).filter.min_driver,
                         state.kind->driver.empty() ? "" : detail("has " + state.kind->driver));
    case Dimension::kModel:
    case Dimension::kGpuMemory:
    case Dimension::kComputeCapability:
    case Dimension::kEcc:
      return has_filter(shape, obstacle, state);
    case Dimension::kUnfit:
    case Dimension::kFreeGpus:
    case Dimension::kShare:
      return free_devices_clause(shape, obstacle, state, only_node);
    case Dimension::kInterconnect:
      return fmt::format("lacks {} {}{}", free_gpus_text(shape.gpus()),
                         interconnect_text(request.interconnect),
                         only_node ? detail("has " + best_without_minimum(shape, state)) : "");
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
      return fmt::format("lacks {} of free memory{}", format_bytes(request.memory_bytes),
                         detail("has " + format_bytes(bytes(state.free_memory))));
    default:
      return "has no room";
  }
}

std::string sentence(const Shape& shape, const Obstacle& obstacle, const NodeView& view) {
  const auto& request = shape.request();
  const auto& state = *view.state;
  switch (obstacle.dimension) {
    case Dimension::kUnfit:
    case Dimension::kFreeGpus:
    case Dimension::kShare:
      return free_devices_sentence(shape, obstacle, state);
    case Dimension::kGpuCount:
      return fmt::format("{} {} wanted and the machine has {}", gpus_text(shape.gpus()), are(shape.gpus()),
                         state.kind->count() == 0 ? "none" : std::to_string(state.kind->count()));
    case Dimension::kCpus:
      return fmt::format("{} CPUs are wanted and {} of {} are free", cpus_text(request.milli_cpus),
                         cpus_text(std::max<std::int64_t>(0, state.free_milli_cpus)),
                         cpus_text(state.milli_cpus));
    case Dimension::kMemory:
      return fmt::format("{} of memory are wanted and {} of {} are free", format_bytes(request.memory_bytes),
                         format_bytes(bytes(state.free_memory)), format_bytes(bytes(state.memory_bytes)));
    default:
      return "the machine " + clause(shape, obstacle, view, true);
  }
}

}  // namespace drover::placement
