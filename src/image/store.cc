#include "image/store.h"

#include <fmt/format.h>

#include <set>

#include "base/files.h"
#include "base/units.h"
#include "image/layers.h"
#include "image/proofs.h"
#include "image/reader.h"
#include "image/reference.h"
#include "image/source.h"
#include "image/text.h"

namespace drover::image {
namespace {

using Progress = std::function<void(const std::string&)>;

/// overlayfs takes no folder twice in one mount. Of a layer that comes twice, the lower one shows nothing
/// that the upper one does not.
std::vector<std::string> without_repeats(const std::vector<std::string>& lowest_first) {
  std::set<std::string> seen;
  std::vector<std::string> kept;
  for (auto path = lowest_first.rbegin(); path != lowest_first.rend(); ++path)
    if (seen.insert(*path).second) kept.insert(kept.begin(), *path);
  return kept;
}

Result<std::vector<std::string>> acquire_all(const Layers& layers, const Source& source,
                                             const Progress& progress) {
  std::vector<std::string> paths;
  const auto& wanted = source.contents.layers;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto which = fmt::format("layer {} of {}", i + 1, wanted.size());
    const auto file = source.files->open(wanted[i].name);
    if (!file) return Failure(context(file.error(), which));
    if (progress && !layers.is_ready(wanted[i], *file))
      progress(fmt::format("Unpacking {} ({})", which, format_bytes(file->size)));
    auto path = layers.acquire(wanted[i], *file);
    if (!path) return Failure(context(path.error(), which));
    paths.push_back(std::move(*path));
  }
  return without_repeats(paths);
}

/// What is no path is looked up by its name.
Result<Reference> resolve(const std::string& reference, const std::string& named, const Reader& reader) {
  auto parsed = parse_reference(reference);
  if (parsed || named.empty()) return parsed;
  const auto local = reference_in(named, reference);
  if (!local) return parsed;
  if (reader.is_folder(local->path)) return *local;
  auto error = parsed.error();
  error.hint = fmt::format("fetch it once with 'skopeo copy docker://{} oci:{}:{}'", reference, local->path,
                           local->tag);
  return Failure(std::move(error));
}

Result<Image> prepare_image(const Layers& layers, const std::string& reference, const std::string& named,
                            const User& user, const Progress& progress) {
  DROVER_TRY(const auto parsed, resolve(reference, named, Reader(user)));
  DROVER_TRY(auto source, open_source(parsed, Reader(user)));
  if (!source.root_folder.empty()) return Image{reference, "", {}, {source.root_folder}};
  DROVER_TRY(auto paths, acquire_all(layers, source, progress));
  return Image{reference, source.contents.digest, std::move(source.contents.config), std::move(paths)};
}

}  // namespace

Store::Store(std::unique_ptr<Layers> layers, std::string named)
    : layers_(std::move(layers)), named_(std::move(named)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Result<Store> Store::open(const std::string& folder, std::string named) {
  DROVER_TRY(const auto root, Directory::create(folder, 0700));
  DROVER_TRY(auto sha256, Directory::create(folder + "/layers/sha256", 0700));
  DROVER_TRY(const auto proven, root.make_subdirectory("proven", 0700));
  DROVER_TRY(auto proofs, Proofs::open(proven));
  DROVER_TRY(auto layers, Layers::open(std::move(sha256), std::move(proofs)));
  return Store(std::make_unique<Layers>(std::move(layers)), std::move(named));
}

Result<Image> Store::prepare(const std::string& reference, const User& reader, const Progress& progress) {
  auto image = prepare_image(*layers_, reference, named_, reader, progress);
  if (image) return image;
  return Failure(context(image.error(), fmt::format("Failed to prepare image '{}'", printable(reference))));
}

}  // namespace drover::image
