#pragma once

// Multi-Instance GPU: how a GPU in MIG mode can be cut up, how it is, and the making and destroying of
// instances. An instance here is a GPU instance with one compute instance that takes all of it: what
// containers are given. Others are seen, so that nobody counts on their place, and are not usable.
//
// Asks NVML, which needs root for most of it; blocks while the driver answers. Thread safe; two that make
// instances of one GPU at the same time get what NVML makes of it.
// Source: NVML API reference; NVIDIA's MIG user guide.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/nvml.h"

namespace drover::gpu {

/// In slices of memory.
struct MigPlacement {
  unsigned start = 0;
  unsigned size = 0;

  auto operator<=>(const MigPlacement&) const = default;
  bool overlaps(const MigPlacement& other) const {
    return start < other.start + other.size && other.start < start + size;
  }
};

struct MigAttributes {
  unsigned multiprocessors = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned encoders = 0;
  unsigned jpeg_engines = 0;
  unsigned ofa_engines = 0;
  std::uint64_t memory_bytes = 0;

  bool operator==(const MigAttributes&) const = default;
};

/// A kind of instance that the GPU can be cut into.
struct MigProfile {
  std::string name;  ///< as Kubernetes has it: "3g.20gb", "1g.5gb.me"
  unsigned id = 0;   ///< NVML's
  unsigned slices = 0;
  unsigned instances = 0;  ///< that fit on an empty GPU
  MigAttributes attributes;
  std::vector<MigPlacement> placements;  ///< all that are possible on an empty GPU

  bool operator==(const MigProfile&) const = default;
};

struct MigInstanceFacts {
  unsigned gpu_instance = 0;
  unsigned profile_id = 0;
  MigPlacement placement;
  std::string uuid;  ///< "MIG-…"; "" unless one compute instance takes all of it
  unsigned compute_instance = 0;

  bool operator==(const MigInstanceFacts&) const = default;
};

/// A GPU in MIG mode.
struct MigGpu {
  std::vector<MigProfile> profiles;         ///< by id, the smaller ones last
  std::vector<MigInstanceFacts> instances;  ///< by placement

  bool operator==(const MigGpu&) const = default;
  const MigProfile* profile(unsigned id) const;
};

/// One instance that could be: what it is called by, whether it exists or not.
struct MigPart {
  std::string gpu;  ///< UUID of the whole GPU
  unsigned profile_id = 0;
  MigPlacement placement;

  auto operator<=>(const MigPart&) const = default;
};

/// kUnsupported when the library or the GPU has no MIG.
Result<MigGpu> discover_mig(const Nvml& nvml, const std::string& gpu);

/// One that is there already, whole or half made, is taken and completed: the same call again is fine.
/// kConflict when something else has its place.
Result<MigInstanceFacts> make_mig_instance(const Nvml& nvml, const MigPart& part);

/// With its compute instances. One that is not there is fine. kConflict while it is used.
Status destroy_mig_instance(const Nvml& nvml, const MigPart& part);

}  // namespace drover::gpu
