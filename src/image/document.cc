#include "image/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/decode.h"
#include "image/digest.h"
#include "image/text.h"

namespace drover::image {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 64;
constexpr std::int64_t kMaxSize = 1LL << 50;
constexpr std::size_t kMaxManifests = 10'000;

constexpr std::array<std::string_view, 2> kIndexTypes = {
    "application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"};
constexpr std::array<std::string_view, 2> kManifestTypes = {
    "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"};
constexpr std::array<std::string_view, 2> kConfigTypes = {"application/vnd.oci.image.config.v1+json",
                                                          "application/vnd.docker.container.image.v1+json"};
constexpr std::array<std::string_view, 4> kLayerTypes = {
    "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.foreign.diff.tar"};

/// A layer's type is one of the four, then how it is compressed: Docker writes ".gzip", OCI "+gzip".
bool is_layer(std::string_view media_type) {
  return std::ranges::any_of(kLayerTypes, [&](std::string_view type) {
    if (!media_type.starts_with(type)) return false;
    const auto suffix = media_type.substr(type.size());
    return suffix.empty() || suffix == "+gzip" || suffix == ".gzip" || suffix == "+zstd" || suffix == ".zstd";
  });
}

/// Nesting is counted before parsing, so that a bomb of brackets costs nothing.
bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == '{' || c == '[') && ++depth > kMaxNesting) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

Result<json> parse(std::string_view text, std::string_view what) {
  if (text.size() > kMaxDocument) return fail(ErrorKind::kInvalid, fmt::format("{} is too large", what));
  if (nests_too_deep(text))
    return fail(ErrorKind::kInvalid, fmt::format("{} nests more than {} levels deep", what, kMaxNesting));
  return parse_json(text, what);
}

/// One sentence, whatever the document brought: the first mistake, and how many more there are.
Failure first_mistake(const std::vector<Error>& mistakes, std::string_view what) {
  const auto& first = mistakes.front();
  const auto more =
      mistakes.size() > 1 ? fmt::format(", and {} more mistakes", mistakes.size() - 1) : std::string();
  return fail(ErrorKind::kInvalid, fmt::format("{} is damaged: '{}' {}{}", what, printable(first.path),
                                               printable(first.message), more));
}

std::string require_text(Decoder& object, const std::string& name) {
  const auto value = object.string(name);
  if (!value || value->empty()) object.mistake(name, "is missing");
  return value.value_or("");
}

std::string require_digest(Decoder& object, const std::string& name) {
  const auto digest = require_text(object, name);
  if (!digest.empty() && !digest_hex(digest)) object.mistake(name, "is not a sha256 digest");
  return digest;
}

Descriptor decode_descriptor(Decoder object) {
  Descriptor descriptor;
  descriptor.media_type = object.string("mediaType").value_or("");
  descriptor.digest = require_digest(object, "digest");
  const auto size = object.integer("size", 0, kMaxSize);
  if (!size) object.mistake("size", "is missing or not a size");
  descriptor.size = static_cast<std::uint64_t>(size.value_or(0));
  descriptor.annotations = object.string_map("annotations").value_or(std::map<std::string, std::string>{});
  if (auto platform = object.object("platform"))
    descriptor.platform =
        Platform{platform->string("os").value_or(""), platform->string("architecture").value_or(""),
                 platform->string("variant").value_or("")};
  return descriptor;
}

std::vector<std::pair<std::string, std::string>> decode_environment(Decoder& object) {
  std::vector<std::pair<std::string, std::string>> environment;
  for (const auto& assignment : object.string_list("Env").value_or(std::vector<std::string>{})) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0 || assignment.find('\0') != std::string::npos) continue;
    environment.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  return environment;
}

void decode_process(Decoder object, Config& config) {
  using List = std::vector<std::string>;
  config.entrypoint = object.string_list("Entrypoint").value_or(List{});
  config.command = object.string_list("Cmd").value_or(List{});
  config.environment = decode_environment(object);
  config.user = object.string("User").value_or("");
  config.working_directory = object.string("WorkingDir").value_or("");
  config.labels = object.string_map("Labels").value_or(std::map<std::string, std::string>{});
}

/// What only shows when a manifest's parts are seen together.
Status check_manifest(const Manifest& manifest, std::string_view what) {
  if (std::ranges::find(kConfigTypes, manifest.config.media_type) == kConfigTypes.end())
    return fail(ErrorKind::kInvalid,
                fmt::format("{} is not a container image: its configuration is of type '{}'", what,
                            printable(manifest.config.media_type)));
  if (manifest.layers.empty()) return fail(ErrorKind::kInvalid, fmt::format("{} has no layers", what));
  if (manifest.layers.size() > kMaxLayers)
    return fail(ErrorKind::kInvalid, fmt::format("{} has {} layers, more than the {} that can be mounted",
                                                 what, manifest.layers.size(), kMaxLayers));
  for (const auto& layer : manifest.layers)
    if (!is_layer(layer.media_type))
      return fail(ErrorKind::kUnsupported,
                  fmt::format("{} has a layer of type '{}', which Drover cannot unpack", what,
                              printable(layer.media_type)));
  return {};
}

}  // namespace

bool is_index(std::string_view media_type) {
  return std::ranges::find(kIndexTypes, media_type) != kIndexTypes.end();
}

bool is_manifest(std::string_view media_type) {
  return std::ranges::find(kManifestTypes, media_type) != kManifestTypes.end();
}

