#pragma once

// The JSON documents of images: OCI image-spec v1 and its Docker v2 schema 2 twins, and the manifest.json of
// docker-archives. They come from strangers: everything is limited and checked, fields that we do not need
// are passed over, as these formats demand. Pure; thread safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image.h"

namespace drover::image {

inline constexpr std::uint64_t kMaxDocument = 4 << 20;  ///< bytes of one JSON document
/// overlayfs gets all layers in one mount; Docker's own limit is 127.
inline constexpr std::size_t kMaxLayers = 127;

struct Platform {
  std::string os;
  std::string architecture;  ///< Go's name: "amd64"
  std::string variant;       ///< "v7"; mostly ""
};

struct Descriptor {
  std::string media_type;
  std::string digest;  ///< well-formed sha256
  std::uint64_t size = 0;
  std::map<std::string, std::string> annotations;
  std::optional<Platform> platform;
};

struct Index {
  std::vector<Descriptor> manifests;
};

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;  ///< lowest first
};

struct ConfigDocument {
  Config config;
  std::string os;
  std::vector<std::string> diff_ids;  ///< digests of the uncompressed layers, lowest first
};

/// One image of a docker-archive; the names are names of its files.
struct ArchivedImage {
  std::string config;
  std::vector<std::string> layers;
  std::vector<std::string> tags;  ///< "busybox:latest"
};

/// What a document is: `told` (by its descriptor, or the server) unless that is "", and what it says itself.
/// Refused when the two differ, or when it could be read as both an index and a manifest.
Result<std::string> type_of_document(std::string_view text, std::string_view told, std::string_view what);

// `what` names the document in messages.
Result<Index> parse_index(std::string_view text, std::string_view what);
Result<Manifest> parse_manifest(std::string_view text, std::string_view what);
Result<ConfigDocument> parse_config(std::string_view text, std::string_view what);
Result<std::vector<ArchivedImage>> parse_archive_manifest(std::string_view text, std::string_view what);
/// The file `oci-layout`: refuses versions other than 1.
Status check_layout_version(std::string_view text);

/// Refuses an image for another machine (`architecture` is Go's name of this one), and one whose layers and
/// diff_ids do not go together.
Status check_config(const ConfigDocument& document, std::size_t layers, const std::string& architecture);

bool is_index(std::string_view media_type);
bool is_manifest(std::string_view media_type);

/// Go's name of this machine's architecture, from what uname(2) calls it.
std::string go_architecture(std::string_view machine);

}  // namespace drover::image
