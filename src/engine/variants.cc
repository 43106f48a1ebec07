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

std::vector<gpu::VariantNeeds> needs_of(const std::vector<ImageVariant>& variants) {
  std::vector<gpu::VariantNeeds> needs;
  for (const auto& variant : variants) needs.push_back(variant.needs);
  return needs;
}

gpu::MachineFacts facts_of(const placement::Node& node) {
  const auto& inventory = node.inventory;
  return {inventory.driver_version, inventory.cuda_version, inventory.devices, node.cpu};
}

VariantsView explain_variants(std::vector<ImageVariant> variants, gpu::MachineFacts machine,
                              std::string profile) {
  const auto needs = needs_of(variants);
  VariantsView view{std::move(profile), std::move(machine), std::move(variants), {}};
  if (needs.empty()) return view;
  for (auto& kind : kinds_of(view.machine.devices)) {
    auto facts = view.machine;
    facts.devices = kind;
    view.cases.push_back({std::move(kind), gpu::choose_variant(needs, facts)});
  }
  return view;
}

Result<std::set<std::size_t>> taken(const VariantsView& view) {
  std::set<std::size_t> taken;
  for (const auto& one : view.cases)
    if (one.choice.chosen) taken.insert(*one.choice.chosen);
  if (taken.empty()) return Failure(gpu::none_fits(needs_of(view.variants), view.cases.front().choice));
  return taken;
}

}  // namespace drover::engine
