#pragma once

// Waiting between attempts: with pauses that grow, and that end when somebody stops it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>

namespace drover {

/// Waits so long, or until a stop is requested; whether it may go on.
bool pause(std::chrono::milliseconds duration, const std::stop_token& stop);

/// Pauses that double from one failure to the next, up to a longest. With a seed each is between half and all
/// of its length, so that clients whom one server failed do not all come back at once. Not thread safe.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest,
          std::optional<std::uint32_t> seed = {})
      : first_(first), longest_(longest), length_(first) {
    if (seed) random_.emplace(*seed);
  }

  std::chrono::milliseconds next();
  /// After a success.
  void reset() { length_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds length_;
  std::optional<std::minstd_rand> random_;
};

}  // namespace drover
