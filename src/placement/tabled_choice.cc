#include "placement/tabled_choice.h"

#include <algorithm>

#include "placement/device_mask.h"
#include "placement/device_search.h"

namespace drover::placement {
namespace {

using Set = SubsetTables::Set;
using Order = SubsetTables::Order;

Set count_bits(int set) {
  return static_cast<Set>(std::popcount(static_cast<Set>(set)));
}

/// How good a set is within its grade: locality that is met, then worth of what is left.
using Value = std::uint32_t;

class Valuer {
 public:
  Valuer(const Wiring::Tables& wiring, const DeviceCriteria& criteria, const DeviceConditions& conditions)
      : worth_(wiring.subsets->worth.data()),
        free_(static_cast<Set>(conditions.free)),
        preferred_(static_cast<Set>(criteria.preferred & conditions.candidates)),
        needs_cpus_(criteria.cpu_affinity == Preference::kRequire) {
    const auto numa_masks = std::size_t{wiring.numa_of(wiring.all())} + 1;
    const bool wants_cpus = criteria.cpu_affinity != Preference::kNone;
    for (std::size_t numa = 0; numa < numa_masks; ++numa) {
      near_[numa] = wants_cpus && criteria.cpus_suffice[numa] ? kNear : 0;
      most_near_ = std::max(most_near_, near_[numa]);
    }
    most_worth_ =
        wiring.subsets
            ->most_worth[static_cast<std::size_t>(std::popcount(conditions.free) - conditions.count)];
    most_ = most_near_ +
            kPreferred * std::min<Value>(count_bits(preferred_), static_cast<Value>(conditions.count)) +
            most_worth_;
  }

  bool needs_cpus() const { return needs_cpus_; }
  bool near(NumaMask numa) const { return near_[numa] != 0; }
  bool prefers() const { return preferred_ != 0; }
  Set preferred(Set set) const { return count_bits(set & preferred_); }
  Value value(Set set, NumaMask numa, Set preferred) const {
    return near_[numa] + kPreferred * preferred + worth_[free_ & static_cast<Set>(~set)];
  }
  /// No set can have more.
  Value most() const { return most_; }
  /// A set with fewer preferred devices cannot have more than `value`.
  Set least_preferred(Value value) const {
    const auto without = most_near_ + most_worth_;
    return static_cast<Set>(value <= without ? 0 : (value - without) / kPreferred + 1);
  }

 private:
  static constexpr Value kNear = 1U << 24U;
  static constexpr Value kPreferred = 1U << 16U;

  const std::uint16_t* worth_;
  const Set free_;
  const Set preferred_;
  const bool needs_cpus_;
  std::array<Value, 256> near_;  ///< [numa]: kNear where its CPUs suffice; made for masks that can be
  Value most_near_ = 0;
  Value most_worth_ = 0;
  Value most_ = 0;
};

/// The best of the sets that it is told. All that is compared is in one number.
class BestSet {
 public:
  explicit BestSet(const Order& order) : order_(order) {}

  void offer(std::size_t place, Value value) {
    best_ = std::max(best_, std::uint64_t{order_.grades[place]} << 48U | std::uint64_t{value} << 16U |
                                (kLastPlace - place));
  }

  /// Whether it is better than all sets of this grade, or a smaller one, that come later in the order and
  /// have at most this value.
  bool beats(std::uint16_t grade, Value most) const {
    return (std::uint64_t{grade} << 32U | most) <= best_ >> 16U;
  }

  Value value() const { return static_cast<Value>(best_ >> 16U); }

  std::optional<DeviceMask> set() const {
    if (best_ == 0) return std::nullopt;
    return order_.sets[kLastPlace - (best_ & kLastPlace)];
  }

 private:
  static constexpr std::uint64_t kLastPlace = 0xffff;

  const Order& order_;
  std::uint64_t best_ = 0;  ///< grade, value, and how early in the order
};

/// What DeviceSearch asks for.
class SearchJudge {
 public:
  SearchJudge(const SubsetTables& tables, const Order& order, const Valuer& valuer, BestSet& best)
      : tables_(tables), order_(order), valuer_(valuer), best_(best) {}

  static bool promising(DeviceMask, DeviceMask, int) { return true; }
  void consider(DeviceMask chosen) {
    const auto place = tables_.place[chosen];
    const auto numa = order_.numa[place];
    if (valuer_.needs_cpus() && !valuer_.near(numa)) return;
    const auto set = static_cast<Set>(chosen);
    best_.offer(place, valuer_.value(set, numa, valuer_.preferred(set)));
  }

 private:
  const SubsetTables& tables_;
  const Order& order_;
  const Valuer& valuer_;
  BestSet& best_;
};

/// The devices that are in conflict with some device of a set, looked up by the two bytes of the set.
class ConflictTable {
 public:
  explicit ConflictTable(const DeviceConditions& conditions) {
    for_each_device(conditions.candidates, [&](int device) {
      const auto conflicting =
          conditions.candidates & ~conditions.compatible[static_cast<std::size_t>(device)];
      any_ = any_ || conflicting != 0;
      with_[static_cast<std::size_t>(device)] = static_cast<Set>(conflicting);
    });
    if (!any_) return;
    for (std::size_t byte = 1; byte < low_.size(); ++byte) {
      const auto first = static_cast<std::size_t>(lowest(byte));
      low_[byte] = low_[without_lowest(byte)] | with_[first];
      high_[byte] = high_[without_lowest(byte)] | with_[first + 8];
    }
  }

