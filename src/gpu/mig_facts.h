#pragma once

// How a GPU in MIG mode can be cut up, and how it is: values, as gpu/mig.h asks for them. No I/O.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  /// nullptr when it has none of that number, or name.
  const MigProfile* profile(unsigned id) const;
  const MigProfile* profile(std::string_view name) const;
};

/// One instance that could be: what it is called by, whether it exists or not.
struct MigPart {
  std::string gpu;  ///< UUID of the whole GPU
  unsigned profile_id = 0;
  MigPlacement placement;

  auto operator<=>(const MigPart&) const = default;
};

}  // namespace drover::gpu
