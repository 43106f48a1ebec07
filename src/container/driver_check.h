#pragma once

// Looks into an image for user-land drivers, and matches it with the machine before a task starts (Q1, Q2):
// the same for every containerizer. Blocks; thread safe.

#include "base/result.h"
#include "container/containerizer.h"
#include "driver/match.h"
#include "image/image.h"

namespace drover::container {

/// What is known of the image: its environment with the task's on top, and the drivers in its layers. Of an
/// image without `layers` (a Docker Engine's own) only the environment is known.
Result<driver::ImageFacts> driver_facts(const Launch& launch, const image::Image& image);

/// Refuses an image that cannot work on the GPUs that the task was given; fine for a task without GPUs. The
/// answer says whether the image's forward compatibility package belongs before the machine's driver
/// (environment_of).
Result<bool> check_driver(const Launch& launch, const image::Image& image);

}  // namespace drover::container
