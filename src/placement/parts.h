#pragma once

// Where MIG instances go on GPUs that are cut up by need. Exact: whenever there is a way, one is found. Of
// all ways it is the one that leaves the most room for the largest profile, then for the next smaller one,
// and so on; then the one with the lowest GPUs and places. Room for a profile is how many more instances of
// it would fit if all that is left were used for it. Pure; deterministic.
//
// What fits is what NVIDIA says: at one of the places of its profile, over no other instance, and no more of
// one profile than the GPU can have.

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gpu/mig_facts.h"

namespace drover::placement {

/// An instance on a GPU, or one that could be.
struct Instance {
  unsigned profile_id = 0;
  gpu::MigPlacement placement;

  auto operator<=>(const Instance&) const = default;
};

/// A GPU in MIG mode that parts may be given of.
struct CutGpu {
  const gpu::MigGpu* facts = nullptr;  ///< never null; outlives this
  std::vector<Instance> taken;         ///< what is there, or is given: none of it is moved
};

/// Whether it fits beside what is taken.
bool fits(const CutGpu& gpu, const Instance& instance);
/// How many more of the profile fit.
int room_for(const CutGpu& gpu, const gpu::MigProfile& profile);

struct ChosenPart {
  std::size_t gpu = 0;  ///< by its place among those that were offered
  Instance instance;

  auto operator<=>(const ChosenPart&) const = default;
};

/// So many instances of the profile of that name, ascending. nullopt when they do not fit.
std::optional<std::vector<ChosenPart>> choose_parts(const std::vector<CutGpu>& gpus,
                                                    const std::string& profile, int count);

}  // namespace drover::placement
