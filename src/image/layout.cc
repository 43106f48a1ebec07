#include "image/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "image/digest.h"
#include "image/document.h"
#include "image/platform.h"
#include "image/reference.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr int kMaxIndexDepth = 4;
constexpr std::size_t kMostEntries = 10'000;
constexpr const char* kNameAnnotation = "org.opencontainers.image.ref.name";
constexpr const char* kFullNameAnnotation = "io.containerd.image.name";  // docker buildx, ctr

std::string annotation(const Descriptor& descriptor, const std::string& name) {
  const auto found = descriptor.annotations.find(name);
  return found == descriptor.annotations.end() ? "" : found->second;
}

std::string list_tags(const std::vector<Descriptor>& images) {
  std::set<std::string> tags;
  for (const auto& image : images)
    if (const auto tag = annotation(image, kNameAnnotation); !tag.empty()) tags.insert(printable(tag));
  return fmt::format("{}", fmt::join(tags, ", "));
}

std::vector<Descriptor> with_tag(const std::vector<Descriptor>& images, const std::string& tag) {
  std::vector<Descriptor> exact;
  std::vector<Descriptor> similar;
  for (const auto& image : images) {
    if (annotation(image, kNameAnnotation) == tag)
      exact.push_back(image);
    else if (const auto name = annotation(image, kFullNameAnnotation); !name.empty() && same_name(name, tag))
      similar.push_back(image);
  }
  return exact.empty() ? similar : exact;
}

Result<Descriptor> choose_by_tag(const Index& index, const std::string& tag,
                                 const std::string& architecture) {
  if (index.manifests.empty()) return fail(ErrorKind::kInvalid, "the layout holds no image");
  const auto tagged = tag.empty() ? index.manifests : with_tag(index.manifests, tag);
  if (tagged.empty())
    return fail(ErrorKind::kNotFound, fmt::format("there is no image with tag '{}'", printable(tag)),
                fmt::format("its tags: {}", list_tags(index.manifests)));
  DROVER_TRY(const auto found, for_machine(tagged, architecture));
  const bool ambiguous =
      tag.empty() && std::ranges::any_of(found, [&](const Descriptor& other) {
        return other.digest != found.front().digest &&
               annotation(other, kNameAnnotation) != annotation(found.front(), kNameAnnotation);
      });
  if (ambiguous)
    return fail(ErrorKind::kInvalid, "there are several images and none was named",
                fmt::format("add ':' and one of its tags: {}", list_tags(found)));
  return found.front();
}

/// Follows indexes of indexes down to a manifest.
Result<Descriptor> find_manifest(const ImageFiles& files, Descriptor chosen,
                                 const std::string& architecture) {
  for (int depth = 0; is_index(chosen.media_type); ++depth) {
    if (depth == kMaxIndexDepth)
      return fail(ErrorKind::kInvalid,
                  fmt::format("its indexes nest more than {} levels deep", kMaxIndexDepth));
    DROVER_TRY(const auto text, read_document(files, chosen, "its index"));
    DROVER_TRY(const auto index, parse_index(text, "its index"));
    if (index.manifests.empty()) return fail(ErrorKind::kInvalid, "its index lists no image");
    DROVER_TRY(const auto found, for_machine(index.manifests, architecture));
    chosen = found.front();
  }
  if (is_manifest(chosen.media_type)) return chosen;
  return fail(ErrorKind::kUnsupported,
              fmt::format("it is of type '{}', not a container image", printable(chosen.media_type)));
}

Result<Index> read_index(const ImageFiles& files) {
  DROVER_TRY(const auto version, files.read("oci-layout", kMaxDocument));
  DROVER_CHECK_OK(check_layout_version(version));
  DROVER_TRY(const auto text, files.read("index.json", kMaxDocument));
  return parse_index(text, "'index.json'");
}

Result<Descriptor> find_by_digest(const ImageFiles& files, const std::string& tag,
                                  const std::string& digest) {
  DROVER_TRY(const auto entries, layout_entries(files, tag));
  const auto found = std::ranges::find_if(entries, [&](const Descriptor& entry) {
    return entry.digest == digest && is_manifest(entry.media_type);
  });
  if (found != entries.end()) return *found;
  return fail(ErrorKind::kNotFound, fmt::format("there is no image with digest {}", printable(digest)));
}

