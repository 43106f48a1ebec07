#include "workload/use.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/decode.h"
#include "base/json_writer.h"

namespace drover::workload {
namespace {

using Real = std::optional<double> Use::*;
using Count = std::optional<std::uint64_t> Use::*;

constexpr std::array kReals = {std::pair<const char*, Real>{"cpu_seconds", &Use::cpu_seconds},
                               std::pair<const char*, Real>{"cpus_max", &Use::cpus_max},
                               std::pair<const char*, Real>{"gpu_percent_max", &Use::gpu_percent_max},
                               std::pair<const char*, Real>{"gpu_percent_mean", &Use::gpu_percent_mean},
                               std::pair<const char*, Real>{"gpu_seconds_used", &Use::gpu_seconds_used}};
constexpr std::array kCounts = {
    std::pair<const char*, Count>{"disk_read_bytes", &Use::disk_read_bytes},
    std::pair<const char*, Count>{"disk_written_bytes", &Use::disk_written_bytes},
    std::pair<const char*, Count>{"gpu_memory_bytes_max", &Use::gpu_memory_bytes_max},
    std::pair<const char*, Count>{"gpu_memory_bytes_mean", &Use::gpu_memory_bytes_mean},
    std::pair<const char*, Count>{"memory_bytes_max", &Use::memory_bytes_max},
    std::pair<const char*, Count>{"memory_bytes_mean", &Use::memory_bytes_mean},
    std::pair<const char*, Count>{"network_received_bytes", &Use::network_received_bytes},
    std::pair<const char*, Count>{"network_sent_bytes", &Use::network_sent_bytes}};
constexpr double kMost = 9e15;  // what a double counts exactly

// Shorter runs are mostly the start of the program and the loading of its data.
constexpr double kLongEnough = 60;
constexpr double kLowPart = 0.4;  // of what it had: below it half would leave room

}  // namespace

void write(JsonWriter& writer, const Use& use, int milli) {
  writer.begin_object();
  if (const auto words = advice(use, milli); !words.empty()) writer.field("advice", words);
  for (const auto& [name, member] : kReals)
    if (use.*member) writer.field(name, *(use.*member));
  for (const auto& [name, member] : kCounts)
    if (use.*member) writer.field(name, *(use.*member));
  writer.field("gpus", use.gpus);
  writer.field("seconds", use.seconds);
  writer.end_object();
}

Use decode_use(Decoder& decoder) {
  Use use;
  for (const auto& [name, member] : kReals) use.*member = decoder.number(name, 0, kMost);
  for (const auto& [name, member] : kCounts)
    if (const auto count = decoder.integer(name, 0, static_cast<std::int64_t>(kMost)))
      use.*member = static_cast<std::uint64_t>(*count);
  use.gpus = static_cast<int>(decoder.integer("gpus", 0, 1 << 20).value_or(0));
  use.seconds = decoder.number("seconds", 0, kMost).value_or(0);
  return use;
}

std::string advice(const Use& use, int milli) {
  if (use.gpus == 0 || !use.gpu_percent_mean || use.seconds < kLongEnough || milli <= 0) return "";
  const double had = milli / 10.0;  // percent of each GPU
  const auto mean = *use.gpu_percent_mean;
  if (mean >= had * kLowPart) return "";
  const auto used = fmt::format("mean GPU use {:.0f} %", mean);
  if (mean < 0.5) return used + (use.gpus == 1 ? ": did it need its GPU?" : ": did it need its GPUs?");
  if (milli < 1000) return fmt::format("{} of a share of {:.0f} %: would a smaller share do?", used, had);
  if (use.gpus == 1) return used + ": would half a GPU do?";
  return fmt::format("{} over {} GPUs: would fewer do?", used, use.gpus);
}

}  // namespace drover::workload
