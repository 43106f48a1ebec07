#include "placement/typical.h"

#include <algorithm>

namespace drover::placement {
namespace {

constexpr std::size_t kMostKept = 256;
constexpr double kGrowth = 1 + 1.0 / 2000;
constexpr double kLargestWeight = 1e12;

/// Without what the room on a node does not depend on.
Request in_essence(const Request& request) {
  Request key;
  key.gpus = request.gpus;
  key.share = request.share;
  key.milli_cpus = request.milli_cpus;
  return key;
}

}  // namespace

void LearntMix::add(const Request& request) {
  auto key = in_essence(request);
  next_weight_ *= kGrowth;
  if (next_weight_ > kLargestWeight) {
    for (auto& typical : typical_) typical.weight /= next_weight_;
    next_weight_ = 1;
  }
  const auto known = std::ranges::find(typical_, key, &TypicalRequest::request);
  if (known != typical_.end()) {
    known->weight += next_weight_;
    return;
  }
  if (typical_.size() == kMostKept)
    typical_.erase(std::ranges::min_element(typical_, {}, &TypicalRequest::weight));
  typical_.push_back({std::move(key), next_weight_});
}

std::vector<TypicalRequest> LearntMix::heaviest(std::size_t most) const {
  auto mix = typical_;
  std::ranges::sort(mix, std::ranges::greater(), &TypicalRequest::weight);
  mix.resize(std::min(most, mix.size()));
  return mix;
}

}  // namespace drover::placement
