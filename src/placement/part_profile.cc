#include "placement/part_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/units.h"
#include "placement/filter.h"
#include "placement/words.h"

namespace drover::placement {
namespace {

constexpr std::uint64_t kWholeMilli = 1000;

bool is_smaller(const gpu::MigProfile* one, const gpu::MigProfile* other) {
  const auto size = [](const gpu::MigProfile& profile) {
    return std::tie(profile.attributes.memory_bytes, profile.slices, profile.name);
  };
  return other == nullptr || size(*one) < size(*other);
}

/// In slices of memory; 0 for one that fits nowhere.
unsigned memory_slices(const gpu::MigProfile& profile) {
  return profile.placements.empty() ? 0 : profile.placements.front().size;
}

/// A part of a GPU is one of the slices that all of it has, since less than all of its bytes are in any.
bool holds(const gpu::MigGpu& gpu, const gpu::MigProfile& profile, const Share& share) {
  if (share.memory_bytes > 0) return profile.attributes.memory_bytes >= share.memory_bytes;
  std::uint64_t memory = 0, slices = 0;
  for (const auto& each : gpu.profiles) {
    memory = std::max<std::uint64_t>(memory, memory_slices(each));
    slices = std::max<std::uint64_t>(slices, each.slices);
  }
  const auto milli = static_cast<std::uint64_t>(share.milli);
  return memory_slices(profile) * kWholeMilli >= memory * milli &&
         profile.slices * kWholeMilli >= slices * milli;
}

std::vector<const gpu::MigGpu*> cut_gpus(const Node& node, const Request& request) {
  std::vector<const gpu::MigGpu*> gpus;
  if (request.gpus.empty()) return gpus;
  const auto kind = make_node_kind(node, 0);
  const auto allowed = allowed_devices(kind, request.gpus.front().filter, Share{}, Dimension::kDriver);
  for (int i = 0; i < kind.count(); ++i) {
    const auto& device = node.inventory.devices[static_cast<std::size_t>(i)];
    const auto facts = node.mig.find(device.uuid);
    if (device.mig == gpu::MigMode::kEnabled && facts != node.mig.end() && (allowed & device_bit(i)) != 0)
      gpus.push_back(&facts->second);
  }
  return gpus;
}

}  // namespace

Result<std::string> profile_with_share(const Node& node, const Request& request) {
  const gpu::MigProfile* smallest = nullptr;
  const gpu::MigProfile* largest = nullptr;
  for (const auto* gpu : cut_gpus(node, request))
    for (const auto& profile : gpu->profiles) {
      if (largest == nullptr || is_smaller(largest, &profile)) largest = &profile;
      if (holds(*gpu, profile, request.share) && is_smaller(&profile, smallest)) smallest = &profile;
    }
  if (smallest != nullptr) return smallest->name;
  if (largest == nullptr)
    return fail(
        ErrorKind::kInvalid,
        "no GPU here is in MIG mode" + std::string(node.mig.empty() ? "" : " that is what is asked for"),
        "'nvidia-smi -i N -mig 1' brings one into it, as root", "/share_by");
  const auto& share = request.share;
  const auto wanted = share.memory_bytes > 0 ? format_bytes(share.memory_bytes)
                                             : fmt::format("{} of one", milli_text(share.milli));
  return fail(ErrorKind::kInvalid,
              fmt::format("no profile of the GPUs here has {}: the largest is {}", wanted, largest->name),
              "ask for less, or for whole GPUs", "/share_by");
}

}  // namespace drover::placement
