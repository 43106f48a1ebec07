#pragma once

// The unpacked layers of this machine: one folder each, named by the hex digits of the layer's diff_id. A
// layer is unpacked in ".<hex>.partial/", made durable, and renamed into its place. Whoever works there holds
// a flock(2) on that folder: another thread or process that needs the layer waits, and what a crash left
// behind is known by its lock being free. Thread safe. Blocks.
//
// That a layer is there is no reason to give it to somebody: a digest is no secret. Whoever names a layer
// must bring it, and is believed only after the whole file was read and both its digests were right. That is
// remembered by the identity of the file, for as long as this object lives.

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "base/files.h"
#include "base/result.h"
#include "image/contents.h"
#include "image/image_files.h"
#include "image/unpack.h"

namespace drover::image {

class Layers {
 public:
  /// Removes half-done layers that nobody works on.
  static Result<std::unique_ptr<Layers>> open(Directory folder, UnpackLimits limits);

  /// Whether acquire() would have nothing to do but look.
  bool is_ready(const LayerFile& layer, const ImageFile& file) const;
  /// The path of the layer, unpacked first when it is not there. `file` is at its start and is used up.
  Result<std::string> acquire(const LayerFile& layer, const ImageFile& file);

 private:
  Layers(Directory folder, UnpackLimits limits) : folder_(std::move(folder)), limits_(limits) {}
  /// Reads the whole file and compares its digests, and nothing else.
  Status check(const LayerFile& layer, const ImageFile& file) const;
  Status add(const LayerFile& layer, const ImageFile& file, const std::string& hex);
  Result<Directory> lock_partial(const std::string& name);
  Status unpack(const LayerFile& layer, const ImageFile& file, const Directory& partial,
                const std::string& hex);
  void remember(const LayerFile& layer, const ImageFile& file);

  Directory folder_;
  UnpackLimits limits_;
  mutable std::mutex mutex_;
  std::unordered_set<std::string> proven_;  ///< guarded by mutex_: file identity, digest and diff_id
};

}  // namespace drover::image
