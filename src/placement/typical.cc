#include "placement/typical.h"

#include <algorithm>

namespace drover::placement {
namespace {

constexpr std::size_t kMostKept = 256;
constexpr double kGrowth = 1 + 1.0 / 2000;
constexpr double kLargestWeight = 1e12;

}  // namespace

void LearntMix::add(const Request& request) {
  auto key = request;
  key.group.clear();
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

}  // namespace drover::placement
