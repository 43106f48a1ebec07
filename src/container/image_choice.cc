#include "container/image_choice.h"

#include <fmt/format.h>

namespace drover::container {

image::VariantChooser variant_chooser(const Launch& launch) {
  return [&launch](const std::string&, const std::vector<image::Variant>& variants) -> Result<std::size_t> {
    std::vector<gpu::VariantNeeds> needs;
    for (const auto& variant : variants) needs.push_back(variant.needs);
    const auto choice = gpu::choose_variant(needs, launch.machine);
    if (!choice.chosen) return Failure(gpu::none_fits(needs, choice));
    const auto& chosen = needs[*choice.chosen];
    if (launch.progress)
      launch.progress(fmt::format("Of {} variants, '{}' fits best (it needs: {})", variants.size(),
                                  chosen.name, gpu::describe(chosen)));
    return *choice.chosen;
  };
}

}  // namespace drover::container
