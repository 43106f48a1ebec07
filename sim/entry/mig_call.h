#pragma once

// What the entry points of Multi-Instance GPU have in common.

#include "sim/entry/call.h"

namespace drover::sim {

/// Runs `body(const Call&)` on a card that can be cut.
template <typename Body>
nvmlReturn_t on_mig_card(const char* function, nvmlDevice_t device, Body body) noexcept {
  return with_device(function, device, [&](const Call& call) {
    return call.model.mig.empty() ? NVML_ERROR_NOT_SUPPORTED : body(call);
  });
}

/// The GPU of the call as it is cut up now.
inline MigGpu mig_of(const Call& call) {
  return (*call.machine.mig().current())[call.device.position];
}

/// The driver has no figure of the load of a GPU that is in MIG mode, nor of its processes'.
inline bool tells_load(const Call& call) {
  return call.model.mig.empty() || !mig_of(call).enabled;
}

inline const MigProfile* profile_with(const Model& model, unsigned int id) {
  for (const auto& profile : model.mig)
    if (static_cast<unsigned int>(profile.id) == id) return &profile;
  return nullptr;
}

struct MediaEngines {
  unsigned int jpeg = 0;
  unsigned int ofa = 0;
};

/// A card has one of each: they go with all of it, or with the one profile that has them for that.
inline MediaEngines engines_of(const MigProfile& profile) {
  const bool has = profile.slices == static_cast<int>(kComputeSlices) || profile.name.ends_with("+me");
  return has ? MediaEngines{1, 1} : MediaEngines{};
}

}  // namespace drover::sim
