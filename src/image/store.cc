#include "image/store.h"

#include <fmt/format.h>

#include <set>

#include "base/files.h"
#include "base/units.h"
#include "image/layers.h"
#include "image/layout.h"
#include "image/platform.h"
#include "image/proofs.h"
#include "image/pulled/blobs.h"
#include "image/pulled/leases.h"
#include "image/pulled/loader.h"
#include "image/reader.h"
#include "image/reference.h"
#include "image/source.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr auto kReportAgain = std::chrono::milliseconds(700);  // of steps that many may hear of

/// Each by its digest alone: tags move on.
Result<std::vector<Variant>> variants_of_index(std::string_view text, const RegistryName& name) {
  DROVER_TRY(const auto index, parse_index(text, "its index"));
  const RegistryName untagged{name.host, name.repository, "", ""};
  return variants_of(index.manifests, untagged.familiar(), architecture_of_machine());
}

/// overlayfs takes no folder twice in one mount. Of a layer that comes twice, the lower one shows nothing
/// that the upper one does not.
std::vector<std::string> without_repeats(const std::vector<std::string>& lowest_first) {
  std::set<std::string> seen;
  std::vector<std::string> kept;
  for (auto path = lowest_first.rbegin(); path != lowest_first.rend(); ++path)
    if (seen.insert(*path).second) kept.insert(kept.begin(), *path);
  return kept;
}

std::vector<std::string> diff_ids_of(const Contents& contents) {
  std::vector<std::string> diff_ids;
  for (const auto& layer : contents.layers) diff_ids.push_back(layer.diff_id);
  return diff_ids;
}

std::vector<std::string> digests_of(const Image& image) {
  const auto diff_ids = diff_ids_of_paths(image.layers);
  std::vector<std::string> digests(diff_ids.begin(), diff_ids.end());
  if (!image.digest.empty()) digests.push_back(image.digest);
  return digests;
}

/// Of files that users provide: whoever names a layer must have it.
Result<std::vector<std::string>> acquire_all(const Layers& layers, const Source& source,
                                             const PrepareOptions& options, Allowance& allowance) {
  std::vector<std::string> paths;
  const auto& wanted = source.contents.layers;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto which = fmt::format("layer {} of {}", i + 1, wanted.size());
    const auto file = source.files->open(wanted[i].name);
    if (!file) return Failure(context(file.error(), which));
    if (options.progress && !layers.is_ready(wanted[i], *file))
      options.progress(fmt::format("Unpacking {} ({})", which, format_bytes(file->size)));
    auto path = layers.acquire(wanted[i], *file, allowance);
    if (!path) return Failure(context(path.error(), which));
    paths.push_back(std::move(*path));
  }
  return without_repeats(paths);
}

}  // namespace

struct Store::Parts {
  Layers layers;
  Blobs blobs;
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<Uses> uses;
  StoreOptions options;
  Leases leases{};
  Puller puller{blobs,
                *catalog,
                leases,
                layers,
                PlainRegistries(options.plain_registries),
                RegistryCertificates(options.certificates),
                options.pulling};

  Loader loader{blobs, *catalog, leases, layers, options.pulling.unpacking};
  Stock stock{blobs, *catalog, leases, layers, options.layers_in_use};

  /// Where it is looked up: a name that lies in the folder of named images stands for what lies there.
  Result<Reference> resolve(const std::string& reference, const User& reader) const;
  Result<std::vector<Variant>> variants(const std::string& reference, const User& reader,
                                        const LookupOptions& request);
  Result<std::vector<Variant>> variants_named(const RegistryName& name, const User& user,
                                              const LookupOptions& request);
  Result<std::vector<Variant>> variants_in(const NamedImage& image);
  /// `level`: how many choices have led here.
  Result<Image> prepare(const std::string& reference, const User& reader, const PrepareOptions& request,
                        int level = 0);
  Result<Image> prepare_variant(const std::string& shown, const std::vector<Variant>& variants,
                                const User& reader, const PrepareOptions& request, int level);
  Result<Image> prepare_source(const std::string& shown, const Reference& reference, const User& reader,
                               const PrepareOptions& request);
  Result<Image> prepare_named(const RegistryName& name, const User& user, const PrepareOptions& request,
                              int level);
  Result<Image> open_named(const NamedImage& image, const User& user, const PrepareOptions& request,
                           int level);
  Result<Image> unpacked(const NamedImage& image, const PrepareOptions& request);
  Result<std::string> find_or_unpack(const Source& source, std::size_t index, const PrepareOptions& request,
                                     Allowance& allowance);
  Result<NamedImage> pull(const RegistryName& name, const User& user, const PullListener& listener,
                          const std::stop_token& stop);
};

