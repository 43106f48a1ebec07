#include "placement/fragmentation.h"

#include <bit>
#include <cmath>

namespace drover::placement {
namespace {

/// Prices follow what is left of the cluster: they are fitted anew when about this part of its GPUs may have
/// been taken. Looking costs as much as some hundred placements.
constexpr double kTakenBetweenUpdates = 0.05;
/// A learnt mix of fewer requests says little, and more of them cost more than they tell.
constexpr std::size_t kFewestLearnt = 2;
constexpr std::size_t kMostLearnt = 64;
/// In milli-GPU: so much more a GPU that is free on the node counts as lost.
constexpr double kFullestFirst = 0.5;
constexpr double kScoreOfMilli = 1000;  ///< of a lost milli-GPU
constexpr double kLowestLoss = -1e6;    ///< rounding may make a loss slightly negative

}  // namespace

void Fragmentation::set_mix(std::vector<TypicalRequest> mix) {
  outlook_.emplace(mix);
  given_ = true;
  due_ = true;
}

void Fragmentation::note_placed(const Request& request) {
  if (!given_) learnt_.add(request);
  if (++placed_ >= placed_between_updates_) due_ = true;
}

void Fragmentation::update(const std::vector<const NodeState*>& nodes) {
  due_ = false;
  placed_ = 0;
  int gpus = 0;
  for (const auto* node : nodes) gpus += std::popcount(node->healthy);
  placed_between_updates_ = std::max(kFewestBetweenUpdates, static_cast<int>(kTakenBetweenUpdates * gpus));
  if (!given_) {
    auto mix = learnt_.heaviest(kMostLearnt);
    if (mix.size() < kFewestLearnt) return;
    if (!outlook_) outlook_.emplace();
    outlook_->expect(mix);
  }
  if (outlook_) outlook_->update(nodes);
}

std::optional<double> Fragmentation::worth(const NodeState& before) const {
  if (!outlook_) return std::nullopt;
  return outlook_->worth(before);
}

Score Fragmentation::score(const NodeState& before, double worth, const Shape& shape,
                           DeviceMask devices) const {
  std::int64_t free_milli = 0;
  for (auto rest = before.healthy; rest != 0; rest &= rest - 1)
    free_milli += before.devices[static_cast<std::size_t>(std::countr_zero(rest))].free_milli;
  const auto loss = worth - outlook_->worth(after(before, shape, devices)) +
                    kFullestFirst * static_cast<double>(free_milli) / 1000;
  return Score{
      static_cast<std::uint64_t>(std::llround((std::max(loss, kLowestLoss) - kLowestLoss) * kScoreOfMilli)),
      0};
}

std::uint64_t Fragmentation::least_rise(std::int64_t milli_cpus) const {
  if (!outlook_) return 0;
  const auto rise = outlook_->cpu_floor() * static_cast<double>(milli_cpus) * kScoreOfMilli;
  return static_cast<std::uint64_t>(std::max(0.0, rise - 1));  // both scores were rounded
}

}  // namespace drover::placement
