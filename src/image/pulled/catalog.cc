#include "image/pulled/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "image/pulled/blobs.h"

namespace drover::image {
namespace {

using nlohmann::json;

constexpr const char* kIndexFile = "index.json";
constexpr const char* kRefName = "org.opencontainers.image.ref.name";
constexpr const char* kUsers = "io.drover.users";
constexpr const char* kPulledAt = "io.drover.pulled-at";
constexpr const char* kBytes = "io.drover.bytes";
constexpr const char* kFrom = "io.drover.from";
constexpr const char* kFromRegistry = "registry";
constexpr const char* kFromFiles = "files";
/// Of the file itself; one without it is of the first format.
constexpr const char* kFormatName = "io.drover.format";
constexpr const char* kFormat = "1";
/// All of it stays one document that layouts may have.
constexpr std::size_t kMostNames = 5000;

std::string annotation_of(const Descriptor& descriptor, const char* name) {
  const auto found = descriptor.annotations.find(name);
  return found == descriptor.annotations.end() ? "" : found->second;
}

/// "all 0 1000": for everybody, pulled by these.
std::string encode_users(const NamedImage& image) {
  return fmt::format("{}{}", image.everybody ? "all " : "", fmt::join(image.users, " "));
}

bool decode_users(std::string_view text, NamedImage& image) {
  image.everybody = text.starts_with(kEverybody);
  if (image.everybody) text.remove_prefix(std::min(text.size(), std::string_view("all ").size()));
  while (!text.empty()) {
    uid_t uid = 0;
    const auto* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, uid);
    if (error != std::errc()) return false;
    image.users.insert(uid);
    text.remove_prefix(std::min<std::size_t>(text.size(), static_cast<std::size_t>(next - text.data()) + 1));
  }
  return image.everybody || !image.users.empty();
}

json encode_image(const NamedImage& image) {
  return {{"mediaType", image.manifest.media_type},
          {"digest", image.manifest.digest},
          {"size", image.manifest.size},
          {"annotations",
           {{kRefName, image.name.canonical()},
            {kUsers, encode_users(image)},
            {kPulledAt, format_time(image.pulled_at)},
            {kFrom, image.from_registry ? kFromRegistry : kFromFiles},
            {kBytes, std::to_string(image.bytes)}}}};
}

std::optional<NamedImage> decode_image(Descriptor descriptor) {
  NamedImage image;
  const auto name = parse_registry_name(annotation_of(descriptor, kRefName));
  const auto at = parse_time(annotation_of(descriptor, kPulledAt));
  if (!name || !at) return std::nullopt;
  image.name = *name;
  image.pulled_at = *at;
  image.from_registry = annotation_of(descriptor, kFrom) == kFromRegistry;
  const auto bytes = annotation_of(descriptor, kBytes);
  std::from_chars(bytes.data(), bytes.data() + bytes.size(), image.bytes);
  if (!decode_users(annotation_of(descriptor, kUsers), image)) return std::nullopt;
  descriptor.annotations.clear();
  image.manifest = std::move(descriptor);
  return image;
}

Failure damaged_catalog(const Directory& layout, std::string_view why) {
  return fail(ErrorKind::kCorrupt,
              fmt::format("The list of images '{}/{}' is damaged: {}", layout.path(), kIndexFile, why),
              "move it aside: the images are pulled again when they are needed");
}

/// The entries of a newer format may mean something else.
Status check_format(const Directory& layout, std::string_view text) {
  DROVER_TRY(const auto index, parse_json(text, "it"));
  const auto at = json::json_pointer("/annotations") / kFormatName;
  if (!index.contains(at) || index.at(at) == kFormat) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("The list of images '{}/{}' is of format {}, a newer Drover's; this one knows {}",
                          layout.path(), kIndexFile, to_text(index.at(at)), kFormat),
              "use the newer one");
}

/// Of what a name means, the user's own goes before everybody's.
const NamedImage* meaning(const std::vector<NamedImage>& images, const RegistryName& name, uid_t uid) {
  const NamedImage* found = nullptr;
  for (const auto& image : images)
    if (image.name == name && image.is_for(uid) && (found == nullptr || !image.everybody)) found = &image;
  return found;
}

