#pragma once

// Numbers that follow from how busy a GPU is made to look: one place, so that power, clocks and heat agree.
// Pure.

#include "sim/faults.h"
#include "sim/profile.h"

namespace drover::sim {

inline bool busy(const Utilization& utilization) {
  return utilization.sm > 0;
}

inline unsigned int power_mw(const Model& model, const Utilization& utilization) {
  const int range = model.power_limit_w - model.power_idle_w;
  return static_cast<unsigned int>(1000 * model.power_idle_w + 10 * range * static_cast<int>(utilization.sm));
}

inline unsigned int temperature_c(const Model& model, const Utilization& utilization) {
  const auto range = model.temperature_slowdown_c - model.temperature_idle_c;
  return static_cast<unsigned int>(model.temperature_idle_c + range * static_cast<int>(utilization.sm) / 200);
}

}  // namespace drover::sim
