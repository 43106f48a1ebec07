#pragma once

// What one GPU does, and which processes do it, at one moment. Values; what the card, the driver or the
// library cannot tell is absent.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/health.h"

namespace drover::gpu {

using Reading = std::optional<std::uint64_t>;

struct ProcessUsage {
  std::uint32_t pid = 0;  ///< in the PID namespace that the driver's library answers for: the caller's
  Reading memory_bytes;
  // Percent of the time since the last look; 0 for a process that did nothing since.
  Reading sm_percent, memory_percent, encoder_percent, decoder_percent;
  MigInstance instance;

  bool operator==(const ProcessUsage&) const = default;
};

/// In bytes.
struct MemoryUsage {
  Reading total, used, free, reserved;

  bool operator==(const MemoryUsage&) const = default;
};

/// Of a GPU instance that has a MIG device, on a GPU in MIG mode.
struct InstanceUsage {
  std::uint32_t gpu_instance = 0;
  MemoryUsage memory;

  bool operator==(const InstanceUsage&) const = default;
};

struct GpuUsage {
  bool answers = false;  ///< otherwise everything else is absent
  // Percent of the last sample period of the card, up to a second; absent of a GPU in MIG mode.
  Reading gpu_percent, memory_percent, encoder_percent, decoder_percent;
  MemoryUsage memory;
  Reading sm_mhz, memory_mhz;
  Reading temperature, memory_temperature;  ///< degrees Celsius
  Reading power_mw;
  Reading energy_mj;  ///< since the driver was loaded
  Reading pcie_replays;
  Reading pcie_sent_kb, pcie_received_kb;        ///< in a second, as of the last 20 ms; kB are 1000 bytes
  Reading nvlink_sent_kib, nvlink_received_kib;  ///< payload, over all links
  // Volatile: since the driver was loaded. Aggregate: over the life of the card.
  Reading corrected_volatile, uncorrected_volatile, corrected_aggregate, uncorrected_aggregate;
  Reading retired_corrected, retired_uncorrected, retired_pending;  ///< pages
  Reading remapped_corrected, remapped_uncorrected, remap_pending,
      remap_failed;                      ///< rows; the last two 0 or 1
  std::vector<InstanceUsage> instances;  ///< each once
  std::vector<ProcessUsage> processes;   ///< by pid

  bool operator==(const GpuUsage&) const = default;
};

}  // namespace drover::gpu
