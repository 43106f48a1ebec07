#pragma once

// What one image may take of this machine while it is unpacked: all of its layers share one allowance, also
// when they come at the same time. Thread safe.

#include <atomic>
#include <cstdint>
#include <stop_token>

#include "base/result.h"

namespace drover::image {

struct UnpackLimits {
  std::uint64_t entries = 4'000'000;           ///< of an image's layers
  std::uint64_t bytes = 256ULL << 30;          ///< of their tars, decompressed; also of any one stored layer
  std::uint64_t reserved_space = 64ULL << 20;  ///< bytes that stay free on the file system: the journal's too
  std::uint64_t reserved_files = 10'000;       ///< the same in inodes, where the file system counts them
};

class Allowance {
 public:
  /// A stop request makes everything that asks end with kUnavailable.
  explicit Allowance(const UnpackLimits& limits = {}, std::stop_token stop = {})
      : limits_(limits), stop_(std::move(stop)) {}

  const UnpackLimits& limits() const { return limits_; }
  /// Whether nobody has asked to stop.
  Status check() const;
  /// kExhausted when these bytes are too many.
  Status take_bytes(std::uint64_t bytes);
  Status take_entry();

 private:
  const UnpackLimits limits_;
  const std::stop_token stop_;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> entries_ = 0;
};

}  // namespace drover::image
