#include "image/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "image/text.h"

namespace drover::image {
namespace {

using Kind = Reference::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kPrefixes = {{
    {"oci:", Kind::kLayout},
    {"oci-archive:", Kind::kOciArchive},
    {"docker-archive:", Kind::kDockerArchive},
    {"rootfs:", Kind::kRootFolder},
    {"dir:", Kind::kRootFolder},
}};
constexpr std::array<std::string_view, 4> kOtherTransports = {
    "docker://", "docker-daemon:", "containers-storage:", "ostree:"};
constexpr std::size_t kLongest = 4096;

Failure in_a_registry(std::string_view name) {
  const auto shown = printable(name);
  return fail(ErrorKind::kUnsupported,
              fmt::format("Image '{}' is in a registry, and Drover reads files only", shown),
              fmt::format("fetch it once with 'skopeo copy docker://{} oci:/srv/images/NAME:TAG' and name "
                          "'oci:/srv/images/NAME:TAG'",
                          shown));
}

std::string full_name(std::string_view name) {
  for (const std::string_view prefix : {"docker.io/", "index.docker.io/", "library/"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const auto last = name.substr(name.find_last_of('/') + 1);
  const bool has_tag = last.find(':') != std::string_view::npos || name.find('@') != std::string_view::npos;
  return std::string(name) + (has_tag ? "" : ":latest");
}

}  // namespace

Result<Reference> parse_reference(std::string_view text) {
  if (text.empty()) return fail(ErrorKind::kInvalid, "The image has no name");
  if (text.size() > kLongest || text.find('\0') != std::string_view::npos)
    return fail(ErrorKind::kInvalid, fmt::format("Image name '{}' is not a usable name", printable(text)));
  for (const auto prefix : kOtherTransports)
    if (text.starts_with(prefix))
      return fail(ErrorKind::kUnsupported,
                  fmt::format("Image '{}' is of a kind that Drover does not read", printable(text)),
                  fmt::format("copy it into a folder with 'skopeo copy {} oci:/srv/images/NAME:TAG'",
                              printable(text)));

  Reference reference;
  auto rest = text;
  for (const auto& [prefix, kind] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    reference.kind = kind;
    rest.remove_prefix(prefix.size());
    break;
  }
  if (!rest.starts_with('/')) {
    if (reference.kind == Kind::kPath && !rest.starts_with('.')) return in_a_registry(text);
    return fail(ErrorKind::kInvalid, fmt::format("Image '{}' is not an absolute path", printable(text)),
                "write the whole path, as in 'oci:/srv/images/tool:latest'");
  }
  const auto colon = reference.kind == Kind::kRootFolder ? std::string_view::npos : rest.find(':');
  reference.path = rest.substr(0, colon);
  if (colon != std::string_view::npos) reference.tag = rest.substr(colon + 1);
  return reference;
}

std::optional<Reference> reference_in(const std::string& folder, std::string_view name) {
  if (name.empty() || name.size() > kLongest || name.find('@') != std::string_view::npos) return std::nullopt;
  const auto whole = full_name(name);
  const auto colon = whole.rfind(':');
  const auto path = whole.substr(0, colon);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/' || c == ':';
  };
  if (!std::all_of(path.begin(), path.end(), is_plain)) return std::nullopt;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (end == begin || path[begin] == '.') return std::nullopt;  // "", "." and ".." would lead elsewhere
    begin = end + 1;
  }
  return Reference{Kind::kLayout, folder + "/" + path, whole.substr(colon + 1)};
}

bool same_name(std::string_view a, std::string_view b) {
  return full_name(a) == full_name(b);
}

}  // namespace drover::image
