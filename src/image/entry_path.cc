#include "image/entry_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "image/text.h"

namespace drover::image {
namespace {

constexpr std::string_view kWhiteoutPrefix = ".wh.";
constexpr std::string_view kMetadataPrefix = ".wh..wh.";
constexpr std::string_view kOpaqueName = ".wh..wh..opq";

Failure refuse(std::string_view raw, std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("entry '{}' {}", printable(raw), why));
}

}  // namespace

Result<std::string> entry_path(std::string_view raw) {
  if (raw.empty()) return refuse(raw, "has no name");
  if (raw.size() > kMaxPath) return refuse(raw, fmt::format("has a name of more than {} bytes", kMaxPath));
  std::string path;
  std::size_t depth = 0;
  for (std::size_t start = 0; start <= raw.size();) {
    const auto end = std::min(raw.find('/', start), raw.size());
    const auto part = raw.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse(raw, "climbs out with '..'");
    if (part.size() > kMaxName)
      return refuse(raw, fmt::format("has a part of more than {} bytes in its name", kMaxName));
    if (++depth > kMaxDepth) return refuse(raw, fmt::format("lies in more than {} folders", kMaxDepth));
    if (!path.empty()) path += '/';
    path += part;
  }
  return path;
}

std::vector<std::string> path_parts(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < path.size();) {
    const auto end = std::min(path.find('/', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

Result<Marker> marker_of(const std::string& path) {
  const auto parts = path_parts(path);
  if (parts.empty()) return Marker{};
  const auto is_metadata = [](const std::string& part) { return part.starts_with(kMetadataPrefix); };
  if (parts.back() == kOpaqueName && std::none_of(parts.begin(), parts.end() - 1, is_metadata))
    return Marker{Marker::Kind::kOpaque, ""};
  if (std::ranges::any_of(parts, is_metadata)) return Marker{Marker::Kind::kIgnored, ""};
  if (!parts.back().starts_with(kWhiteoutPrefix)) return Marker{};
  auto name = parts.back().substr(kWhiteoutPrefix.size());
  if (name.empty() || name == "." || name == "..") return refuse(path, "is a whiteout of no file");
  return Marker{Marker::Kind::kWhiteout, std::move(name)};
}

}  // namespace drover::image
