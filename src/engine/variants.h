#pragma once

// Which variant of an image a machine takes, for people (Q3). Pure.

#include <string>
#include <vector>

#include "gpu/variant.h"

namespace drover::engine {

struct ImageVariant {
  gpu::VariantNeeds needs;
  std::string image;  ///< its own reference
};

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

}  // namespace drover::engine
