#pragma once

// What the variants of an image need, as a condition on GPUs (control/image_fit.h), so that a task is only
// given GPUs that one of them works on.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/image_fit.h"
#include "engine/variants.h"

namespace drover::engine {

/// What decides about variants: of the GPUs, one of each compute capability, by it.
gpu::MachineFacts variant_facts(const placement::Node& node);

/// What a reference stands for; empty for a single image.
using VariantLister = std::function<Result<std::vector<ImageVariant>>(const std::string& reference)>;

/// None for an image that stands for a single one, cannot be read, or works with all GPUs and without.
/// The sets of GPUs hold what the check at a task's start accepts (image::Store::prepare); in lists of lists
/// they may leave out some of it, never more. `machine`: variant_facts().
std::optional<control::ImageFit> fit_of(const std::string& image, const gpu::MachineFacts& machine,
                                        const VariantLister& list);

}  // namespace drover::engine
