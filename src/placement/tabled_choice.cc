#include "placement/tabled_choice.h"

#include <algorithm>

#include "placement/device_mask.h"
#include "placement/device_search.h"

namespace drover::placement {
namespace {

using Set = SubsetTables::Set;
using Order = SubsetTables::Order;

/// The best of the sets that it is told. All that is compared is in one number.
class BestSet {
 public:
  BestSet(const Wiring::Tables& wiring, const DeviceWish& wish, const DeviceConditions& conditions)
      : wish_(wish),
        free_(conditions.free),
        tables_(*wiring.subsets),
        order_(tables_.by_size[static_cast<std::size_t>(conditions.count)]) {}

  /// The set in this place of the order. `preferred`: how many of its devices are.
  void consider_at(std::size_t place, int preferred) {
    const bool near = wish_.cpu_affinity != Wish::kNone && wish_.cpus_suffice[order_.numa[place]];
    if (wish_.cpu_affinity == Wish::kRequire && !near) return;
    const auto met = (near ? kNear : 0U) | static_cast<unsigned>(preferred);
    const auto head = std::uint64_t{order_.grades[place]} << 48U | std::uint64_t{met} << 32U;
    if (head < (best_ & kHead)) return;
    const std::uint64_t left = tables_.worth[free_ & ~DeviceMask{order_.sets[place]}];
    best_ = std::max(best_, head | left << 16U | (kLastPlace - place));
  }

  // What DeviceSearch asks for.
  void consider(DeviceMask set) { consider_at(tables_.place[set], std::popcount(set & wish_.preferred)); }
  static bool promising(DeviceMask, DeviceMask, int) { return true; }

  /// A set of a smaller grade cannot be better.
  std::uint16_t grade() const { return static_cast<std::uint16_t>(best_ >> 48U); }

  /// A set of the same grade with fewer preferred devices cannot be better.
  int least_preferred() const {
    const auto met = static_cast<unsigned>(best_ >> 32U) & 0xffffU;
    const bool near = (met & kNear) != 0 || wish_.cpu_affinity == Wish::kNone;
    return near ? static_cast<int>(met & ~kNear) : 0;
  }

  std::optional<DeviceMask> set() const {
    if (best_ == 0) return std::nullopt;
    return order_.sets[kLastPlace - (best_ & kLastPlace)];
  }

 private:
  static constexpr unsigned kNear = 1U << 8U;
  static constexpr std::uint64_t kLastPlace = 0xffff;
  static constexpr std::uint64_t kHead = ~std::uint64_t{0} << 32U;

  const DeviceWish& wish_;
  const DeviceMask free_;
  const SubsetTables& tables_;
  const Order& order_;
  std::uint64_t best_ =
      0;  ///< grade, locality that is met, worth of what is left, and how early in the order
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
  SubsetScan(const DeviceConditions& conditions, DeviceMask preferred)
      : outside_(static_cast<Set>(~conditions.candidates)),
        preferred_mask_(static_cast<Set>(preferred)),
        quotas_(conditions.quotas),
        conflicts_(conditions) {}

  void run(const Order& order, BestSet& best) {
    for (std::size_t start = 0; start < order.sets.size(); start += kBlock) {
      if (order.grades[start] < best.grade()) return;
      const auto size = std::min(kBlock, order.sets.size() - start);
      if (!test(&order.sets[start], size, best.least_preferred())) continue;
      for (std::size_t i = 0; i < size; ++i)
        if (fits_[i] != 0) best.consider_at(start + i, preferred_[i]);
    }
  }

 private:
  static constexpr std::size_t kBlock = 64;

  /// Fills fits_ and preferred_; false when no set of the block fits.
  bool test(const Set* sets, std::size_t size, int least_preferred) {
    fits_.fill(0);
    for (std::size_t i = 0; i < size; ++i) fits_[i] = (sets[i] & outside_) == 0 ? 1 : 0;
    if (!any_fits()) return false;
    for (const auto& quota : quotas_) {
      const auto allowed = static_cast<Set>(quota.allowed);
      const auto count = static_cast<Set>(quota.count);
      for (std::size_t i = 0; i < size; ++i) fits_[i] &= count_bits(sets[i] & allowed) >= count ? 1 : 0;
    }
    if (preferred_mask_ != 0) {
      const auto least = static_cast<Set>(least_preferred);
      for (std::size_t i = 0; i < size; ++i) preferred_[i] = count_bits(sets[i] & preferred_mask_);
      for (std::size_t i = 0; i < size; ++i) fits_[i] &= preferred_[i] >= least ? 1 : 0;
    }
    if (conflicts_.any() && any_fits())
      for (std::size_t i = 0; i < size; ++i) fits_[i] &= conflicts_.has_none(sets[i]) ? 1 : 0;
    return any_fits();
  }

  bool any_fits() const {
    Set any = 0;
    for (const auto fits : fits_) any |= fits;
    return any != 0;
  }

  static Set count_bits(int set) { return static_cast<Set>(std::popcount(static_cast<Set>(set))); }

  Set outside_;
  Set preferred_mask_;
  const std::vector<Quota>& quotas_;
  ConflictTable conflicts_;
  std::array<Set, kBlock> fits_{};
  std::array<Set, kBlock> preferred_{};  ///< [set of the block]: how many of its devices are
};

/// Whether leaving out all but the lowest of twins leaves less than one set in 16: then going through those
/// is faster than going through all.
bool few_without_twins(const std::array<DeviceMask, kMaxDevices>& twins, DeviceMask candidates) {
  std::uint64_t sets = 1;
  for_each_device(candidates, [&](int device) {
    const auto same = twins[static_cast<std::size_t>(device)];
    if (lowest(same) == device) sets *= static_cast<std::uint64_t>(std::popcount(same)) + 1;
  });
  return sets * 16 < std::uint64_t{1} << std::popcount(candidates);
}

}  // namespace

std::optional<DeviceMask> choose_by_tables(const Wiring::Tables& wiring, const DeviceWish& wish,
                                           const DeviceConditions& conditions) {
  BestSet best(wiring, wish, conditions);
  const auto twins = twins_of(wiring, wish, conditions.candidates);
  if (few_without_twins(twins, conditions.candidates))
    DeviceSearch(conditions, twins, best).run();
  else
    SubsetScan(conditions, wish.preferred)
        .run(wiring.subsets->by_size[static_cast<std::size_t>(conditions.count)], best);
  return best.set();
}

}  // namespace drover::placement
