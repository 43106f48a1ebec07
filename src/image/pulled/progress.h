#pragma once

// How far a pull has come. Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::image {

struct LayerProgress {
  enum class State { kWaiting, kDownloading, kUnpacking, kDone };
  std::string digest;
  std::uint64_t bytes = 0;  ///< as it is compressed
  std::uint64_t done = 0;   ///< of them
  State state = State::kWaiting;
  bool was_here = false;  ///< nothing had to be downloaded
};

struct PullProgress {
  std::string name;                   ///< as people write it
  std::vector<LayerProgress> layers;  ///< lowest first; empty until the manifest is there
};

/// Hears of a pull now and then, and of each change of a layer's state, from any thread, one at a time.
using PullListener = std::function<void(const PullProgress&)>;

/// "waiting", "downloading", "unpacking", "done", "exists".
std::string_view state_name(const LayerProgress& layer);
/// "pulling redis:7: 2 of 5 layers, 40 of 130 MiB"
std::string in_words(const PullProgress& progress);

}  // namespace drover::image
