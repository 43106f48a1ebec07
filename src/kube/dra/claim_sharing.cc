#include "kube/dra/claim_sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/shorten.h"

namespace drover::kube::dra {
namespace {

/// Why a device cannot be shared as its configuration says; "" when it can.
std::string why_not(const PreparedDevice& device) {
  const auto& sharing = device.allocated.sharing;
  const bool is_plain =
      !sharing.mps && sharing.interval.value_or(share::Interval::kDefault) == share::Interval::kDefault;
  if (is_plain) return "";
  if (device.mig || device.uuid.starts_with("MIG-"))
    return "is a part of a GPU in MIG mode, which has no MPS, and no interval of its own";
  if (device.allocated.admin) return "is an administrator's, who has it beside whoever uses it";
  if (sharing.mps && device.allocated.shared())
    return "is given in parts, and MPS would shut out who has the other parts";
  return "";
}

Status add_memory(const PreparedClaim& claim, const MpsConfig& config, share::MpsLimits& limits) {
  if (config.memory_mib)
    for (const auto& gpu : limits.gpus) limits.memory_mib[gpu] = *config.memory_mib;
  for (const auto& [name, mib] : config.memory_mib_of) {
    const auto named = std::ranges::find(limits.gpus, name);
    const auto place = std::ranges::find_if(limits.gpus, [&](const std::string& gpu) {
      return name == std::to_string(&gpu - limits.gpus.data());
    });
    const auto found = named != limits.gpus.end() ? named : place;
    if (found == limits.gpus.end())
      return fail(ErrorKind::kInvalid,
                  fmt::format("the claim {} limits the memory of '{}', which is none of its {} GPUs",
                              to_string(claim.reference), shortened(name), limits.gpus.size()),
                  "name a GPU by its UUID, or by its place in the claim, from 0 on");
    limits.memory_mib[*found] = mib;
  }
  return {};
}

}  // namespace

Result<share::Arrangement> arrangement_of(const PreparedClaim& claim) {
  share::Arrangement arrangement;
  const auto refused = [&](const std::string& why) {
    return fail(ErrorKind::kInvalid, fmt::format("the claim {} {}", to_string(claim.reference), why));
  };
  const MpsConfig* mps = nullptr;
  for (const auto& device : claim.devices) {
    const auto& sharing = device.allocated.sharing;
    if (const auto why = why_not(device); !why.empty())
      return refused(
          fmt::format("cannot be shared as its configuration says: '{}' {}", device.allocated.device, why));
    if (sharing.mps) {
      if (mps != nullptr && *mps != *sharing.mps)
        return refused("asks for MPS with several configurations: make a claim for each");
      mps = &*sharing.mps;
      if (!arrangement.mps) arrangement.mps.emplace();
      arrangement.mps->gpus.push_back(device.uuid);
    } else if (sharing.interval && !device.mig && !device.allocated.admin) {
      const auto [known, is_new] = arrangement.intervals.emplace(device.uuid, *sharing.interval);
      if (!is_new && known->second != *sharing.interval)
        return refused("asks for two intervals of the same GPU");
    }
  }
  if (mps == nullptr) return arrangement;
  arrangement.mps->threads = mps->threads;
  DROVER_CHECK_OK(add_memory(claim, *mps, *arrangement.mps));
  return arrangement;
}

cdi::Edits mps_edits(const share::MpsPlaces& places) {
  cdi::Edits edits;
  edits.environment = {fmt::format("{}={}", share::kMpsPipeVariable, share::kMpsPipe)};
  for (const auto& [source, destination, writable] : share::mps_mounts(places, share::kMpsPipe))
    edits.mounts.push_back(
        {source, destination, "", {writable ? "rw" : "ro", "nosuid", "nodev", "noexec", "bind"}});
  return edits;
}

}  // namespace drover::kube::dra
