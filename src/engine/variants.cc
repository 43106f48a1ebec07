#include "engine/variants.h"

#include <algorithm>

namespace drover::engine {
namespace {

std::vector<std::vector<gpu::Device>> kinds_of(const std::vector<gpu::Device>& devices) {
  std::vector<std::vector<gpu::Device>> kinds;
  for (const auto& device : devices) {
    const auto same = std::ranges::find_if(kinds, [&](const auto& kind) {
      return kind.front().model == device.model &&
             kind.front().compute_capability == device.compute_capability;
    });
    if (same == kinds.end())
      kinds.push_back({device});
    else
      same->push_back(device);
  }
  if (kinds.empty()) kinds.emplace_back();
  return kinds;
}

}  // namespace

VariantsView explain_variants(std::vector<ImageVariant> variants, gpu::MachineFacts machine,
                              std::string profile) {
  std::vector<gpu::VariantNeeds> needs;
  for (const auto& variant : variants) needs.push_back(variant.needs);
  VariantsView view{std::move(profile), std::move(machine), std::move(variants), {}};
  if (needs.empty()) return view;
  for (auto& kind : kinds_of(view.machine.devices)) {
    auto facts = view.machine;
    facts.devices = kind;
    view.cases.push_back({std::move(kind), gpu::choose_variant(needs, facts)});
  }
  return view;
}

}  // namespace drover::engine