Result<Reference> Store::Parts::resolve(const std::string& reference, const User& reader) const {
  DROVER_TRY(auto parsed, parse_reference(reference));
  if (parsed.kind != Reference::Kind::kName || options.named.empty()) return parsed;
  auto local = reference_in(options.named, parsed.path);
  if (local && Reader(reader).is_folder(local->path)) return std::move(*local);
  return parsed;
}

Result<std::vector<Variant>> Store::Parts::variants(const std::string& reference, const User& reader,
                                                    const LookupOptions& request) {
  DROVER_TRY(const auto resolved,
             request.registries_only ? parse_reference(reference) : resolve(reference, reader));
  if (resolved.kind != Reference::Kind::kName) return list_variants(resolved, Reader(reader));
  DROVER_TRY(const auto name, parse_registry_name(resolved.path));
  return variants_named(name, reader, request);
}

Result<std::vector<Variant>> Store::Parts::variants_named(const RegistryName& name, const User& user,
                                                          const LookupOptions& request) {
  const auto known = request.newest ? std::nullopt : catalog->find(name, user.uid);
  if (known) return variants_in(*known);
  if (!request.ask_registries) return std::vector<Variant>{};
  auto found = puller.fetch_document(name, user, request.stop);
  if (!found) return Failure(context(found.error(), fmt::format("Failed to ask '{}'", name.host)));
  if (!is_index(found->descriptor.media_type)) return std::vector<Variant>{};
  return variants_of_index(found->text, name);
}

Result<std::vector<Variant>> Store::Parts::variants_in(const NamedImage& image) {
  if (!image.has_variants()) return std::vector<Variant>{};
  const auto lease = leases.take({image.manifest.digest});
  DROVER_TRY(const auto files, blobs.files());
  DROVER_TRY(const auto text, read_document(*files, image.manifest, "its index"));
  return variants_of_index(text, image.name);
}

Result<Image> Store::Parts::prepare(const std::string& reference, const User& reader,
                                    const PrepareOptions& request, int level) {
  DROVER_TRY(const auto resolved, resolve(reference, reader));
  if (resolved.kind == Reference::Kind::kName) {
    DROVER_TRY(const auto name, parse_registry_name(resolved.path));
    return prepare_named(name, reader, request, level);
  }
  if (request.choose) {
    DROVER_TRY(const auto variants, list_variants(resolved, Reader(reader)));
    if (!variants.empty()) return prepare_variant(reference, variants, reader, request, level);
  }
  return prepare_source(reference, resolved, reader, request);
}

Result<Image> Store::Parts::prepare_variant(const std::string& shown, const std::vector<Variant>& variants,
                                            const User& reader, const PrepareOptions& request, int level) {
  if (level == kMostVariantLevels)
    return fail(ErrorKind::kInvalid,
                fmt::format("its variants nest more than {} levels deep", kMostVariantLevels));
  DROVER_TRY(const auto chosen, request.choose(shown, variants));
  const auto& variant = variants.at(chosen);
  auto image = prepare(variant.reference, reader, request, level + 1);
  if (image) return image;
  return Failure(context(image.error(), fmt::format("variant '{}'", variant.needs.name)));
}

Result<Image> Store::Parts::prepare_source(const std::string& shown, const Reference& reference,
                                           const User& reader, const PrepareOptions& request) {
  DROVER_TRY(auto source, open_source(reference, Reader(reader)));
  if (!source.root_folder.empty()) return Image{shown, "", {}, {source.root_folder}, nullptr};
  auto lease = leases.take(diff_ids_of(source.contents));
  Allowance allowance(options.pulling.unpacking, request.stop);
  DROVER_TRY(auto paths, acquire_all(layers, source, request, allowance));
  return Image{shown, source.contents.digest, std::move(source.contents.config), std::move(paths),
               std::move(lease)};
}

