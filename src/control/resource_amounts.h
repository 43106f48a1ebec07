#pragma once

// What offers are made of, and the arithmetic of it. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::control {

/// Ports from `begin` to `end`, both included.
struct PortRange {
  int begin = 0;
  int end = 0;

  bool operator==(const PortRange&) const = default;
};

struct ResourceAmounts {
  int gpus = 0;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::vector<PortRange> ports;  ///< in order, without overlaps

  /// Whether all of `wanted` is in it.
  bool covers(const ResourceAmounts& wanted) const;
  ResourceAmounts& operator+=(const ResourceAmounts& other);
  /// What `other` has more than this is ignored.
  ResourceAmounts& operator-=(const ResourceAmounts& other);
  /// Enough that something could run: as in Mesos 0.01 CPUs or 32 MB of memory.
  bool worth_offering() const;

  bool operator==(const ResourceAmounts&) const = default;
};

/// "gpus:2; cpus:0.5; mem:64; ports:[31000-31001]", as Mesos writes resources.
std::string to_string(const ResourceAmounts& amounts);

}  // namespace drover::control
