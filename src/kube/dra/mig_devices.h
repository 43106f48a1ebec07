#pragma once

// GPUs in MIG mode as partitionable devices (KEP-4815): every instance that could be made is a device, and
// consumes counters of its GPU, so that the scheduler never chooses two that do not fit side by side. Names
// are those of NVIDIA's driver. Pure.
//
// An instance that the driver has not made is somebody's on purpose. It is a device with a UUID and consumes
// nothing; what it takes of the GPU is in no counter, and nothing that overlaps it is offered.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/dra/view.h"

namespace drover::kube::dra {

struct MigDevice {
  std::string name;  ///< mig_device_name()
  gpu::MigPart part;
  gpu::MigProfile profile;
  bool fixed = false;  ///< it is there, and not made by the driver
  std::string uuid;    ///< of the instance, while it is there; "" else

  bool operator==(const MigDevice&) const = default;
};

/// Of one GPU, by profile and placement; none when it is not in MIG mode.
std::vector<MigDevice> mig_devices_of(const View& view, const gpu::Device& device);

/// What a part is called whose instance begins there: "gpu-0-mig-3g20gb-9-4".
std::string mig_device_name(const gpu::Device& device, const gpu::MigProfile& profile, unsigned start);

/// The device as a ResourceSlice has it, without taints. `attributes` are those of the whole GPU.
nlohmann::json mig_device_json(const gpu::Device& device, const MigDevice& mig, nlohmann::json attributes);

/// One for each GPU that is cut up by need: {"name": "gpu-0-counter-set", "counters": {…}}.
std::vector<nlohmann::json> counter_sets_of(const View& view);

}  // namespace drover::kube::dra
