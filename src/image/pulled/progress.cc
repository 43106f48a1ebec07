#include "image/pulled/progress.h"

#include <fmt/format.h>

#include "base/units.h"

namespace drover::image {

std::string_view state_name(const LayerProgress& layer) {
  switch (layer.state) {
    case LayerProgress::State::kWaiting:
      return "waiting";
    case LayerProgress::State::kDownloading:
      return "downloading";
    case LayerProgress::State::kUnpacking:
      return "unpacking";
    case LayerProgress::State::kDone:
      break;
  }
  return layer.was_here ? "exists" : "done";
}

std::string in_words(const PullProgress& progress) {
  if (progress.layers.empty()) return fmt::format("pulling {}", progress.name);
  std::size_t ready = 0;
  std::uint64_t done = 0;
  std::uint64_t bytes = 0;
  for (const auto& layer : progress.layers) {
    ready += layer.state == LayerProgress::State::kDone ? 1 : 0;
    done += layer.was_here ? 0 : layer.done;
    bytes += layer.was_here ? 0 : layer.bytes;
  }
  const auto amount = bytes == 0 ? "" : ", " + format_part(done, bytes);
  return fmt::format("pulling {}: {} of {} layers{}", progress.name, ready, progress.layers.size(), amount);
}

}  // namespace drover::image
