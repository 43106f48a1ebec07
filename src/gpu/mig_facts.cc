#include "gpu/mig_facts.h"

#include <algorithm>

namespace drover::gpu {

const MigProfile* MigGpu::profile(unsigned id) const {
  const auto found = std::ranges::find(profiles, id, &MigProfile::id);
  return found == profiles.end() ? nullptr : &*found;
}

const MigProfile* MigGpu::profile(std::string_view name) const {
  const auto found = std::ranges::find(profiles, name, &MigProfile::name);
  return found == profiles.end() ? nullptr : &*found;
}

}  // namespace drover::gpu
