#include "image/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "image/digest.h"
#include "image/document.h"
#include "image/entry_path.h"
#include "image/reference.h"
#include "image/text.h"

namespace drover::image {
namespace {

std::string list_names(const std::vector<ArchivedImage>& images) {
  std::set<std::string> names;
  for (const auto& image : images)
    for (const auto& tag : image.tags) names.insert(printable(tag));
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<ArchivedImage> choose(const std::vector<ArchivedImage>& images, const std::string& name) {
  if (images.empty()) return fail(ErrorKind::kInvalid, "the archive holds no image");
  if (name.empty() && images.size() == 1) return images.front();
  if (name.empty())
    return fail(ErrorKind::kInvalid, "there are several images and none was named",
                fmt::format("add ':' and one of these: {}", list_names(images)));
  const auto found = std::ranges::find_if(images, [&](const ArchivedImage& image) {
    return std::ranges::any_of(image.tags, [&](const std::string& tag) { return same_name(tag, name); });
  });
  if (found != images.end()) return *found;
  return fail(ErrorKind::kNotFound, fmt::format("there is no image '{}'", printable(name)),
              fmt::format("its images: {}", list_names(images)));
}

}  // namespace

Result<Contents> read_docker_archive(const ImageFiles& files, const std::string& name,
                                     const std::string& architecture) {
  DROVER_TRY(const auto manifest, files.read(kArchiveManifest, kMaxDocument));
  DROVER_TRY(const auto images, parse_archive_manifest(manifest, "'manifest.json'"));
  DROVER_TRY(const auto image, choose(images, name));
  if (image.layers.empty() || image.layers.size() > kMaxLayers)
    return fail(ErrorKind::kInvalid, fmt::format("the image has {} layers, and from 1 to {} can be mounted",
                                                 image.layers.size(), kMaxLayers));
  DROVER_TRY(const auto config_name, entry_path(image.config));
  DROVER_TRY(const auto config_text, files.read(config_name, kMaxDocument));
  DROVER_TRY(auto document, parse_config(config_text, "its configuration"));
  DROVER_CHECK_OK(check_config(document, image.layers.size(), architecture));

  Contents contents{sha256_of(config_text), std::move(document.config), {}, "", "", config_text};
  for (std::size_t i = 0; i < image.layers.size(); ++i) {
    DROVER_TRY(auto layer, entry_path(image.layers[i]));
    contents.layers.push_back({std::move(layer), document.diff_ids[i], ""});
  }
  return contents;
}

}  // namespace drover::image
