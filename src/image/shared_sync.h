#pragma once

// Makes a file system durable for several writers at once: syncfs(2) covers all of them, so those who come
// while one is under way wait for the next together. Thread safe. Blocks.

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/files.h"
#include "base/result.h"

namespace drover::image {

class SharedSync {
 public:
  /// What was written before the call is on the disk after it. `folder` is on the one file system that this
  /// object is for.
  Status sync(const Directory& folder);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t failed_ = 0;  ///< the last that failed
  int error_ = 0;
};

}  // namespace drover::image
