#include "image/pulled/loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "image/digest.h"
#include "image/layout.h"
#include "image/stream.h"

namespace drover::image {
namespace {

using nlohmann::json;

constexpr const char* kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr const char* kOciConfig = "application/vnd.oci.image.config.v1+json";
constexpr const char* kOciLayer = "application/vnd.oci.image.layer.v1.tar";

/// Of an image that came without one.
template <typename Layer>
std::string make_manifest(const Contents& contents, const std::vector<Layer>& layers) {
  json list = json::array();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool plain = layers[i].digest == contents.layers[i].diff_id;
    list.push_back({{"mediaType", plain ? std::string(kOciLayer) : std::string(kOciLayer) + "+gzip"},
                    {"digest", layers[i].digest},
                    {"size", layers[i].size}});
  }
  return json{{"schemaVersion", 2},
              {"mediaType", kOciManifest},
              {"config",
               {{"mediaType", kOciConfig},
                {"digest", sha256_of(contents.configuration)},
                {"size", contents.configuration.size()}}},
              {"layers", std::move(list)}}
      .dump();
}

}  // namespace

Result<NamedImage> Loader::load(const Source& source, const RegistryName& name, const User& user,
                                const PullListener& listener, const std::stop_token& stop) {
  const auto& contents = source.contents;
  const bool everybody = user.uid == 0;
  const auto scope = scope_of(everybody, user.uid);
  std::vector<std::string> used = {contents.digest, sha256_of(contents.configuration)};
  PullProgress progress{name.familiar(), {}};
  for (const auto& layer : contents.layers) {
    used.insert(used.end(), {layer.digest, layer.diff_id});
    progress.layers.push_back({layer.digest.empty() ? layer.diff_id : layer.digest});
  }
  auto lease = leases_.take(std::move(used));
  std::vector<StoredLayer> stored;
  NamedImage image;
  Allowance allowance(limits_, stop);
  for (std::size_t i = 0; i < contents.layers.size(); ++i) {
    progress.layers[i].state = LayerProgress::State::kUnpacking;
    if (listener) listener(progress);
    auto layer = load_layer(source, contents.layers[i], scope, user.uid, stop, allowance);
    if (!layer)
      return Failure(context(layer.error(), fmt::format("layer {} of {}", i + 1, contents.layers.size())));
    image.bytes += layer->size;
    progress.layers[i].bytes = progress.layers[i].done = layer->size;
    progress.layers[i].state = LayerProgress::State::kDone;
    stored.push_back(std::move(*layer));
  }
  if (listener) listener(progress);
  const auto manifest = contents.manifest.empty() ? make_manifest(contents, stored) : contents.manifest;
  image.name = name;
  image.manifest.media_type = contents.manifest.empty() ? kOciManifest : contents.manifest_type;
  image.manifest.digest = sha256_of(manifest);
  image.manifest.size = manifest.size();
  image.bytes += manifest.size() + contents.configuration.size();
  image.everybody = everybody;
  image.users = {user.uid};
  image.pulled_at = wall_clock();
  auto documents = leases_.take({image.manifest.digest});
  DROVER_CHECK_OK(blobs_.add(sha256_of(contents.configuration), contents.configuration));
  DROVER_CHECK_OK(blobs_.add(image.manifest.digest, manifest));
  DROVER_CHECK_OK(catalog_.put(image));
  return image;
}

Result<Loader::StoredLayer> Loader::load_layer(const Source& source, const LayerFile& layer,
                                               const std::string& scope, uid_t uid,
                                               const std::stop_token& stop, Allowance& allowance) {
  DROVER_TRY(const auto turn, locks_.lock(layer.diff_id + "." + scope, stop));
  StoredLayer stored{layer.digest};
  if (!layer.digest.empty() && blobs_.contains(layer.digest) && blobs_.may_use(layer.digest, uid)) {
    DROVER_TRY(stored.size, blobs_.size(layer.digest));
  } else {
    DROVER_TRY(stored, copy(source, layer, scope, stop));
  }
  if (blobs_.is_known_as(stored.digest, layer.diff_id) && layers_.find(layer.diff_id)) return stored;
  DROVER_TRY(const auto files, blobs_.files());
  const auto name = blob_name(stored.digest);
  DROVER_TRY(const auto file, files->open(name));
  DROVER_CHECK_OK(layers_.acquire({name, layer.diff_id, stored.digest}, file, allowance));
  blobs_.note_known_as(stored.digest, layer.diff_id);
  return stored;
}

Result<Loader::StoredLayer> Loader::copy(const Source& source, const LayerFile& layer,
                                         const std::string& scope, const std::stop_token& stop) {
  DROVER_TRY(const auto file, source.files->open(layer.name));
  DROVER_TRY(const auto partial, blobs_.open_partial(layer.diff_id, "load-" + scope));
  if (::ftruncate(partial.file.get(), 0) != 0) return fail_errno("Failed to begin a layer anew", errno);
  HashingStream bytes(*file.stream);
  const auto copied = [&]() -> Status {
    while (true) {
      if (stop.stop_requested()) return fail(ErrorKind::kUnavailable, "it was stopped");
      DROVER_TRY(const auto block, bytes.next());
      if (block.empty()) return {};
      DROVER_CHECK_OK(write_all(partial.file.get(), block, "the folder of images"));
    }
  }();
  StoredLayer stored{copied ? bytes.digest() : "", bytes.size()};
  auto done = copied;
  if (done && !layer.digest.empty() && stored.digest != layer.digest)
    done = fail(
        ErrorKind::kInvalid,
        fmt::format("the layer is damaged: its digest should be {} and is {}", layer.digest, stored.digest),
        "copy the image again");
  if (done) done = blobs_.finish(partial, stored.digest, scope);
  if (!done) {
    blobs_.drop(partial);
    return Failure(done.error());
  }
  return stored;
}

}  // namespace drover::image
