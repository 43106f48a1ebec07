#include "placement/fragmentation.h"

#include <bit>
#include <cmath>

namespace drover::placement {
namespace {

/// Prices follow what is left of the cluster: they are fitted anew when about this part of its GPUs may have
/// been taken. Looking costs as much as some hundred placements.
constexpr double kTakenBetweenLooks = 0.05;
/// A learnt mix of fewer requests says little, and more of them cost more than they tell.
constexpr std::size_t kFewestLearnt = 2;
constexpr std::size_t kMostLearnt = 64;
/// In milli-GPU: so much more a GPU that is free on the node counts as lost.
constexpr double kFullestFirst = 0.5;
constexpr double kLowestLoss = -1e6;  ///< rounding may make a loss slightly negative

}  // namespace

Fragmentation::Fragmentation(const Fragmentation& other)
    : outlook_(other.outlook_),
      learnt_(other.learnt_),
      given_(other.given_),
      due_(other.due_),
      placed_(other.placed_),
      placed_between_looks_(other.placed_between_looks_) {}

Fragmentation& Fragmentation::operator=(const Fragmentation& other) {
  if (this != &other) *this = Fragmentation(other);
  return *this;
}

void Fragmentation::set_mix(std::vector<TypicalRequest> mix) {
  outlook_.emplace(mix);
  given_ = true;
  due_ = true;
}

void Fragmentation::note_placed(const Request& request) {
  if (!given_) learnt_.add(request);
  if (++placed_ >= placed_between_looks_) due_ = true;
}

void Fragmentation::look_at(const std::vector<const NodeState*>& nodes) {
  due_ = false;
  placed_ = 0;
  worths_.clear();
  int gpus = 0;
  for (const auto* node : nodes) gpus += std::popcount(node->fit);
  placed_between_looks_ = std::max(kFewestBetweenLooks, static_cast<int>(kTakenBetweenLooks * gpus));
  if (!given_) {
    auto mix = learnt_.heaviest(kMostLearnt);
    if (mix.size() < kFewestLearnt) return;
    if (!outlook_) outlook_.emplace();
    outlook_->expect(mix);
  }
  if (outlook_) outlook_->look_at(nodes);
}

std::optional<Score> Fragmentation::score(const NodeState& before, const Shape& shape,
                                          DeviceMask devices) const {
  if (!outlook_) return std::nullopt;
  std::int64_t free_milli = 0;
  for (auto rest = before.fit; rest != 0; rest &= rest - 1)
    free_milli += before.devices[static_cast<std::size_t>(std::countr_zero(rest))].free_milli;
  const auto loss = worth(before) - worth(after(before, shape, devices)) +
                    kFullestFirst * static_cast<double>(free_milli) / 1000;
  return Score{static_cast<std::uint64_t>(std::llround((std::max(loss, kLowestLoss) - kLowestLoss) * 1000)),
               0};
}

double Fragmentation::worth(const NodeState& node) const {
  std::string key(reinterpret_cast<const char*>(&node.kind->id), sizeof(node.kind->id));
  key.append(reinterpret_cast<const char*>(&node.free_milli_cpus), sizeof(node.free_milli_cpus));
  key.append(reinterpret_cast<const char*>(&node.fit), sizeof(node.fit));
  for (const auto& device : node.devices)
    key.append(reinterpret_cast<const char*>(&device.free_milli), sizeof(device.free_milli));
  const auto [found, unknown] = worths_.try_emplace(std::move(key), 0);
  if (unknown) found->second = outlook_->worth(node);
  return found->second;
}

}  // namespace drover::placement
