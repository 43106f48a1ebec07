#pragma once

// The unpacked layers of this machine: one folder each, named by the hex digits of the layer's diff_id. A
// layer is unpacked in ".<hex>.partial/", made durable, and renamed into its place. Whoever works there holds
// a flock(2) on that folder: another thread or process that needs the layer waits, and what a crash left
// behind is known by its lock being free. Thread safe. Blocks.
//
// That a layer is there is no reason to give it to somebody: a digest is no secret. Whoever names a layer
// must bring it, and is believed only after the whole file was read and both its digests were right. Proofs
// remember that.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "image/contents.h"
#include "image/image_files.h"
#include "image/proofs.h"
#include "image/shared_sync.h"
#include "image/unpack.h"

namespace drover::image {

class Layers {
 public:
  /// Removes half-done layers that nobody works on, and what was being removed.
  static Result<Layers> open(Directory folder, Proofs proofs, const UnpackLimits& limits = {});

  /// Whether acquire() would have nothing to do but look.
  bool is_ready(const LayerFile& layer, const ImageFile& file) const;
  /// The path of the layer, unpacked first when it is not there. `file` is at its start and is used up.
  Result<std::string> acquire(const LayerFile& layer, const ImageFile& file) const;
  /// The path of a layer that is there. Whether somebody may have it is for the caller to know.
  std::optional<std::string> find(const std::string& diff_id) const;

  /// The diff_ids of all layers that are there.
  Result<std::vector<std::string>> list() const;
  /// Takes a layer out of sight; what it holds goes with clear_discarded().
  Status discard(const std::string& diff_id) const;
  /// Returns the bytes that became free. May take long.
  Result<std::uint64_t> clear_discarded() const;

 private:
  Layers(Directory folder, Proofs proofs, const UnpackLimits& limits)
      : folder_(std::move(folder)), proofs_(std::move(proofs)), limits_(limits) {}
  /// Reads the whole file and compares its digests, and nothing else.
  Status check(const LayerFile& layer, const ImageFile& file) const;
  Status add(const LayerFile& layer, const ImageFile& file, const std::string& hex) const;
  Result<Directory> lock_partial(const std::string& name) const;
  Status unpack(const LayerFile& layer, const ImageFile& file, const Directory& partial,
                const std::string& hex) const;

  Directory folder_;
  Proofs proofs_;
  UnpackLimits limits_;
  std::shared_ptr<SharedSync> sync_ = std::make_shared<SharedSync>();
};

}  // namespace drover::image
