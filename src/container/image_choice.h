#pragma once

// Which image a task gets where its name stands for several (Q3): the one that fits the machine and the GPUs
// that it was given, the most specific first. Pure, but for the lister that is handed in.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "container/containerizer.h"
#include "image/variants.h"

namespace drover::container {

/// image::Store::variants.
using VariantLister =
    std::function<Result<std::vector<image::Variant>>(const std::string& reference, const User& reader)>;

/// The reference to prepare: the task's own, or that of a variant; launch.progress hears which, and why.
/// kUnsupported with a reason for each variant when none fits.
Result<std::string> choose_image(const Launch& launch, const User& reader, const VariantLister& list);

}  // namespace drover::container
