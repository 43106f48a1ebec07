#include "image/reference.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "image/registry/name.h"
#include "image/text.h"

namespace drover::image {
namespace {

using Kind = Reference::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 6> kPrefixes = {{
    {"oci:", Kind::kLayout},
    {"oci-archive:", Kind::kOciArchive},
    {"docker-archive:", Kind::kDockerArchive},
    {"rootfs:", Kind::kRootFolder},
    {"dir:", Kind::kRootFolder},
    {"variants:", Kind::kVariantList},
}};
constexpr std::array<std::string_view, 3> kOtherTransports = {
    "docker-daemon:", "containers-storage:", "ostree:"};
constexpr std::string_view kRegistryTransport = "docker://";
constexpr std::size_t kLongest = 4096;

/// Checked here, so that a name is known to be one.
Result<Reference> name_in_registry(std::string_view name) {
  DROVER_TRY(const auto parsed, parse_registry_name(name));
  return Reference{Kind::kName, parsed.canonical(), ""};
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

  if (text.starts_with(kRegistryTransport)) return name_in_registry(text.substr(kRegistryTransport.size()));

  Reference reference;
  auto rest = text;
  for (const auto& [prefix, kind] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    reference.kind = kind;
    rest.remove_prefix(prefix.size());
    break;
  }
  if (!rest.starts_with('/')) {
    if (reference.kind == Kind::kPath && !rest.starts_with('.')) return name_in_registry(text);
    return fail(ErrorKind::kInvalid, fmt::format("Image '{}' is not an absolute path", printable(text)),
                "write the whole path, as in 'oci:/srv/images/tool:latest'");
  }
  const bool in_layout = reference.kind == Kind::kLayout || reference.kind == Kind::kOciArchive;
  if (const auto at = in_layout ? rest.find("@sha256:") : std::string_view::npos;
      at != std::string_view::npos) {
    reference.digest = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  const bool has_tag = reference.kind != Kind::kRootFolder && reference.kind != Kind::kVariantList;
  const auto colon = has_tag ? rest.find(':') : std::string_view::npos;
  reference.path = rest.substr(0, colon);
  if (colon != std::string_view::npos) reference.tag = rest.substr(colon + 1);
  return reference;
}

std::optional<Reference> reference_in(const std::string& folder, std::string_view name) {
  const auto parsed = parse_registry_name(name);
  if (!parsed || !parsed->digest.empty()) return std::nullopt;
  const auto familiar = parsed->familiar();
  return Reference{Kind::kLayout, folder + "/" + familiar.substr(0, familiar.rfind(':')), parsed->tag};
}

bool same_name(std::string_view a, std::string_view b) {
  const auto first = parse_registry_name(a);
  const auto second = parse_registry_name(b);
  return first && second && *first == *second;
}

}  // namespace drover::image
