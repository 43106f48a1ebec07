#pragma once

// The names of the images that were pulled: the file index.json of the layout that their blobs are in, so
// that other tools find them too (`skopeo inspect oci:…/pulled:NAME`). It is replaced whole, durably.
//
// A name means an image for everybody, or for some users only: what took credentials is for those who showed
// the registry theirs, and what came without TLS, where anybody could have answered, for who pulled it. One
// name may mean different images to different users; their own goes first. Nobody else's counts, not even for
// root: names must not be handed to him. Thread safe.

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/units.h"
#include "image/document.h"
#include "image/registry/name.h"

namespace drover::image {

struct NamedImage {
  RegistryName name;
  Descriptor manifest;      ///< of this machine's platform, or an index of variants; without annotations
  std::uint64_t bytes = 0;  ///< of all its blobs
  TimePoint pulled_at{};
  bool from_registry = false;  ///< which can give it again
  bool everybody = false;
  std::set<uid_t> users;  ///< who pulled it; the only ones that it is for unless it is for everybody

  /// It stands for several images (variants.h), which have names of their own once they are here.
  bool has_variants() const { return is_index(manifest.media_type); }
  bool is_for(uid_t uid) const { return everybody || users.contains(uid); }
};

class Catalog {
 public:
  /// kCorrupt, and what to do, when the file is damaged. Nobody else may have it open.
  static Result<std::unique_ptr<Catalog>> open(const Directory& layout);

  /// What the name means to this user.
  std::optional<NamedImage> find(const RegistryName& name, uid_t uid) const;
  /// What is said of a name that means nothing to somebody.
  static Failure not_there(const RegistryName& name);
  /// An image of this repository with this manifest, for which `suits` holds.
  template <typename Function>
  std::optional<NamedImage> find_manifest(const RegistryName& name, const std::string& digest,
                                          const Function& suits) const {
    for (const auto& image : list())
      if (image.manifest.digest == digest && image.name.whole_repository() == name.whole_repository() &&
          suits(image))
        return image;
    return std::nullopt;
  }
  /// Sorted by name.
  std::vector<NamedImage> list() const;

  /// The name means this image from now on: to everybody, or to the users of `image`; to these in any case.
  Status put(NamedImage image);
  /// The name means nothing to this user any more; returns what it meant. What is for everybody goes if he
  /// alone has pulled it, or is root.
  Result<NamedImage> remove(const RegistryName& name, uid_t uid);
  /// All names for which `unwanted` holds; returns them.
  template <typename Function>
  Result<std::vector<NamedImage>> remove_all(const Function& unwanted) {
    const std::lock_guard lock(mutex_);
    std::vector<NamedImage> kept;
    std::vector<NamedImage> gone;
    for (const auto& image : images_) (unwanted(image) ? gone : kept).push_back(image);
    DROVER_CHECK_OK(replace(std::move(kept)));
    return gone;
  }

 private:
  Catalog(Directory layout, std::vector<NamedImage> images)
      : layout_(std::move(layout)), images_(std::move(images)) {}
  Status replace(std::vector<NamedImage> images);

  Directory layout_;
  mutable std::mutex mutex_;
  std::vector<NamedImage> images_;
};

}  // namespace drover::image
