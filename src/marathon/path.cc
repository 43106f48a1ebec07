#include "marathon/path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace drover::marathon {
namespace {

constexpr std::string_view kPattern =
    R"(^(([a-z0-9]|[a-z0-9][a-z0-9\-]*[a-z0-9])\.)*([a-z0-9]|[a-z0-9][a-z0-9\-]*[a-z0-9])|(\.|\.\.)$)";
constexpr std::array<std::string_view, 5> kReserved = {"restart", "tasks", "versions", ".", ".."};

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    const auto segment = path.substr(0, path.find('/'));
    if (!segment.empty()) segments.push_back(segment);
    path.remove_prefix(std::min(segment.size() + 1, path.size()));
  }
  return segments;
}

bool is_label(std::string_view label) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !label.empty() && plain(label.front()) && plain(label.back()) &&
         std::all_of(label.begin(), label.end(), [&](char c) { return plain(c) || c == '-'; });
}

/// Labels, joined by dots.
bool is_segment(std::string_view segment) {
  for (std::size_t begin = 0; begin <= segment.size();) {
    const auto end = std::min(segment.find('.', begin), segment.size());
    if (!is_label(segment.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string absolute_path(std::string_view path, std::string_view base) {
  std::vector<std::string_view> segments;
  if (!path.starts_with('/')) segments = segments_of(base);
  for (const auto segment : segments_of(path)) {
    if (segment == ".") continue;
    if (segment != "..")
      segments.push_back(segment);
    else if (!segments.empty())
      segments.pop_back();
  }
  return fmt::format("/{}", fmt::join(segments, "/"));
}

std::string parent_path(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos || slash == 0 ? "/" : std::string(path.substr(0, slash));
}

bool is_within(std::string_view path, std::string_view group) {
  if (group == "/") return true;
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/');
}

std::string_view last_segment(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> path_mistakes(std::string_view path) {
  std::vector<std::string> mistakes;
  const auto segments = segments_of(path);
  if (!std::all_of(segments.begin(), segments.end(), is_segment))
    mistakes.push_back(fmt::format("must fully match regular expression '{}'", kPattern));
  if (path.size() > kMaxPath) mistakes.push_back(fmt::format("must not be longer than {}", kMaxPath));
  return mistakes;
}

std::vector<std::string> app_path_mistakes(std::string_view path) {
  auto mistakes = path_mistakes(path);
  if (path == "/") mistakes.emplace_back("must not be root");
  if (std::find(kReserved.begin(), kReserved.end(), last_segment(path)) != kReserved.end())
    mistakes.push_back(fmt::format("must not end with any of the following reserved keywords: {}",
                                   fmt::join(kReserved, ", ")));
  return mistakes;
}

}  // namespace drover::marathon
