#pragma once

// Sizes, durations and times as people write them. Pure; thread safe.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover {

using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;

/// What the system's clock says, which people may set.
inline TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// "512", "64k", "1.5GiB", "2G": bytes. K, M, G, T with or without "iB" are powers of 1024; "KB", "MB" … of
/// 1000.
Result<std::uint64_t> parse_bytes(std::string_view text);
/// "1.5 GiB", "512 B": at most one decimal.
std::string format_bytes(std::uint64_t bytes);
/// "12 of 40 MiB"; "12 MiB" when the total is not known (0).
std::string format_part(std::uint64_t done, std::uint64_t total);

/// "90", "90s", "1h30m", "2d", "500ms". A bare number means seconds.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
/// "1h 30m", "4.2s", "180ms".
std::string format_duration(std::chrono::milliseconds duration);
/// "1h30m", "10s", "0s": to the millisecond, as parse_duration() reads it.
std::string exact_duration(std::chrono::milliseconds duration);

/// "0.5", "2": CPUs in thousandths of one, as they are kept everywhere inside.
Result<std::int64_t> parse_milli_cpus(std::string_view text);

/// "2018-03-05T23:00:00.000Z" (RFC 3339, always UTC).
std::string format_time(TimePoint time);
Result<TimePoint> parse_time(std::string_view text);

}  // namespace drover
