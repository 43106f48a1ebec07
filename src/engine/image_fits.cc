#include "engine/image_fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "base/shorten.h"

namespace drover::engine {
namespace {

/// Compute capabilities of a machine, by their numbers in its facts.
using Mask = unsigned;

/// With more kinds of GPUs, only the check at the start decides.
constexpr std::size_t kMostCapabilities = 8;

class Variants {
 public:
  explicit Variants(const VariantLister& list) : list_(list) {}

  /// Empty where it cannot be read, too: that is told when a task starts.
  const std::vector<ImageVariant>& of(const std::string& image) {
    auto known = known_.find(image);
    if (known == known_.end())
      known = known_.emplace(image, list_(image).value_or(std::vector<ImageVariant>())).first;
    return known->second;
  }

  /// Whether a task on such a machine with these GPUs is started.
  bool work(const std::string& image, const gpu::MachineFacts& facts, int level = 0) {
    const auto& variants = of(image);
    if (variants.empty()) return true;
    if (level == image::kMostVariantLevels) return false;
    const auto choice = gpu::choose_variant(needs_of(variants), facts);
    return choice.chosen && work(variants[*choice.chosen].reference, facts, level + 1);
  }

  /// A reason for each that does not fit.
  std::string reasons(const std::string& image, const gpu::MachineFacts& facts) {
    constexpr std::size_t kLongest = 2000;
    const auto& variants = of(image);
    const auto choice = gpu::choose_variant(needs_of(variants), facts);
    std::string text;
    for (std::size_t i = 0; i < variants.size(); ++i)
      if (!choice.misfits[i].empty())
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", variants[i].needs.name, choice.misfits[i]);
    if (text.empty()) return "the variants of its variants do not fit";
    return shortened(std::move(text), kLongest);
  }

 private:
  const VariantLister& list_;
  std::map<std::string, std::vector<ImageVariant>> known_;
};

/// [mask]: a task works with all GPUs out of it, and with any part of them.
std::vector<bool> safe_sets(std::size_t capabilities, const std::function<bool(Mask)>& works) {
  std::vector<bool> safe(std::size_t{1} << capabilities, true);
  for (Mask mask = 1; mask < safe.size(); ++mask) {
    safe[mask] = works(mask);
    for (Mask rest = mask; rest != 0; rest &= rest - 1)
      safe[mask] = safe[mask] && safe[mask & ~(rest & -rest)];
  }
  return safe;
}

std::vector<Mask> largest(const std::vector<bool>& safe) {
  std::vector<Mask> sets;
  for (Mask mask = 1; mask < safe.size(); ++mask) {
    bool grows = false;
    for (Mask more = 1; more < safe.size(); more <<= 1U)
      grows = grows || ((mask & more) == 0 && safe[mask | more]);
    if (safe[mask] && !grows) sets.push_back(mask);
  }
  std::ranges::sort(sets, {}, [](Mask set) { return std::pair(-std::popcount(set), set); });
  return sets;
}

/// Placement looks at GPUs in pairs: whether all that is allowed in pairs is allowed as a whole.
bool determined_by_pairs(const std::vector<Mask>& sets, std::size_t all) {
  const auto inside = [&](Mask mask) {
    return std::ranges::any_of(sets, [&](Mask set) { return (mask & ~set) == 0; });
  };
  for (Mask mask = 1; mask < all; ++mask) {
    bool pairs = true;
    for (Mask a = mask; a != 0; a &= a - 1)
      for (Mask b = a; b != 0; b &= b - 1) pairs = pairs && inside((a & -a) | (b & -b));
    if (pairs && !inside(mask)) return false;
  }
  return true;
}

}  // namespace

gpu::MachineFacts variant_facts(const placement::Node& node) {
  auto facts = facts_of(node);
  std::map<std::pair<int, int>, gpu::Device> kinds;
  for (const auto& device : facts.devices) {
    const auto capability = device.compute_capability.value_or(gpu::ComputeCapability());
    gpu::Device kind;
    kind.index = device.index;
    kind.model = device.model;
    kind.compute_capability = device.compute_capability;
    kinds.emplace(std::pair(capability.major, capability.minor), std::move(kind));
  }
  facts.devices.clear();
  for (auto& [capability, device] : kinds) facts.devices.push_back(std::move(device));
  return facts;
}

std::optional<control::ImageFit> fit_of(const std::string& image, const gpu::MachineFacts& machine,
                                        const VariantLister& list) {
  Variants variants(list);
  if (variants.of(image).empty()) return std::nullopt;
  const auto& devices = machine.devices;
  const auto with = [&](Mask mask) {
    auto facts = machine;
    facts.devices.clear();
    for (std::size_t i = 0; i < devices.size(); ++i)
      if ((mask >> i & 1U) != 0) facts.devices.push_back(devices[i]);
    return facts;
  };
  control::ImageFit fit;
  if (!variants.work(image, with(0))) fit.without_gpus = variants.reasons(image, with(0));
  if (!devices.empty() && devices.size() <= kMostCapabilities) {
    const auto safe = safe_sets(devices.size(), [&](Mask mask) { return variants.work(image, with(mask)); });
    if (!safe.back()) {
      fit.with_gpus = variants.reasons(image, machine);
      auto sets = largest(safe);
      while (!determined_by_pairs(sets, safe.size())) sets.pop_back();
      for (const auto set : sets) {
        auto& capabilities = fit.sets.emplace_back();
        for (const auto& device : with(set).devices)
          capabilities.push_back(device.compute_capability.value_or(gpu::ComputeCapability()));
      }
    }
  }
  return fit == control::ImageFit() ? std::nullopt : std::optional(std::move(fit));
}

}  // namespace drover::engine
