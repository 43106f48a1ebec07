#pragma once

// The image store of this machine: unpacked layers, shared by all tasks, and images pulled from registries,
// under one folder that only root enters. A layer is unpacked beside its place and renamed into it, so a
// crash leaves no half layer. Thread safe: two tasks that need the same layer wait for one unpacking. Blocks.

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/pull_policy.h"
#include "base/result.h"
#include "base/users.h"
#include "image/contents.h"
#include "image/image.h"
#include "image/pulled/catalog.h"
#include "image/pulled/progress.h"
#include "image/pulled/prune.h"
#include "image/pulled/puller.h"
#include "image/variants.h"

namespace drover::image {

/// An image and what it consists of.
struct ImageDetails {
  NamedImage image;
  Contents contents;
};

struct StoreOptions {
  /// The folder in which images lie under the names that registries give them; "" for none.
  std::string named = {};
  /// Registries that are spoken to without TLS, as "HOST" or "HOST:PORT", besides those of this machine.
  std::set<std::string> plain_registries = {};
  std::vector<std::string> certificates = {};  ///< folders, as in registry/certificates.h
  PullLimits pulling = {};
  LayersInUse layers_in_use = {};  ///< asked when something is to be removed
};

struct PrepareOptions {
  PullPolicy pull = PullPolicy::kMissing;
  std::function<void(const std::string&)> progress = {};  ///< hears a sentence per step, from any thread
  std::stop_token stop = {};                              ///< ends a pull
  VariantChooser choose = {};                             ///< asked for names that stand for several images
};

/// How far variants() looks.
struct LookupOptions {
  bool ask_registries = false;   ///< about names that are not here; else they are taken for single images
  bool newest = false;           ///< asks them about names that are here, too
  bool registries_only = false;  ///< a name means what registries have, not the folder of named images
  std::stop_token stop = {};     ///< ends asking
};

/// Store::variants, for those who know no store.
using VariantLookup = std::function<Result<std::vector<Variant>>(
    const std::string& reference, const User& reader, const LookupOptions& options)>;

class Store {
 public:
  /// `folder` is created when absent; leftovers of a crash are removed.
  static Result<Store> open(const std::string& folder, StoreOptions options = {});
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// The images that a reference stands for (variants.h), which prepare() takes by their own references;
  /// empty for the usual single one. Errors as those of prepare().
  Result<std::vector<Variant>> variants(const std::string& reference, const User& reader,
                                        const LookupOptions& options = {}) const;

  /// Makes an image ready. References: "oci:/layout[:tag]", "docker-archive:/file.tar[:name:tag]",
  /// "rootfs:/folder", a bare path whose kind is looked up, or a name as registries have it: it is looked up
  /// in the folder of named images, then among what was pulled, then in its registry. Files are read with the
  /// rights of `reader`, and registries asked with his credentials: nobody reads through the daemon what he
  /// could not read himself. What he is given stays as long as the Image's lease lives. Where the reference
  /// stands for several images, options.choose takes one; only that one is brought.
  Result<Image> prepare(const std::string& reference, const User& reader, const PrepareOptions& options = {});

  /// Asks the registry for the image, and brings and unpacks what is not here yet. Where the name stands for
  /// several images, it becomes that of their index, and none of them is brought.
  Result<NamedImage> pull(const std::string& name, const User& user, const PullListener& listener,
                          const std::stop_token& stop);
  /// Takes an image that lies in files ("oci:…", "oci-archive:…", "docker-archive:…") in under a name. It is
  /// for this user only, unless he is root.
  Result<NamedImage> load(const std::string& reference, const std::string& name, const User& user,
                          const PullListener& listener, const std::stop_token& stop);

  /// What this user may use, or root may see; by name.
  std::vector<NamedImage> list(uid_t uid) const;
  Result<ImageDetails> inspect(const std::string& name, uid_t uid) const;
  /// Takes the name away. What it led to stays until prune(), and as long as a task uses it.
  Result<NamedImage> remove(const std::string& name, uid_t uid);
  /// Removes what no name and no task uses; with `names`, also names that no task uses, as far as this user
  /// may remove them.
  Result<Pruned> prune(uid_t uid, bool names);
  /// For a disk with too little room: the longest unused first, without asking anybody (pulled/prune.h).
  Result<Pruned> make_room(const RoomRequest& request);

 private:
  struct Parts;
  explicit Store(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace drover::image
