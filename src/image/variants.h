#pragma once

// One name that stands for several images, of which each machine takes the one that fits it. Two forms:
//
//   an OCI index whose entries say in annotations what they need:
//     dev.drover.variant.name, .cpu, .driver, .cuda, .compute-capability
//   (or, for amd64, only in platform.variant: "v2", "v3", "v4"), and a list in YAML:
//     variants:
//       - {name: fast, image: "oci:/srv/images/tool:fast", cpu: skylake-avx512, driver: ">=396",
//          cuda: "9.2", compute_capability: ["5.2", "6.0"]}
//
// They come from strangers: everything is limited and checked. Pure.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/variant.h"
#include "image/document.h"

namespace drover::image {

struct Variant {
  gpu::VariantNeeds needs;
  std::string reference;  ///< of the image, as Store::prepare takes it

  bool operator==(const Variant&) const = default;
};

/// Takes one of the variants that `reference` stands for, by its index, or says why none will do.
using VariantChooser =
    std::function<Result<std::size_t>(const std::string& reference, const std::vector<Variant>& variants)>;

inline constexpr std::size_t kMaxVariants = 256;
/// A variant may have variants itself.
inline constexpr int kMostVariantLevels = 3;

/// Of a list; `what` names it in messages. All mistakes at once, with their paths.
Result<std::vector<Variant>> parse_variant_list(std::string_view text, std::string_view what);

/// Of an index; empty when no entry says what it needs, and the usual choice by platform is meant. An entry's
/// reference is `reference` with its digest. Entries that are no images for Linux on `architecture` (Go's
/// name) are left out.
Result<std::vector<Variant>> variants_of(const std::vector<Descriptor>& entries, const std::string& reference,
                                         const std::string& architecture);

}  // namespace drover::image
