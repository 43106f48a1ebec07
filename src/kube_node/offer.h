#pragma once

// What the roles of a node are told of its GPUs: what is known of them from several sides, put together.
// Pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "gpu/device.h"
#include "gpu/health.h"
#include "kube/dra/view.h"
#include "kube/plugin/mig_devices.h"
#include "kube/plugin/resources.h"

namespace drover {

/// Adds what ails a GPU of the view. What concerns a part of a GPU in MIG mode is the trouble of the MIG
/// devices in that part only. What does not take it out becomes a trouble that only tells.
void add_health(const gpu::Device& device, const std::vector<gpu::Reason>& reasons, kube::dra::View& view);

/// MIG devices are unhealthy for what is wrong with them or with their GPU.
void mark_unhealthy(const kube::dra::View& view, kube::PluginDevices& devices);

/// What keeps GPUs from their users though they are healthy: by UUID, each a sentence.
using MissingFiles = std::map<std::string, std::string>;

/// What keeps GPUs from claims besides their health, and since when. Not thread safe.
class ClaimHindrances {
 public:
  explicit ClaimHindrances(std::string driver) : driver_(std::move(driver)) {}

  /// Adds who is in use by limits, and what no container could use, to the troubles of the view.
  void add(const kube::Holders& holders, const MissingFiles& missing, TimePoint now, kube::dra::View& view);

 private:
  std::string driver_;
  std::map<std::pair<std::string, std::string>, TimePoint> since_;  ///< by UUID and key of the taint
};

}  // namespace drover