  bool any() const { return any_; }
  bool has_none(Set set) const { return ((low_[set & 0xffU] | high_[set >> 8U]) & set) == 0; }

 private:
  bool any_ = false;
  std::array<Set, SubsetTables::kMost> with_{};
  std::array<Set, 256> low_{};
  std::array<Set, 256> high_{};
};

/// Goes through the sets of one size, best first. What is asked of each is asked of a block of them at a
/// time, in loops without branches, of which the compiler makes vector instructions.
class SubsetScan {
 public:
  SubsetScan(const Order& order, const DeviceConditions& conditions, const Valuer& valuer)
      : order_(order),
        outside_(static_cast<Set>(~conditions.candidates)),
        quotas_(conditions.quotas),
        conflicts_(conditions),
        valuer_(valuer) {}

  void run(BestSet& best) {
    for (std::size_t start = 0; start < order_.sets.size(); start += kBlock) {
      if (best.beats(order_.grades[start], valuer_.most())) return;
      const auto size = std::min(kBlock, order_.sets.size() - start);
      if (!test(start, size, best.value()) || best.beats(order_.grades[start], find_values(start, size)))
        continue;
      for (std::size_t i = 0; i < size; ++i)
        if (fits_[i] != 0) best.offer(start + i, values_[i]);
    }
  }

 private:
  static constexpr std::size_t kBlock = 64;

  /// Fills fits_ and preferred_; false when no set of the block both fits and may have more than `value`.
  bool test(std::size_t start, std::size_t size, Value value) {
    const auto* sets = &order_.sets[start];
    fits_.fill(0);
    for (std::size_t i = 0; i < size; ++i) fits_[i] = (sets[i] & outside_) == 0 ? 1 : 0;
    if (!any_fits()) return false;
    for (const auto& quota : quotas_) {
      const auto allowed = static_cast<Set>(quota.allowed);
      for (std::size_t i = 0; i < size; ++i)
        fits_[i] &= count_bits(sets[i] & allowed) >= static_cast<Set>(quota.count) ? 1 : 0;
    }
    if (valuer_.prefers()) {
      const auto least = valuer_.least_preferred(value);
      for (std::size_t i = 0; i < size; ++i) preferred_[i] = valuer_.preferred(sets[i]);
      for (std::size_t i = 0; i < size; ++i) fits_[i] &= preferred_[i] >= least ? 1 : 0;
    }
    if (conflicts_.any() && any_fits())
      for (std::size_t i = 0; i < size; ++i) fits_[i] &= conflicts_.has_none(sets[i]) ? 1 : 0;
    if (valuer_.needs_cpus())
      for (std::size_t i = 0; i < size; ++i) fits_[i] &= valuer_.near(order_.numa[start + i]) ? 1 : 0;
    return any_fits();
  }

  bool any_fits() const {
    Set any = 0;
    for (const auto fits : fits_) any |= fits;
    return any != 0;
  }

  /// Fills values_ where a set fits; the largest of them.
  Value find_values(std::size_t start, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      values_[i] = valuer_.value(order_.sets[start + i], order_.numa[start + i], preferred_[i]);
    Value most = 0;
    for (std::size_t i = 0; i < size; ++i) most = std::max(most, fits_[i] * values_[i]);
    return most;
  }

  const Order& order_;
  const Set outside_;
  const std::vector<DeviceQuota>& quotas_;
  const ConflictTable conflicts_;
  const Valuer& valuer_;
  std::array<Set, kBlock> fits_{};
  std::array<Set, kBlock> preferred_{};
  std::array<Value, kBlock> values_{};
};

// A step of a search takes as long as a scan takes for so many sets.
constexpr double kSetsPerSearchStep = 16;

/// Whether so many pairs are incompatible that few sets are expected to have none, were they spread by
/// chance.
bool few_without_conflicts(const DeviceConditions& conditions, std::size_t all_sets) {
  const int candidates = std::popcount(conditions.candidates);
  int compatible = 0;  // ordered pairs
  for_each_device(conditions.candidates, [&](int device) {
    compatible += std::popcount(conditions.compatible[static_cast<std::size_t>(device)]) - 1;
  });
  const int pairs = candidates * (candidates - 1);
  if (compatible == pairs) return false;
  const double share = static_cast<double>(compatible) / pairs;
  double sets = 1;
  double steps = 0;
  double all_fit = 1;  // share to the number of devices that the next one joins
  for (int size = 0; size < conditions.count; ++size, all_fit *= share) {
    steps += sets;
    sets *= all_fit * (candidates - size) / (size + 1);
  }
  return steps * kSetsPerSearchStep < static_cast<double>(all_sets);
}

}  // namespace

std::optional<DeviceMask> choose_by_tables(const Wiring::Tables& wiring, const DeviceCriteria& criteria,
                                           const DeviceConditions& conditions) {
  const auto& tables = *wiring.subsets;
  const auto& order = tables.by_size[static_cast<std::size_t>(conditions.count)];
  const Valuer valuer(wiring, criteria, conditions);
  BestSet best(order);
  if (few_without_conflicts(conditions, order.sets.size())) {
    const auto twins = twins_of(wiring, criteria, conditions.candidates);
    SearchJudge judge(tables, order, valuer, best);
    DeviceSearch(conditions, twins, judge).run();
  } else {
    SubsetScan(order, conditions, valuer).run(best);
  }
  return best.set();
}

}  // namespace drover::placement
