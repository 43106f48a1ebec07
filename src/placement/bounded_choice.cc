#include "placement/bounded_choice.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "placement/device_mask.h"
#include "placement/device_search.h"

namespace drover::placement {
namespace {

constexpr int kMostSteps = 10'000;  // of about a microsecond each, with 64 devices

struct LowestIndices {
  DeviceMask set = 0;

  bool operator==(const LowestIndices&) const = default;
  std::strong_ordering operator<=>(const LowestIndices& other) const {
    if (set == other.set) return std::strong_ordering::equal;
    return has_lower_indices(set, other.set) ? std::strong_ordering::greater : std::strong_ordering::less;
  }
};

/// The objective, field by field; larger is better. Sums are over ordered pairs, so each pair is in them
/// twice: then the half of a device's links, which a bound counts, is a whole number.
struct Merit {
  std::int64_t nvlinks = 0;
  int weakest = std::numeric_limits<int>::max();
  std::int64_t nearness = 0;
  bool cpus_near = false;
  int preferred = 0;
  Pairs left;
  int numa_nodes = 0;  ///< below zero: fewer are better
  LowestIndices indices;

  auto operator<=>(const Merit&) const = default;
};

class BranchAndBound {
 public:
  BranchAndBound(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                 const DeviceConditions& conditions)
      : wiring_(wiring), criteria_(criteria), conditions_(conditions), levels_(at(conditions.count) + 1) {
    for_each_device(conditions.free, [&](int device) {
      for_each_device(conditions.free & ~bit(device),
                      [&](int other) { degree_[at(device)] += pairs(device, other); });
      all_ += degree_[at(device)];
    });
    sum_strongest();
  }

  std::optional<DeviceMask> best() {
    const auto twins = twins_of(wiring_, criteria_, conditions_.candidates);
    for_each_device(conditions_.candidates, [&](int first) {
      if (lowest(twins[at(first)]) == first) grow(first);
    });
    DeviceSearch(conditions_, twins, *this).run();
    return best_;
  }

  void consider(DeviceMask chosen) {
    const auto score = merit_of(chosen);
    if (criteria_.cpu_affinity == Preference::kRequire && !score.cpus_near) return;
    if (best_ && score <= best_merit_) return;
    best_ = chosen;
    best_merit_ = score;
  }

  bool promising(DeviceMask chosen, DeviceMask rest, int missing) {
    if (++steps_ > kMostSteps) return false;
    const auto& level = descend(chosen, rest, missing);
    return !best_ || bound(level, chosen, rest, missing) > best_merit_;
  }

 private:
  /// What is known of the devices that are chosen so far.
  struct Level {
    Pairs pairs;  ///< of them, ordered
    int weakest = std::numeric_limits<int>::max();
    Pairs degree;                             ///< their pairs with all that is free
    std::array<Pairs, kMaxDevices> gain{};    ///< [device]: its pairs with them
    std::array<int, kMaxDevices> weakest_to;  ///< [device]: of those
    Level() { weakest_to.fill(std::numeric_limits<int>::max()); }
  };

  Pairs pairs(int a, int b) const { return Pairs(wiring_.link(a, b)); }

  /// strongest_[device][n]: the sum of its n strongest links to other candidates.
  void sum_strongest() {
    for_each_device(conditions_.candidates, [&](int device) {
      std::vector<Pairs> links;
      for_each_device(conditions_.candidates & ~bit(device),
                      [&](int other) { links.push_back(pairs(device, other)); });
      std::ranges::sort(links, std::greater());
      auto& sums = strongest_[at(device)];
      sums.emplace_back();
      for (const auto& link : links) sums.emplace_back(sums.back()) += link;
    });
  }

  /// A first set to beat: from one device on, always the device with the best links to those that are there.
  void grow(int first) {
    auto chosen = bit(first);
    auto rest = conditions_.compatible[at(first)] & ~chosen;
    std::array<Pairs, kMaxDevices> gain{};
    for (int added = first, missing = conditions_.count - 1; missing > 0; --missing) {
      std::optional<int> next;
      for_each_device(rest, [&](int device) {
        gain[at(device)] += pairs(added, device);
        if (next && gain[at(device)] <= gain[at(*next)]) return;
        const auto reachable = chosen | bit(device) | (rest & conditions_.compatible[at(device)]);
        if (conditions_.quotas_hold(reachable)) next = device;
      });
      if (!next) return;
      added = *next;
      chosen |= bit(added);
      rest &= conditions_.compatible[at(added)] & ~bit(added);
    }
    if (conditions_.quotas_hold(chosen)) consider(chosen);
  }

