#include "placement/part_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "placement/filter.h"
#include "placement/words.h"

namespace drover::placement {
namespace {

/// A GPU in MIG mode with its position on the node.
struct Candidate {
  int device = 0;
  CutGpu gpu;
};

const gpu::MigGpu* mig_of(const Node& node, const gpu::Device& device) {
  const auto found = node.mig.find(device.uuid);
  return device.mig != gpu::MigMode::kEnabled || found == node.mig.end() ? nullptr : &found->second;
}

/// What others have made there, and what is given.
CutGpu cut_gpu(const NodeState& state, const gpu::MigGpu& facts, int device) {
  CutGpu gpu{&facts, {}};
  for (const auto& instance : facts.instances) gpu.taken.push_back({instance.profile_id, instance.placement});
  for (const auto& part : state.parts)
    if (part.device == device) gpu.taken.push_back(part.instance);
  return gpu;
}

enum class Which { kAll, kGivable };

/// Those that the request's filters allow.
std::vector<Candidate> candidates(const NodeState& state, const Node& node, const Request& request,
                                  Which which) {
  const auto allowed = request.gpus.empty() ? DeviceMask{0}
                                            : allowed_devices(*state.kind, request.gpus.front().filter,
                                                              Share{}, Dimension::kDriver);
  const auto capable = devices_by_capabilities(*state.kind, request.capabilities);
  std::vector<Candidate> found;
  for (int i = 0; i < state.kind->count(); ++i) {
    const auto& device = node.inventory.devices[static_cast<std::size_t>(i)];
    const auto* facts = mig_of(node, device);
    const bool able = capable.empty() || std::ranges::any_of(capable, [&](DeviceMask set) {
                        return (set & device_bit(i)) != 0;
                      });
    if (facts == nullptr || !able || (allowed & device_bit(i)) == 0) continue;
    if (which == Which::kAll || gpu::gives_parts(device)) found.push_back({i, cut_gpu(state, *facts, i)});
  }
  return found;
}

std::vector<CutGpu> gpus_of(const std::vector<Candidate>& candidates) {
  std::vector<CutGpu> gpus;
  for (const auto& candidate : candidates) gpus.push_back(candidate.gpu);
  return gpus;
}

std::optional<PartObstacle> why_never(const std::vector<Candidate>& all, const Request& request) {
  if (all.empty()) return kNoMigGpu;
  int most = 0;
  bool known = false;
  for (const auto& candidate : all) {
    const auto* profile = candidate.gpu.facts->profile(request.part);
    if (profile == nullptr) continue;
    known = true;
    most += room_for({candidate.gpu.facts, {}}, *profile);
  }
  if (!known) return kNoProfile;
  return most < request.gpu_count() ? std::optional(kTooManyParts) : std::nullopt;
}

std::string profiles_text(const std::vector<Candidate>& all) {
  std::vector<std::string> names;
  for (const auto& candidate : all)
    for (const auto& profile : candidate.gpu.facts->profiles)
      if (std::ranges::find(names, profile.name) == names.end()) names.push_back(profile.name);
  return list_text(names, "and");
}

/// "GPU 0 has 4g.20gb and 2g.10gb": what is there.
std::string cut_text(const Node& node, const Candidate& candidate) {
  std::vector<std::string> names;
  auto taken = candidate.gpu.taken;
  std::ranges::sort(taken, {}, &Instance::placement);
  for (const auto& instance : taken) {
    const auto* profile = candidate.gpu.facts->profile(instance.profile_id);
    names.push_back(profile == nullptr ? "an unknown one" : profile->name);
  }
  const auto& device = node.inventory.devices[static_cast<std::size_t>(candidate.device)];
  return fmt::format("GPU {} has {}", device.index, names.empty() ? "none" : list_text(names, "and"));
}

std::string room_text(const NodeState& state, const Node& node, const Request& request) {
  std::vector<std::string> cuts;
  for (const auto& candidate : candidates(state, node, request, Which::kGivable))
    cuts.push_back(cut_text(node, candidate));
  const auto wanted =
      request.gpu_count() == 1 ? request.part : fmt::format("{} × {}", request.gpu_count(), request.part);
  if (cuts.empty()) return fmt::format("has no GPU in MIG mode that may be given, for {}", wanted);
  return fmt::format("has no room for {} on its GPUs in MIG mode: {}", wanted, fmt::join(cuts, ", "));
}

}  // namespace

std::optional<Obstacle> part_obstacle(const NodeState& state, const Node& node, const Request& request) {
  if (const auto never = why_never(candidates(state, node, request, Which::kAll), request))
    return Obstacle{Dimension::kParts, 0, *never};
  const auto gpus = gpus_of(candidates(state, node, request, Which::kGivable));
  if (choose_parts(gpus, request.part, request.gpu_count())) return std::nullopt;
  return Obstacle{Dimension::kParts, 0, kNoRoom};
}

std::vector<Grant> grants_of_parts(const NodeState& state, const Node& node, const Request& request) {
  const auto found = candidates(state, node, request, Which::kGivable);
  std::vector<Grant> grants;
  const auto chosen = choose_parts(gpus_of(found), request.part, request.gpu_count());
  for (const auto& part : chosen.value_or(std::vector<ChosenPart>{})) {
    const auto& candidate = found[part.gpu];
    const auto* profile = candidate.gpu.facts->profile(part.instance.profile_id);
    grants.push_back({.uuid = node.inventory.devices[static_cast<std::size_t>(candidate.device)].uuid,
                      .milli = request.share.milli,
                      .memory_bytes = profile->attributes.memory_bytes,
                      .mig = MigGrant{request.part, profile->id, part.instance.placement}});
  }
  return grants;
}

bool part_is_free(const NodeState& state, const Node& node, int device, const Instance& part) {
  const auto* facts = mig_of(node, node.inventory.devices[static_cast<std::size_t>(device)]);
  return facts != nullptr && fits(cut_gpu(state, *facts, device), part);
}

std::string part_clause(const NodeState& state, const Node& node, const Request& request,
                        const Obstacle& obstacle) {
  const auto all = candidates(state, node, request, Which::kAll);
  switch (obstacle.variant) {
    case kNoMigGpu:
      return "has no GPU in MIG mode" + std::string(node.mig.empty() ? "" : " that is what is asked for");
    case kNoProfile:
      return fmt::format("has no GPU with the MIG profile {}: there are {}", request.part,
                         profiles_text(all));
    case kTooManyParts:
      return fmt::format("has GPUs for fewer than {} × {}", request.gpu_count(), request.part);
    default:
      return room_text(state, node, request);
  }
}

std::shared_ptr<const Node> with_all_parts(const std::shared_ptr<const Node>& node) {
  if (node->mig.empty()) return node;
  auto all = std::make_shared<Node>(*node);
  for (auto& [uuid, gpu] : all->mig) gpu.instances.clear();
  for (auto& device : all->inventory.devices) {
    if (device.mig != gpu::MigMode::kEnabled) continue;
    device.unhealthy = gpu::kInMigMode;
    device.cordoned.clear();
  }
  return all;
}

}  // namespace drover::placement
