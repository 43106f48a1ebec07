#pragma once

// Which image a task gets where its name stands for several: the one that fits the machine and the GPUs
// that it was given, the most specific first. Pure.

#include "container/containerizer.h"
#include "image/variants.h"

namespace drover::container {

/// For Store::prepare. launch.progress hears which is taken, and why; kUnsupported with a reason for each
/// variant when none fits. `launch` must live as long.
image::VariantChooser variant_chooser(const Launch& launch);

}  // namespace drover::container