Result<Descriptor> find_chosen(const ImageFiles& files, const std::string& tag,
                               const std::string& architecture) {
  DROVER_TRY(const auto index, read_index(files));
  DROVER_TRY(const auto chosen, choose_by_tag(index, tag, architecture));
  return find_manifest(files, chosen, architecture);
}

Result<Contents> read_manifest(const ImageFiles& files, const Descriptor& descriptor,
                               const std::string& architecture) {
  DROVER_TRY(const auto manifest_text, read_document(files, descriptor, "its manifest"));
  DROVER_TRY(const auto manifest, parse_manifest(manifest_text, "its manifest"));
  DROVER_TRY(const auto config_text, read_document(files, manifest.config, "its configuration"));
  DROVER_TRY(auto document, parse_config(config_text, "its configuration"));
  DROVER_CHECK_OK(check_config(document, manifest.layers.size(), architecture));

  Contents contents{descriptor.digest, std::move(document.config), {}, descriptor.media_type, manifest_text,
                    config_text};
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    const auto& layer = manifest.layers[i].digest;
    contents.layers.push_back({blob_name(layer), document.diff_ids[i], layer});
  }
  return contents;
}

}  // namespace

std::string blob_name(const std::string& digest) {
  return "blobs/sha256/" + digest.substr(digest.find(':') + 1);
}

Result<std::string> read_document(const ImageFiles& files, const Descriptor& descriptor,
                                  std::string_view what) {
  DROVER_TRY(auto text, files.read(blob_name(descriptor.digest), kMaxDocument));
  const auto found = sha256_of(text);
  if (text.size() == descriptor.size && found == descriptor.digest) return text;
  return fail(ErrorKind::kInvalid,
              fmt::format("{} is damaged: it should have {} bytes and digest {}, and has {} and {}", what,
                          descriptor.size, descriptor.digest, text.size(), found),
              "copy the image again");
}

Result<std::vector<Descriptor>> layout_entries(const ImageFiles& files, const std::string& tag) {
  DROVER_TRY(const auto index, read_index(files));
  auto entries = tag.empty() ? index.manifests : with_tag(index.manifests, tag);
  if (tag.empty() && !entries.empty()) {
    const auto name = annotation(entries.front(), kNameAnnotation);
    if (!std::ranges::all_of(entries,
                             [&](const auto& entry) { return annotation(entry, kNameAnnotation) == name; }))
      return std::vector<Descriptor>{};
  }
  for (int depth = 0;
       std::ranges::any_of(entries, [](const auto& entry) { return is_index(entry.media_type); }); ++depth) {
    if (depth == kMaxIndexDepth)
      return fail(ErrorKind::kInvalid,
                  fmt::format("its indexes nest more than {} levels deep", kMaxIndexDepth));
    std::vector<Descriptor> unfolded;
    for (const auto& entry : entries) {
      if (!is_index(entry.media_type)) {
        unfolded.push_back(entry);
        continue;
      }
      DROVER_TRY(const auto text, read_document(files, entry, "its index"));
      DROVER_TRY(auto inner, parse_index(text, "its index"));
      std::ranges::move(inner.manifests, std::back_inserter(unfolded));
      if (unfolded.size() > kMostEntries)
        return fail(ErrorKind::kInvalid, fmt::format("its indexes list more than {} images", kMostEntries));
    }
    entries = std::move(unfolded);
  }
  return entries;
}

Result<Contents> read_layout(const ImageFiles& files, const std::string& tag, const std::string& architecture,
                             const std::string& digest) {
  DROVER_TRY(const auto descriptor,
             digest.empty() ? find_chosen(files, tag, architecture) : find_by_digest(files, tag, digest));
  return read_manifest(files, descriptor, architecture);
}

Result<Contents> read_image(const ImageFiles& files, const Descriptor& image,
                            const std::string& architecture) {
  DROVER_TRY(const auto descriptor, find_manifest(files, image, architecture));
  return read_manifest(files, descriptor, architecture);
}

}  // namespace drover::image
