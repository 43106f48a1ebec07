#pragma once

// What images that stand for several work on, on this machine, as far as it is known. It becomes a
// condition on GPUs before anything is placed; what is checked when a task starts has the last word. Not
// journaled: images are looked at when work comes, and again after a restart. Pure.

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_map.h"
#include "gpu/device.h"
#include "placement/request.h"
#include "workload/task.h"

namespace drover::control {

/// An image as one user names it.
using ImageName = std::pair<uid_t, std::string>;

struct ImageFit {
  bool pending = false;  ///< it is being looked at: its tasks wait
  /// Why no task without GPUs can have it; "" when they can.
  std::string without_gpus;
  /// Why not every GPU will do, a reason for each variant; "" when every one will.
  std::string with_gpus;
  /// The GPUs that will do then: all of one task's out of one of these. None: no GPU will do.
  std::vector<std::vector<gpu::ComputeCapability>> sets;

  bool operator==(const ImageFit&) const = default;
};

/// Images that are not in here stand for a single one, or nothing is known of them.
using ImageFits = SharedMap<ImageName, ImageFit>;

/// None for a task without an image.
std::optional<ImageName> image_name(const workload::Task& task);

/// The fit of a task's image; null when there is none.
const ImageFit* find_fit(const ImageFits& fits, const workload::Task& task);
/// Why a task can never run here, for its image; none when it may.
std::optional<std::string> refusal(const ImageFit& fit, const workload::Task& task);
/// Lets the request have such GPUs only that the task's image works on.
void narrow(placement::Request& request, const workload::Task& task, const ImageFits& fits);

}  // namespace drover::control
