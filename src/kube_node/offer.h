#pragma once

// What the roles of a node are told of its GPUs: what is known of them from several sides, put together.
// Pure.

#include <vector>

#include "gpu/device.h"
#include "gpu/health.h"
#include "kube/dra/view.h"
#include "kube/plugin/mig_devices.h"

namespace drover {

/// Adds what ails a GPU of the view. What concerns a part of a GPU in MIG mode is the trouble of the MIG
/// devices in that part only. What does not take it out becomes a trouble that only tells.
void add_health(const gpu::Device& device, const std::vector<gpu::Reason>& reasons, kube::dra::View& view);

/// MIG devices are unfit for what is wrong with them or with their GPU.
void mark_unfit(const kube::dra::View& view, kube::PluginDevices& devices);

}  // namespace drover
