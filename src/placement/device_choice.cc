#include "placement/device_choice.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <limits>

#include "placement/wiring_tables.h"

namespace drover::placement {
namespace {

DeviceMask bit(int device) {
  return DeviceMask{1} << device;
}

template <typename Visit>
void for_each_device(DeviceMask devices, const Visit& visit) {
  for (; devices != 0; devices &= devices - 1) visit(std::countr_zero(devices));
}

/// At least `count` of the chosen are in `allowed`.
struct Quota {
  DeviceMask allowed = 0;
  int count = 0;
};

/// Hall's theorem: as many devices as the claims ask for can be handed out to them if and only if every set
/// of claims finds enough devices among those that one of them allows.
std::vector<Quota> quotas_of(const std::vector<ClaimMask>& claims) {
  std::vector<Quota> quotas;
  for (unsigned set = 1; set < 1U << claims.size(); ++set) {
    Quota quota;
    for (std::size_t i = 0; i < claims.size(); ++i)
      if ((set >> i & 1U) != 0) quota = {quota.allowed | claims[i].allowed, quota.count + claims[i].count};
    quotas.push_back(quota);
  }
  return quotas;
}

struct Pairs {
  std::int64_t nvlinks = 0;
  std::int64_t nearness = 0;

  auto operator<=>(const Pairs&) const = default;
};

/// Compared field by field; larger is better.
struct Score {
  std::int64_t nvlinks = 0;
  int weakest = std::numeric_limits<int>::max();
  std::int64_t nearness = 0;
  bool cpus_near = false;
  int preferred = 0;
  Pairs left;
  int numa_nodes = 0;  ///< below zero: fewer are better

  auto operator<=>(const Score&) const = default;
};

}  // namespace

class DeviceChooser {
 public:
  DeviceChooser(const Wiring& wiring, const DeviceWish& wish)
      : wiring_(*wiring.tables_), wish_(wish), quotas_(quotas_of(wish.claims)) {
    for (const auto& claim : wish.claims) {
      count_ += claim.count;
      candidates_ |= claim.allowed & wish.free;
    }
  }

  std::optional<DeviceMask> best() {
    if (count_ == 0) return DeviceMask{0};
    extend(0, candidates_);
    return best_;
  }

  static NumaMask numa_of(const Wiring& wiring, DeviceMask devices) {
    NumaMask mask = 0;
    for (int i = 0; i < kNumaBits; ++i)
      if ((wiring.tables_->numa_devices[static_cast<std::size_t>(i)] & devices) != 0)
        mask = static_cast<NumaMask>(mask | 1U << i);
    return mask;
  }

 private:
  /// Tries every set in the order of lowest indices, so that the first of equals stays.
  void extend(DeviceMask chosen, DeviceMask rest) {
    const auto missing = count_ - std::popcount(chosen);
    if (missing == 0) return consider(chosen);
    for (; std::popcount(rest) >= missing; rest &= rest - 1) {
      const auto device = std::countr_zero(rest);
      if (compatible(device, chosen)) extend(chosen | bit(device), rest & (rest - 1));
    }
  }

  bool compatible(int device, DeviceMask chosen) const {
    bool fits = std::ranges::all_of(
        wish_.exclusive, [&](DeviceMask set) { return (set & bit(device)) == 0 || (set & chosen) == 0; });
    for_each_device(
        chosen, [&](int other) { fits = fits && near_enough(wiring_.link(device, other), wish_.minimum); });
    return fits;
  }

  void consider(DeviceMask chosen) {
    for (const auto& quota : quotas_)
      if (std::popcount(chosen & quota.allowed) < quota.count) return;
    const auto score = score_of(chosen);
    if (wish_.cpu_affinity == Wish::kRequire && !score.cpus_near) return;
    if (best_ && score <= best_score_) return;
    best_ = chosen;
    best_score_ = score;
  }

  Score score_of(DeviceMask chosen) const {
    Score score;
    for_each_pair(chosen,
                  [&](const gpu::Link& link) { score.weakest = std::min(score.weakest, link.nvlinks); });
    const auto pairs = pairs_of(chosen);
    score.nvlinks = pairs.nvlinks;
    score.nearness = pairs.nearness;
    const auto numa = numa_of_chosen(chosen);
    score.cpus_near = wish_.cpu_affinity != Wish::kNone && wish_.cpus_suffice.test(numa);
    score.preferred = std::popcount(chosen & wish_.preferred);
    score.left = pairs_of(wish_.free & ~chosen);
    score.numa_nodes = -std::popcount(numa);
    return score;
  }

  NumaMask numa_of_chosen(DeviceMask chosen) const {
    NumaMask mask = 0;
    for (int i = 0; i < kNumaBits; ++i)
      if ((wiring_.numa_devices[static_cast<std::size_t>(i)] & chosen) != 0)
        mask = static_cast<NumaMask>(mask | 1U << i);
    return mask;
  }

  template <typename Visit>
  void for_each_pair(DeviceMask devices, const Visit& visit) const {
    for_each_device(devices, [&](int a) {
      for_each_device(devices & (bit(a) - 1), [&](int b) { visit(wiring_.link(a, b)); });
    });
  }

  Pairs pairs_of(DeviceMask devices) const {
    Pairs pairs;
    for_each_pair(devices, [&](const gpu::Link& link) {
      pairs.nvlinks += link.nvlinks;
      pairs.nearness += static_cast<int>(gpu::PcieLevel::kUnknown) - static_cast<int>(link.pcie);
    });
    return pairs;
  }

  const Wiring::Tables& wiring_;
  const DeviceWish& wish_;
  std::vector<Quota> quotas_;
  int count_ = 0;
  DeviceMask candidates_ = 0;
  std::optional<DeviceMask> best_;
  Score best_score_;
};

std::optional<DeviceMask> choose(const Wiring& wiring, const DeviceWish& wish) {
  return DeviceChooser(wiring, wish).best();
}

NumaMask numa_of(const Wiring& wiring, DeviceMask devices) {
  return DeviceChooser::numa_of(wiring, devices);
}

bool near_enough(const gpu::Link& link, const Interconnect& minimum) {
  if (!minimum.asks() || link.nvlinks >= std::max(1, minimum.min_nvlinks)) return true;
  return minimum.max_pcie != gpu::PcieLevel::kUnknown && link.pcie <= minimum.max_pcie;
}

}  // namespace drover::placement