Result<Image> Store::Parts::prepare_named(const RegistryName& name, const User& user,
                                          const PrepareOptions& request, int level) {
  const auto lease = leases.take({name.canonical()});  // first: a name that is found is not taken away
  if (request.pull != PullPolicy::kAlways) {
    if (const auto known = catalog->find(name, user.uid)) {
      auto image = open_named(*known, user, request, level);
      // What a machine that went down has left damaged comes again.
      if (image || request.pull == PullPolicy::kNever) return image;
      if (image.error().kind != ErrorKind::kInvalid && image.error().kind != ErrorKind::kNotFound)
        return image;
    } else if (request.pull == PullPolicy::kNever) {
      return fail(ErrorKind::kNotFound, "it is not on this machine, and was not to be pulled",
                  fmt::format("pull it: 'drover image pull {}'", name.familiar()));
    }
  }
  std::chrono::steady_clock::time_point told{};
  const auto report = [&](const PullProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!request.progress || now < told + kReportAgain) return;
    told = now;
    request.progress(in_words(progress));
  };
  DROVER_TRY(const auto pulled, pull(name, user, report, request.stop));
  return open_named(pulled, user, request, level);
}

Result<Image> Store::Parts::open_named(const NamedImage& image, const User& user,
                                       const PrepareOptions& request, int level) {
  if (!image.has_variants()) return unpacked(image, request);
  if (!request.choose) return fail(ErrorKind::kInvalid, "it stands for several images, and none was chosen");
  DROVER_TRY(const auto variants, variants_in(image));
  auto own = request;  // the index names each by its digest: there is nothing newer to ask for
  if (own.pull == PullPolicy::kAlways) own.pull = PullPolicy::kMissing;
  return prepare_variant(image.name.familiar(), variants, user, own, level);
}

Result<NamedImage> Store::Parts::pull(const RegistryName& name, const User& user,
                                      const PullListener& listener, const std::stop_token& stop) {
  auto pulled = puller.pull(name, user, listener, stop);
  if (pulled) return pulled;
  return Failure(context(pulled.error(), fmt::format("Failed to pull it from '{}'", name.host)));
}

/// That the image is in the catalog, for this user, is proof of all that it consists of.
Result<Image> Store::Parts::unpacked(const NamedImage& image, const PrepareOptions& request) {
  const auto documents = leases.take({image.manifest.digest});
  DROVER_TRY(std::unique_ptr<ImageFiles> files, blobs.files());
  DROVER_TRY(auto contents, read_image(*files, image.manifest, architecture_of_machine()));
  auto used = diff_ids_of(contents);
  used.push_back(image.manifest.digest);
  auto lease = leases.take(std::move(used));
  const Source source{"", std::move(files), std::move(contents)};
  std::vector<std::string> paths;
  Allowance allowance(options.pulling.unpacking, request.stop);
  for (std::size_t i = 0; i < source.contents.layers.size(); ++i) {
    DROVER_TRY(auto path, find_or_unpack(source, i, request, allowance));
    paths.push_back(std::move(path));
  }
  return Image{image.name.familiar(), image.manifest.digest, source.contents.config, without_repeats(paths),
               std::move(lease)};
}

Result<std::string> Store::Parts::find_or_unpack(const Source& source, std::size_t index,
                                                 const PrepareOptions& request, Allowance& allowance) {
  const auto& layer = source.contents.layers[index];
  if (auto path = layers.find(layer.diff_id)) return *path;
  const auto which = fmt::format("layer {} of {}", index + 1, source.contents.layers.size());
  const auto file = source.files->open(layer.name);
  if (!file) return Failure(context(file.error(), which));
  if (request.progress) request.progress(fmt::format("Unpacking {} ({})", which, format_bytes(file->size)));
  auto path = layers.acquire(layer, *file, allowance);
  if (path) return path;
  if (path.error().kind == ErrorKind::kInvalid) (void)blobs.remove(layer.digest);
  return Failure(context(path.error(), which));
}

