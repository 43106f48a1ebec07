#pragma once

// Numbers that follow from how busy a GPU is made to look: one place, so that power, clocks and heat agree.
// Pure.

#include "sim/faults.h"
#include "sim/profile.h"

namespace drover::sim {

inline bool busy(const GpuFaults& faults) {
  return faults.utilization.sm > 0;
}

inline unsigned int power_mw(const Model& model, const GpuFaults& faults) {
  const int range = model.power_limit_w - model.power_idle_w;
  return static_cast<unsigned int>(1000 * model.power_idle_w +
                                   10 * range * static_cast<int>(faults.utilization.sm));
}

inline unsigned int temperature_c(const Model& model, const GpuFaults& faults) {
  const auto range = model.temperature_slowdown_c - model.temperature_idle_c;
  const int warm = model.temperature_idle_c + range * static_cast<int>(faults.utilization.sm) / 200;
  return static_cast<unsigned int>(faults.temperature_c.value_or(warm));
}

}  // namespace drover::sim
