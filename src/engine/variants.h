#pragma once

// Which variant of an image a machine takes, for people. Pure.

#include <set>
#include <string>
#include <vector>

#include "gpu/variant.h"
#include "image/variants.h"
#include "placement/node.h"

namespace drover::engine {

using ImageVariant = image::Variant;

gpu::MachineFacts facts_of(const placement::Node& node);

std::vector<gpu::VariantNeeds> needs_of(const std::vector<ImageVariant>& variants);

struct VariantsView {
  std::string profile;  ///< of the simulator; "" for this machine
  gpu::MachineFacts machine;
  std::vector<ImageVariant> variants;  ///< none: the name means a single image
  /// What tasks get with each kind of GPU that the machine has; on one without GPUs, what tasks get without.
  struct Case {
    std::vector<gpu::Device> devices;
    gpu::VariantChoice choice;
  };
  std::vector<Case> cases;
};

VariantsView explain_variants(std::vector<ImageVariant> variants, gpu::MachineFacts machine,
                              std::string profile);

/// Those that tasks take, by their indexes. kUnsupported with the reasons when there is none.
Result<std::set<std::size_t>> taken(const VariantsView& view);

}  // namespace drover::engine
