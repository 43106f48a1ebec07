#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "sim/profile.h"

namespace drover::sim {

inline std::filesystem::path profile_file(const std::string& name) {
  return std::filesystem::path(SIM_PROFILES) / (name + ".yaml");
}

/// A profile that comes with Drover.
inline Profile shipped(const std::string& name) {
  auto profile = load_profile(profile_file(name));
  if (!profile) throw std::runtime_error(to_string(profile.error()));
  return std::move(*profile);
}

}  // namespace drover::sim
