#include "container/image_choice.h"

#include <fmt/format.h>

#include "base/shorten.h"

namespace drover::container {
namespace {

/// A list may name an image that has variants itself.
constexpr int kMostLevels = 3;

std::vector<gpu::VariantNeeds> needs_of(const std::vector<image::Variant>& variants) {
  std::vector<gpu::VariantNeeds> needs;
  for (const auto& variant : variants) needs.push_back(variant.needs);
  return needs;
}

Failure none_fits(const std::string& reference, const std::vector<image::Variant>& variants,
                  const gpu::VariantChoice& choice) {
  constexpr std::size_t kLongest = 2000;
  std::string reasons;
  for (std::size_t i = 0; i < variants.size(); ++i)
    reasons += fmt::format("{}{}: {}", i == 0 ? "" : "; ", variants[i].needs.name, choice.misfits[i]);
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("None of the {} variants of image '{}' fits this machine: {}", variants.size(),
                  shortened(reference), shortened(std::move(reasons), kLongest)),
      "add a variant that needs less, or choose other GPUs; 'drover image variants' explains the choice");
}

}  // namespace

Result<std::string> choose_image(const Launch& launch, const User& reader, const VariantLister& list) {
  auto reference = *launch.task.image;
  for (int level = 0; list && level < kMostLevels; ++level) {
    DROVER_TRY(const auto variants, list(reference, reader));
    if (variants.empty()) break;
    const auto choice = gpu::choose_variant(needs_of(variants), launch.machine);
    if (!choice.chosen) return none_fits(reference, variants, choice);
    const auto& chosen = variants[*choice.chosen];
    if (launch.progress)
      launch.progress(fmt::format("Of {} variants, '{}' fits best (it needs: {})", variants.size(),
                                  chosen.needs.name, gpu::describe(chosen.needs)));
    reference = chosen.reference;
  }
  return reference;
}

}  // namespace drover::container
