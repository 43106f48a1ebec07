#pragma once

// Multi-Instance GPU: how a GPU in MIG mode can be cut up, how it is, and the making and destroying of
// instances. An instance here is a GPU instance with one compute instance that takes all of it: what
// containers are given. Others are seen, so that nobody counts on their place, and are not usable.
//
// Asks NVML, which needs root for most of it; blocks while the driver answers. Thread safe; two that make
// instances of one GPU at the same time get what NVML makes of it.
// Source: NVML API reference; NVIDIA's MIG user guide.

#include <string>

#include "base/result.h"
#include "gpu/mig_facts.h"
#include "gpu/nvml.h"

namespace drover::gpu {

/// kUnsupported when the library or the GPU has no MIG.
Result<MigGpu> discover_mig(const Nvml& nvml, const std::string& gpu);

/// One that is there already, whole or half made, is taken and completed: the same call again is fine.
/// kConflict when something else has its place.
Result<MigInstanceFacts> make_mig_instance(const Nvml& nvml, const MigPart& part);

/// With its compute instances. One that is not there is fine. kConflict while it is used.
Status destroy_mig_instance(const Nvml& nvml, const MigPart& part);

}  // namespace drover::gpu