Result<std::string> type_of_document(std::string_view text, std::string_view told, std::string_view what) {
  DROVER_TRY(const auto document, parse(text, what));
  std::vector<Error> mistakes;
  Decoder object(document, mistakes);
  const auto said = object.string("mediaType").value_or("");
  if (!mistakes.empty()) return first_mistake(mistakes, what);
  const bool generic = told.empty() || told == "application/json" || told == "application/octet-stream";
  if (!said.empty() && !generic && said != told)
    return fail(ErrorKind::kInvalid, fmt::format("{} says that it is of type '{}', and was called '{}'", what,
                                                 printable(said), printable(told)));
  if (document.contains("manifests") && (document.contains("layers") || document.contains("config")))
    return fail(ErrorKind::kInvalid, fmt::format("{} is an index and a manifest at once", what));
  if (!generic || !said.empty()) return said.empty() ? std::string(told) : said;
  return std::string(document.contains("manifests") ? kIndexTypes[0] : kManifestTypes[0]);
}

Status check_layout_version(std::string_view text) {
  DROVER_TRY(const auto document, parse(text, "'oci-layout'"));
  std::vector<Error> mistakes;
  Decoder object(document, mistakes);
  const auto version = require_text(object, "imageLayoutVersion");
  if (!mistakes.empty()) return first_mistake(mistakes, "'oci-layout'");
  if (!version.starts_with("1."))
    return fail(ErrorKind::kUnsupported,
                fmt::format("the layout has version '{}', and Drover reads version 1", printable(version)));
  return {};
}

Result<Index> parse_index(std::string_view text, std::string_view what) {
  DROVER_TRY(const auto document, parse(text, what));
  std::vector<Error> mistakes;
  Decoder object(document, mistakes);
  auto manifests = object.objects("manifests");
  if (manifests.size() > kMaxManifests)
    return fail(ErrorKind::kInvalid, fmt::format("{} lists more than {} images", what, kMaxManifests));
  Index index;
  for (auto& manifest : manifests) index.manifests.push_back(decode_descriptor(std::move(manifest)));
  if (!mistakes.empty()) return first_mistake(mistakes, what);
  return index;
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view what) {
  DROVER_TRY(const auto document, parse(text, what));
  std::vector<Error> mistakes;
  Decoder object(document, mistakes);
  Manifest manifest;
  if (auto config = object.object("config"))
    manifest.config = decode_descriptor(std::move(*config));
  else
    object.mistake("config", "is missing");
  for (auto& layer : object.objects("layers")) manifest.layers.push_back(decode_descriptor(std::move(layer)));
  if (!mistakes.empty()) return first_mistake(mistakes, what);
  DROVER_CHECK_OK(check_manifest(manifest, what));
  return manifest;
}

Result<ConfigDocument> parse_config(std::string_view text, std::string_view what) {
  DROVER_TRY(const auto document, parse(text, what));
  std::vector<Error> mistakes;
  Decoder object(document, mistakes);
  ConfigDocument result;
  result.os = object.string("os").value_or("");
  result.config.architecture = object.string("architecture").value_or("");
  if (auto process = object.object("config")) decode_process(std::move(*process), result.config);
  if (auto rootfs = object.object("rootfs")) {
    for (auto& diff_id : rootfs->string_list("diff_ids").value_or(std::vector<std::string>{})) {
      if (!digest_hex(diff_id)) rootfs->mistake("diff_ids", "holds something that is not a sha256 digest");
      result.diff_ids.push_back(std::move(diff_id));
    }
  } else {
    object.mistake("rootfs", "is missing");
  }
  if (!mistakes.empty()) return first_mistake(mistakes, what);
  return result;
}

Status check_config(const ConfigDocument& document, std::size_t layers, const std::string& architecture) {
  const auto& of_image = document.config.architecture;
  if ((!of_image.empty() && of_image != architecture) || (!document.os.empty() && document.os != "linux"))
    return fail(ErrorKind::kUnsupported,
                fmt::format("the image is for {}/{}, and this machine is linux/{}", printable(document.os),
                            printable(of_image), architecture),
                "use an image that was built for this machine");
  if (document.diff_ids.size() != layers)
    return fail(ErrorKind::kInvalid, fmt::format("the image has {} layers, and its configuration names {}",
                                                 layers, document.diff_ids.size()));
  return {};
}

Result<std::vector<ArchivedImage>> parse_archive_manifest(std::string_view text, std::string_view what) {
  DROVER_TRY(const auto document, parse(text, what));
  if (!document.is_array() || document.size() > kMaxManifests)
    return fail(ErrorKind::kInvalid, fmt::format("{} is not a list of images", what));
  std::vector<Error> mistakes;
  std::vector<ArchivedImage> images;
  for (std::size_t i = 0; i < document.size(); ++i) {
    Decoder object(document[i], mistakes, fmt::format("/{}", i));
    ArchivedImage image;
    image.config = require_text(object, "Config");
    image.layers = object.string_list("Layers").value_or(std::vector<std::string>{});
    image.tags = object.string_list("RepoTags").value_or(std::vector<std::string>{});
    images.push_back(std::move(image));
  }
  if (!mistakes.empty()) return first_mistake(mistakes, what);
  return images;
}

std::string go_architecture(std::string_view machine) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames = {{
      {"x86_64", "amd64"},
      {"aarch64", "arm64"},
      {"i686", "386"},
      {"i586", "386"},
      {"armv7l", "arm"},
      {"armv6l", "arm"},
      {"loongarch64", "loong64"},
  }};
  const auto* const found =
      std::ranges::find(kNames, machine, &std::pair<std::string_view, std::string_view>::first);
  return std::string(found != kNames.end() ? found->second : machine);  // ppc64le, s390x, riscv64 …
}

}  // namespace drover::image
