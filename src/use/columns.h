#pragma once

// What is looked at of a task, moment by moment: the columns of its statistics. Values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drover::use {

enum Column : std::size_t {
  kGpuPercent,  ///< of a whole GPU, the mean over the task's GPUs
  kGpuMemory,   ///< bytes, of all of them together
  kCpus,        ///< CPUs that it kept busy
  kMemory,      ///< bytes, without files that can be read again
  kNetworkReceived,
  kNetworkSent,  ///< bytes in a second, of a network of its own
  kDiskRead,
  kDiskWritten,  ///< bytes in a second
};
inline constexpr std::size_t kColumns = 8;
/// Of the first so many the greatest value is kept beside the mean.
inline constexpr std::size_t kWithMost = 4;

/// As the API has them; the greatest value of one is its name and "_max".
inline constexpr std::array<std::string_view, kColumns> kColumnNames = {
    "gpu_percent",           "gpu_memory_bytes",  "cpus",           "memory_bytes",
    "network_received_rate", "network_sent_rate", "disk_read_rate", "disk_written_rate"};

/// None: nobody could measure it.
using Values = std::array<std::optional<double>, kColumns>;

/// A time and what was seen in it, until `resolution` seconds later.
struct Slot {
  std::uint32_t time = 0;  ///< seconds since 1970, a multiple of the resolution
  Values mean;
  std::array<std::optional<double>, kWithMost> most;

  bool operator==(const Slot&) const = default;
};

}  // namespace drover::use
