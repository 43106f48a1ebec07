#include "cli/pull_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kBarWidth = 24;
constexpr std::size_t kShortDigest = 12;

std::string short_digest(const json& layer) {
  const auto digest = layer.value("digest", "");
  return printable(digest.substr(std::min(digest.find(':') + 1, digest.size()), kShortDigest));
}

bool is_ready(const std::string& state) {
  return state == "done" || state == "exists";
}

std::string bar(const json& layer) {
  const auto bytes = layer.value("bytes", std::uint64_t{0});
  const auto done = std::min(layer.value("done", std::uint64_t{0}), bytes);
  const auto state = layer.value("state", "");
  const auto filled = bytes == 0 ? (is_ready(state) ? kBarWidth : 0) : done * kBarWidth / bytes;
  return fmt::format("{}  [{}{}]  {:<11}  {}", short_digest(layer), std::string(filled, '#'),
                     std::string(kBarWidth - filled, ' '), printable(state), format_part(done, bytes));
}

}  // namespace

std::string PullView::show(const json& progress) {
  std::string text;
  const auto layers = progress.value("layers", json::array());
  if (terminal_) {
    if (painted_ > 0) text += fmt::format("\033[{}A", painted_);
    for (const auto& layer : layers) text += "\r\033[K" + bar(layer) + "\n";
    painted_ = layers.size();
    return text;
  }
  for (const auto& layer : layers) {
    const auto state = layer.value("state", "");
    if (is_ready(state) && ready_.insert(layer.value("digest", "")).second)
      text += fmt::format("{}  {}  {}\n", short_digest(layer), state,
                          format_bytes(layer.value("bytes", std::uint64_t{0})));
  }
  return text;
}

}  // namespace drover::cli
