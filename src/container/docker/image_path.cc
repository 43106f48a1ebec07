#include "container/docker/image_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string_view>

#include "base/shorten.h"
#include "container/volume_plan.h"

namespace drover::container::docker {
namespace {

/// Each may be a question to the engine.
constexpr int kMostSteps = 128;

void put_before(std::deque<std::string>& parts, std::string_view path) {
  std::vector<std::string> first;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (!part.empty() && part != ".") first.emplace_back(part);
  }
  parts.insert(parts.begin(), first.begin(), first.end());
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string below(const std::string& folder, const std::string& name) {
  return folder == "/" ? folder + name : folder + "/" + name;
}

}  // namespace

Result<ImagePath> follow(const std::string& path, const LookUp& look_up) {
  ImagePath found{"/", {}};
  std::deque<std::string> parts;
  put_before(parts, path);
  std::string missing;  // nothing lies below what is not there
  for (int step = 0; !parts.empty(); ++step) {
    if (step == kMostSteps)
      return fail(ErrorKind::kInvalid,
                  fmt::format("'{}' leads through too many folders or links of the image", shortened(path)),
                  "choose a shorter path");
    const auto part = std::move(parts.front());
    parts.pop_front();
    if (part == "..") {
      found.real = parent_of(found.real);
      continue;
    }
    const auto next = below(found.real, part);
    found.passed.push_back(next);
    std::optional<ImageEntry> entry;
    if (missing.empty() || !is_within(next, missing)) {
      DROVER_TRY(entry, look_up(next));
      if (!entry) missing = next;
    }
    if (!entry || entry->link.empty()) {
      found.real = next;
      continue;
    }
    put_before(parts, entry->link);
    if (entry->link.front() == '/') found.real = "/";
  }
  return found;
}

}  // namespace drover::container::docker
