#include "container/docker/pull_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shorten.h"
#include "base/units.h"
#include "container/docker/answers.h"

namespace drover::container::docker {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;
constexpr std::size_t kMostLayers = 1000;
/// What is told changes with every so many bytes, not with each.
constexpr std::uint64_t kStep = 8 << 20;

Failure pull_failed(const std::string& image, std::string_view why) {
  return fail(kind_of_pull_failure(why, ErrorKind::kUnavailable),
              fmt::format("The Docker Engine could not pull '{}': {}", image, shortened(std::string(why))),
              "check the image's name, and try 'docker pull' of it");
}

}  // namespace

ErrorKind kind_of_pull_failure(std::string_view words, ErrorKind otherwise) {
  const auto says = [&](std::string_view word) { return words.find(word) != std::string_view::npos; };
  if (says("denied") || says("unauthorized") || says("no basic auth credentials"))
    return ErrorKind::kPermissionDenied;
  return says("not found") || says("manifest unknown") ? ErrorKind::kNotFound : otherwise;
}

Status PullProgress::read(std::string_view bytes) {
  unread_ += bytes;
  for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    DROVER_CHECK_OK(read_line(std::string_view(unread_).substr(0, end)));
    unread_.erase(0, end + 1);
  }
  if (unread_.size() <= kLongestLine) return {};
  return fail(ErrorKind::kCorrupt,
              fmt::format("The Docker Engine tells of the pull of '{}' without end", image_));
}

Status PullProgress::finish() {
  return read_line(unread_);
}

Status PullProgress::read_line(std::string_view line) {
  if (line.find_first_not_of(" \r\n\t") == std::string_view::npos) return {};
  DROVER_TRY(const auto step, parse_pull_step(line));
  if (!step.error.empty()) return pull_failed(image_, step.error);
  if (step.layer.empty() || layers_.size() >= kMostLayers) return {};
  auto& layer = layers_[step.layer];
  if (step.status == "Downloading") layer = {step.current, std::max(step.total, step.current), false};
  if (step.status == "Download complete" || step.status == "Pull complete" || step.status == "Already exists")
    layer = {layer.total, layer.total, true};
  if (auto words = sentence(); report_ && words != reported_) report_(reported_ = std::move(words));
  return {};
}

std::string PullProgress::sentence() const {
  std::uint64_t current = 0, total = 0;
  for (const auto& [id, layer] : layers_) {
    current += layer.current;
    total += layer.total;
  }
  if (total == 0) return fmt::format("pulling {}", image_);
  return fmt::format("pulling {}: {} of {}", image_, format_bytes(current / kStep * kStep),
                     format_bytes(total));
}

}  // namespace drover::container::docker
