#pragma once

// Amounts of GPUs, CPUs and memory as numbers that one loop can go over. Values; pure.

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "placement/cluster.h"
#include "placement/gang.h"
#include "placement/queues.h"

namespace drover::placement::schedule {

inline constexpr std::size_t kDimensions = 3;
/// Thousandths of GPUs, thousandths of CPUs, bytes of memory. Differences may be negative.
using Load = std::array<std::int64_t, kDimensions>;
/// Absent: not limited.
using Bounds = std::array<std::optional<std::int64_t>, kDimensions>;

Bounds bounds_of(const Limits& limits);
Load& operator+=(Load& a, const Load& b);
Load& operator-=(Load& a, const Load& b);
Load negative(const Load& load);

/// What a job counts as. GPUs of a group count once, however many jobs share them.
struct Demand {
  Load own{};                                  ///< without GPUs of groups
  std::map<std::string, std::int64_t> groups;  ///< thousandths of GPUs, by group

  Load total() const;
};

Demand demand_of(const Cluster& cluster, const Gang& gang);

/// What the whole cluster has of each; at least 1, so that it can be divided by.
Load total_of(const Cluster& cluster);

/// "2 GPUs", "0.5 CPUs", "16 GiB of memory".
std::string amount_text(std::size_t dimension, std::int64_t amount);
/// The most telling part of a load: its GPUs, else its CPUs, else its memory.
std::string load_text(const Load& load);

}  // namespace drover::placement::schedule