Store::Store(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Result<Store> Store::open(const std::string& folder, StoreOptions options) {
  DROVER_TRY(const auto root, Directory::create(folder, 0700));
  DROVER_TRY(auto sha256, Directory::create(folder + "/layers/sha256", 0700));
  DROVER_TRY(const auto proven, root.make_subdirectory("proven", 0700));
  DROVER_TRY(auto proofs, Proofs::open(proven));
  DROVER_TRY(const auto unsynced, root.make_subdirectory("unsynced", 0700));
  DROVER_CHECK_OK(root.sync());
  DROVER_TRY(auto layers, Layers::open(std::move(sha256), unsynced, std::move(proofs)));
  DROVER_TRY(const auto pulled, Directory::create(folder + "/pulled", 0700));
  DROVER_TRY(auto blobs, Blobs::open(pulled));
  DROVER_TRY(auto catalog, Catalog::open(pulled));
  DROVER_TRY(auto used, root.make_subdirectory("used", 0700));
  DROVER_TRY(auto uses, Uses::open(std::move(used)));
  return Store(std::unique_ptr<Parts>(new Parts{std::move(layers), std::move(blobs), std::move(catalog),
                                                std::move(uses), std::move(options)}));
}

Result<std::vector<Variant>> Store::variants(const std::string& reference, const User& reader,
                                             const LookupOptions& options) const {
  auto listed = parts_->variants(reference, reader, options);
  if (listed) return listed;
  return Failure(context(listed.error(), fmt::format("Failed to read image '{}'", printable(reference))));
}

Result<Image> Store::prepare(const std::string& reference, const User& reader,
                             const PrepareOptions& options) {
  auto image = parts_->prepare(reference, reader, options);
  if (image) {
    parts_->uses->note({reader.uid, reference}, digests_of(*image));
    return image;
  }
  return Failure(context(image.error(), fmt::format("Failed to prepare image '{}'", printable(reference))));
}

Result<NamedImage> Store::pull(const std::string& name, const User& user, const PullListener& listener,
                               const std::stop_token& stop) {
  DROVER_TRY(const auto parsed, parse_registry_name(name));
  auto pulled = parts_->pull(parsed, user, listener, stop);
  if (pulled) return pulled;
  return Failure(context(pulled.error(), fmt::format("Failed to pull image '{}'", printable(name))));
}

Result<NamedImage> Store::load(const std::string& reference, const std::string& name, const User& user,
                               const PullListener& listener, const std::stop_token& stop) {
  DROVER_TRY(const auto as, parse_registry_name(name));
  if (!as.digest.empty())
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' names a digest, which no one gives an image", printable(name)),
                "give it a tag: 'tool:1.0'");
  DROVER_TRY(const auto from, parse_reference(reference));
  if (from.kind == Reference::Kind::kName)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no file", printable(reference)),
                "name 'oci:/folder', 'oci-archive:/file' or 'docker-archive:/file'");
  const auto loaded = [&]() -> Result<NamedImage> {
    DROVER_TRY(const auto variants, list_variants(from, Reader(user)));
    if (!variants.empty())
      return fail(ErrorKind::kInvalid, fmt::format("it stands for {} images", variants.size()),
                  fmt::format("load one of them, such as '{}'", printable(variants.front().reference)));
    DROVER_TRY(const auto source, open_source(from, Reader(user)));
    if (source.root_folder.empty()) return parts_->loader.load(source, as, user, listener, stop);
    return fail(ErrorKind::kInvalid, "it is a root folder, not an image",
                "run it as it is: 'drover run --image'");
  }();
  if (loaded) return loaded;
  return Failure(context(loaded.error(), fmt::format("Failed to load image '{}'", printable(reference))));
}

std::vector<NamedImage> Store::list(uid_t uid) const {
  auto images = parts_->catalog->list();
  std::erase_if(images, [&](const NamedImage& image) { return uid != 0 && !image.is_for(uid); });
  return images;
}

Result<ImageDetails> Store::inspect(const std::string& name, uid_t uid) const {
  DROVER_TRY(const auto parsed, parse_registry_name(name));
  auto image = parts_->catalog->find(parsed, uid);
  if (!image) return Catalog::not_there(parsed);
  if (image->has_variants())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' stands for several images", parsed.familiar()),
                fmt::format("'drover image variants {}' lists them", parsed.familiar()));
  const auto lease = parts_->leases.take({image->manifest.digest});
  DROVER_TRY(const auto files, parts_->blobs.files());
  auto contents = read_image(*files, image->manifest, architecture_of_machine());
  if (contents) return ImageDetails{std::move(*image), std::move(*contents)};
  return Failure(context(contents.error(), fmt::format("Failed to read image '{}'", parsed.familiar())));
}

Result<NamedImage> Store::remove(const std::string& name, uid_t uid) {
  DROVER_TRY(const auto parsed, parse_registry_name(name));
  return parts_->catalog->remove(parsed, uid);
}

Result<Pruned> Store::prune(uid_t uid, bool names) {
  const auto may_remove = [&](const NamedImage& image) {
    return names && (uid == 0 || image.users == std::set<uid_t>{uid});
  };
  return image::prune(parts_->stock, may_remove);
}

Result<Pruned> Store::make_room(const RoomRequest& request) {
  return image::make_room(parts_->stock, *parts_->uses, request);
}

}  // namespace drover::image
