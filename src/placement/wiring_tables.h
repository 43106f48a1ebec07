#pragma once

// What a Wiring knows beside the links: which devices are alike, and for up to 16 devices every subset in the
// order of its interconnect. Internal to the choice of devices. Immutable; thread safe.

#include <array>
#include <compare>
#include <optional>
#include <vector>

#include "placement/device_choice.h"
#include "placement/wiring.h"

namespace drover::placement {

inline constexpr int kNumaBits = 8;  ///< of a NumaMask

/// Sums over pairs of devices, ordered as the objective weighs them. They may be taken apart and added up.
struct Pairs {
  std::int64_t nvlinks = 0;
  std::int64_t nearness = 0;  ///< PcieLevel::kUnknown counts 0, each level nearer one more

  Pairs() = default;
  explicit Pairs(const gpu::Link& link);
  Pairs& operator+=(const Pairs& other);
  Pairs& operator-=(const Pairs& other);
  auto operator<=>(const Pairs&) const = default;
};

/// Every subset of up to 16 devices.
struct SubsetTables {
  static constexpr int kMost = 16;
  using Set = std::uint16_t;

  explicit SubsetTables(const Wiring::Tables& wiring);

  /// The sets of one size, best first: by NVLinks, weakest pair, nearness; then fewest NUMA nodes, then
  /// lowest indices.
  struct Order {
    std::vector<Set> sets;
    /// [i]: of sets[i] by the first three, larger is better; equal where those are equal. Never 0.
    std::vector<std::uint16_t> grades;
    std::vector<NumaMask> numa;  ///< [i]: of sets[i]
  };
  std::vector<Order> by_size;        ///< [0] to [devices]
  std::vector<std::uint16_t> place;  ///< [set]: its position in the order of its size
  std::vector<std::uint16_t> worth;  ///< [set]: as what is left, by NVLinks then nearness; larger is better
  std::vector<std::uint16_t> most_worth;  ///< [size]: of any set of that size
};

struct Wiring::Tables {
  Tables(const std::vector<std::vector<gpu::Link>>& matrix, const std::vector<std::optional<int>>& nodes);

  const gpu::Link& link(int a, int b) const { return links[static_cast<std::size_t>(a * devices + b)]; }
  DeviceMask all() const;
  NumaMask numa_of(DeviceMask set) const;
  int count_numa_nodes(DeviceMask set) const;  ///< all of them, also those beyond the eighth

  int devices = 0;
  std::vector<gpu::Link> links;  ///< row by row
  std::vector<int> numa_nodes;
  std::vector<DeviceMask> numa_devices;  ///< [i]: the devices of numa_nodes[i]
  /// [i]: the devices that could trade places with i without any difference but their indices, with i itself
  std::vector<DeviceMask> twins;
  std::optional<SubsetTables> subsets;  ///< of up to SubsetTables::kMost devices
};

}  // namespace drover::placement