void forget(std::vector<NamedImage>& images, const RegistryName& name, const std::set<uid_t>& users) {
  for (auto& image : images)
    if (image.name == name && !image.everybody)
      for (const auto uid : users) image.users.erase(uid);
  std::erase_if(images, [](const NamedImage& image) { return !image.everybody && image.users.empty(); });
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::open(const Directory& layout) {
  DROVER_TRY(auto own, Directory::open(layout.path()));
  DROVER_CHECK_OK(own.remove_unfinished(""));
  std::vector<NamedImage> images;
  if (own.exists(kIndexFile)) {
    DROVER_TRY(const auto text, own.read(kIndexFile, kMaxDocument));
    const auto index = parse_index(text, "it");
    if (!index) return damaged_catalog(layout, index.error().message);
    DROVER_CHECK_OK(check_format(layout, text));
    for (const auto& descriptor : index->manifests) {
      auto image = decode_image(descriptor);
      if (!image) return damaged_catalog(layout, fmt::format("the entry of '{}'", descriptor.digest));
      images.push_back(std::move(*image));
    }
  }
  if (!own.exists("oci-layout"))
    DROVER_CHECK_OK(own.write("oci-layout", R"({"imageLayoutVersion":"1.0.0"})", 0600));
  return std::unique_ptr<Catalog>(new Catalog(std::move(own), std::move(images)));
}

std::optional<NamedImage> Catalog::find(const RegistryName& name, uid_t uid) const {
  const std::lock_guard lock(mutex_);
  const auto* found = meaning(images_, name, uid);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

Failure Catalog::not_there(const RegistryName& name) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no image '{}'", name.familiar()),
              "'drover image ls' lists those that there are");
}

std::vector<NamedImage> Catalog::list() const {
  const std::lock_guard lock(mutex_);
  return images_;
}

Status Catalog::replace(std::vector<NamedImage> images) {
  if (images.size() > kMostNames)
    return fail(ErrorKind::kExhausted,
                fmt::format("There are {} names of images, the most that are kept", kMostNames),
                "remove some: 'drover image rm NAME', or 'drover image prune --all'");
  std::ranges::sort(images, {}, [](const NamedImage& image) {
    return std::tuple(image.name.canonical(), !image.everybody, image.manifest.digest);
  });
  json manifests = json::array();
  for (const auto& image : images) manifests.push_back(encode_image(image));
  const json index = {
      {"schemaVersion", 2}, {"manifests", std::move(manifests)}, {"annotations", {{kFormatName, kFormat}}}};
  DROVER_CHECK_OK(layout_.write(kIndexFile, index.dump(), 0600));
  images_ = std::move(images);
  return {};
}

Status Catalog::put(NamedImage image) {
  const std::lock_guard lock(mutex_);
  auto images = images_;
  forget(images, image.name, image.users);
  const auto same = std::ranges::find_if(images, [&](const NamedImage& other) {
    return other.name == image.name && other.everybody == image.everybody &&
           (image.everybody || other.manifest.digest == image.manifest.digest);
  });
  if (same == images.end()) {
    images.push_back(std::move(image));
  } else {
    if (same->manifest.digest == image.manifest.digest)
      image.users.insert(same->users.begin(), same->users.end());
    *same = std::move(image);
  }
  return replace(std::move(images));
}

Result<NamedImage> Catalog::remove(const RegistryName& name, uid_t uid) {
  const std::lock_guard lock(mutex_);
  auto images = images_;
  const auto* found = meaning(images, name, uid);
  if (found == nullptr) return not_there(name);
  const auto removed = *found;
  if (removed.everybody && uid != 0 && removed.users != std::set<uid_t>{uid})
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("Others have pulled image '{}' too, so only root removes it", name.familiar()));
  if (removed.everybody)
    std::erase_if(images, [&](const NamedImage& image) { return image.name == name && image.everybody; });
  else
    forget(images, name, {uid});
  DROVER_CHECK_OK(replace(std::move(images)));
  return removed;
}

}  // namespace drover::image
