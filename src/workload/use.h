#pragma once

// What a task used of its machine over its life, all attempts at it, as far as that was looked at; how it is
// written and read; and what follows from it in words. Values; what nobody could measure is absent. Means are
// over the time in which the figure was known. Pure.

#include <cstdint>
#include <optional>
#include <string>

namespace drover {
class Decoder;
class JsonWriter;
}  // namespace drover

namespace drover::workload {

struct Use {
  double seconds = 0;  ///< in which it was looked at
  int gpus = 0;        ///< that it had, or had a share of, last
  // Percent of a whole GPU, the mean over its GPUs: a task that keeps half a GPU busy has 50.
  std::optional<double> gpu_percent_mean, gpu_percent_max;
  /// Of whole GPUs, over all of its own: an hour of two GPUs that were used by 20 % is 1440.
  std::optional<double> gpu_seconds_used;
  std::optional<std::uint64_t> gpu_memory_bytes_mean, gpu_memory_bytes_max;  ///< of all its GPUs together
  std::optional<double> cpu_seconds, cpus_max;
  std::optional<std::uint64_t> memory_bytes_mean, memory_bytes_max;  ///< without files that can be read again
  std::optional<std::uint64_t> network_received_bytes, network_sent_bytes;  ///< of a network of its own
  std::optional<std::uint64_t> disk_read_bytes, disk_written_bytes;

  bool operator==(const Use&) const = default;
};

/// An object, with "advice" in it where there is some. `milli`: how much of each GPU it had.
void write(JsonWriter& writer, const Use& use, int milli);
/// The advice is not read.
Use decode_use(Decoder& decoder);

/// "mean GPU use 12 %: would half a GPU do?"; "" when it used what it had, or was looked at too shortly to
/// say. `milli`: how much of each GPU it had, 1000 is all.
std::string advice(const Use& use, int milli);

}  // namespace drover::workload