  Merit merit_of(DeviceMask chosen) const {
    Merit score;
    const auto free = conditions_.free & ~chosen;
    Pairs sum;
    for_each_device(chosen, [&](int a) {
      for_each_device(chosen & ~bit(a), [&](int b) {
        sum += pairs(a, b);
        score.weakest = std::min(score.weakest, wiring_.link(a, b).nvlinks);
      });
    });
    for_each_device(
        free, [&](int a) { for_each_device(free & ~bit(a), [&](int b) { score.left += pairs(a, b); }); });
    score.nvlinks = sum.nvlinks;
    score.nearness = sum.nearness;
    score.cpus_near =
        criteria_.cpu_affinity != Preference::kNone && criteria_.cpus_suffice[wiring_.numa_of(chosen)];
    score.preferred = std::popcount(chosen & criteria_.preferred);
    score.numa_nodes = -wiring_.count_numa_nodes(chosen);
    score.indices = {chosen};
    return score;
  }

  /// The level of `chosen`, from that of `chosen` without its highest.
  const Level& descend(DeviceMask chosen, DeviceMask rest, int missing) {
    const auto depth = conditions_.count - missing;
    auto& level = levels_[at(depth)];
    if (depth == 0) return level;
    const auto& above = levels_[at(depth) - 1];
    const auto added = std::bit_width(chosen) - 1;
    level.pairs = above.pairs;
    level.pairs += above.gain[at(added)];
    level.pairs += above.gain[at(added)];
    level.weakest = std::min(above.weakest, above.weakest_to[at(added)]);
    level.degree = above.degree;
    level.degree += degree_[at(added)];
    for_each_device(rest, [&](int device) {
      level.gain[at(device)] = above.gain[at(device)];
      level.gain[at(device)] += pairs(added, device);
      level.weakest_to[at(device)] =
          std::min(above.weakest_to[at(device)], wiring_.link(added, device).nvlinks);
    });
    return level;
  }

  /// No set that adds `missing` of `rest` scores more. A device that is added brings its links to the chosen,
  /// twice, and at most its strongest links to the others that are added.
  Merit bound(const Level& level, DeviceMask chosen, DeviceMask rest, int missing) {
    Merit bound;
    auto& gains = gains_;
    auto& degrees = degrees_;
    gains.clear();
    degrees.clear();
    for_each_device(rest, [&](int device) {
      auto& gain = gains.emplace_back(strongest_[at(device)][at(missing - 1)]);
      gain += level.gain[at(device)];
      gain += level.gain[at(device)];
      degrees.push_back(degree_[at(device)]);
    });
    const auto most = sum_of_first(gains, missing, std::greater());
    const auto least_degree = sum_of_first(degrees, missing, std::less());
    auto sum = level.pairs;
    sum += most;
    bound.nvlinks = sum.nvlinks;
    bound.nearness = sum.nearness;
    bound.weakest = level.weakest;
    bound.cpus_near = criteria_.cpu_affinity != Preference::kNone;
    bound.preferred = std::popcount(chosen & criteria_.preferred) +
                      std::min(missing, std::popcount(rest & criteria_.preferred));
    // What is left has all pairs but those of the chosen, where pairs among them would be taken off twice.
    bound.left = all_;
    for (const auto& degree : {level.degree, level.degree, least_degree, least_degree}) bound.left -= degree;
    bound.left += sum;
    bound.numa_nodes = -wiring_.count_numa_nodes(chosen);
    bound.indices = {chosen | rest};
    return bound;
  }

  template <typename Before>
  static Pairs sum_of_first(std::vector<Pairs>& values, int count, Before before) {
    const auto end = values.begin() + count;
    if (end != values.end()) std::nth_element(values.begin(), end, values.end(), before);
    Pairs sum;
    std::for_each(values.begin(), end, [&](const Pairs& value) { sum += value; });
    return sum;
  }

  const Wiring::Tables& wiring_;
  const DeviceCriteria& criteria_;
  const DeviceConditions& conditions_;
  Pairs all_;                                                ///< ordered pairs of all that is free
  std::array<Pairs, kMaxDevices> degree_{};                  ///< [free]: its pairs with all that is free
  std::array<std::vector<Pairs>, kMaxDevices> strongest_{};  ///< [candidate][n]
  std::vector<Level> levels_;                                ///< [devices that are chosen]
  std::vector<Pairs> gains_;                                 ///< room for bound()
  std::vector<Pairs> degrees_;
  int steps_ = 0;
  std::optional<DeviceMask> best_;
  Merit best_merit_;
};

}  // namespace

std::optional<DeviceMask> choose_by_search(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                                           const DeviceConditions& conditions) {
  return BranchAndBound(wiring, criteria, conditions).best();
}

}  // namespace drover::placement
