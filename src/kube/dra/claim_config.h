#pragma once

// Configuration for this driver in claims and device classes (`opaque`): GpuConfig and MigDeviceConfig of
// NVIDIA's driver. What cannot be done is refused, since a pod would run without what it asks for. Pure.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "share/arrangement.h"

namespace drover::kube::dra {

/// MPS with these limits for each of its clients.
struct MpsConfig {
  std::optional<int> threads;                          ///< percent
  std::optional<std::uint64_t> memory_mib;             ///< of each GPU
  std::map<std::string, std::uint64_t> memory_mib_of;  ///< by UUID, or place among the claim's GPUs

  bool operator==(const MpsConfig&) const = default;
};

/// How those who have a device share it. At most one of the two.
struct SharingConfig {
  std::optional<share::Interval> interval;
  std::optional<MpsConfig> mps;

  bool empty() const { return !interval && !mps; }
  bool operator==(const SharingConfig&) const = default;
};

/// What one entry says of GPUs; one that is of parts of GPUs says nothing that would have to be done.
struct ConfigEntry {
  std::vector<std::string> requests;  ///< that it is for; empty: all
  SharingConfig sharing;
};

/// `entries` is status.allocation.devices.config; entries for other drivers are theirs. The later one counts:
/// those of the claim stand behind those of its classes. kInvalid with every mistake.
Result<std::vector<ConfigEntry>> read_configuration(const nlohmann::json& entries, const std::string& driver);

/// What counts for a request, which may be named with the alternative that was chosen: "gpus/large".
SharingConfig sharing_of(const std::vector<ConfigEntry>& entries, const std::string& request);

}  // namespace drover::kube::dra
