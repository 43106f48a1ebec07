#include "placement/run_times.h"

#include <fmt/format.h>

#include <array>

namespace drover::placement {
namespace {

/// From what says least to what says most. No name has a zero byte.
std::array<std::string, 3> keys_of(const RunTimes::Kind& kind) {
  std::array<std::string, 3> keys;
  keys[0] = kind.user;
  keys[1] = keys[0] + '\0' + kind.size;
  keys[2] = keys[1] + '\0' + kind.name;
  return keys;
}

}  // namespace

std::string RunTimes::size_of(std::size_t members, const Request& request) {
  return fmt::format("{}/{}/{}/{}/{}/{}", members, request.gpu_count(), request.share.milli,
                     request.share.memory_bytes, request.milli_cpus, request.memory_bytes);
}

void RunTimes::add(const Kind& kind, std::chrono::milliseconds time) {
  change(kind, 1, time.count());
}

void RunTimes::remove(const Kind& kind, std::chrono::milliseconds time) {
  change(kind, -1, -time.count());
}

void RunTimes::change(const Kind& kind, std::int64_t count, std::int64_t milliseconds) {
  for (const auto& key : keys_of(kind)) {
    auto& sum = sums_.edit(key);
    sum.count += count;
    sum.milliseconds += milliseconds;
    if (sum.count == 0) sums_.erase(key);
  }
}

std::optional<std::chrono::milliseconds> RunTimes::expected(const Kind& kind) const {
  std::optional<double> mean;
  for (const auto& key : keys_of(kind)) {
    const auto sum = sums_.find(key);
    if (sum == sums_.end()) break;  // nothing of a closer kind either
    const auto& [count, milliseconds] = sum->second;
    const int prior = mean ? 1 : 0;
    mean =
        (static_cast<double>(milliseconds) + prior * mean.value_or(0)) / static_cast<double>(count + prior);
  }
  if (!mean) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*mean));
}

}  // namespace drover::placement
