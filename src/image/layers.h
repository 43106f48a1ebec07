#pragma once

// The unpacked layers of this machine: one folder each, named by the hex digits of the layer's diff_id. A
// layer is unpacked in ".<hex>.partial/" and renamed into its place; it is made durable soon afterwards, and
// thrown away when the machine goes down before that (late_sync.h). Whoever works in a partial folder holds a
// flock(2) on it: another thread or process that needs the layer waits, and what a crash left behind is known
// by its lock being free. Thread safe. Blocks.
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
#include "image/allowance.h"
#include "image/contents.h"
#include "image/image_files.h"
#include "image/late_sync.h"
#include "image/proofs.h"

namespace drover::image {

class Layers {
 public:
  /// Removes half-done layers that nobody works on, those that a machine that went down may have damaged, and
  /// what was being removed. `unsynced` is for the notes of late_sync.h.
  static Result<Layers> open(Directory folder, const Directory& unsynced, Proofs proofs);

  /// Whether acquire() would have nothing to do but look.
  bool is_ready(const LayerFile& layer, const ImageFile& file) const;
  /// The path of the layer, unpacked first when it is not there. `file` is at its start and is used up.
  Result<std::string> acquire(const LayerFile& layer, const ImageFile& file, Allowance& allowance) const;
  /// The path of a layer that is there. Whether somebody may have it is for the caller to know.
  std::optional<std::string> find(const std::string& diff_id) const;

  /// The diff_ids of all layers that are there.
  Result<std::vector<std::string>> list() const;
  /// Takes a layer out of sight; what it holds goes with clear_discarded().
  Status discard(const std::string& diff_id) const;
  /// Returns the bytes that became free. May take long.
  Result<std::uint64_t> clear_discarded() const;

 private:
  Layers(Directory folder, std::unique_ptr<LateSync> sync, Proofs proofs)
      : folder_(std::move(folder)), sync_(std::move(sync)), proofs_(std::move(proofs)) {}
  /// Reads the whole file and compares its digests, and nothing else.
  Status check(const LayerFile& layer, const ImageFile& file, Allowance& allowance) const;
  Status add(const LayerFile& layer, const ImageFile& file, const std::string& hex,
             Allowance& allowance) const;
  Result<Directory> lock_partial(const std::string& name) const;
  Status unpack(const LayerFile& layer, const ImageFile& file, const Directory& partial,
                const std::string& hex, Allowance& allowance) const;

  Directory folder_;
  std::unique_ptr<LateSync> sync_;
  Proofs proofs_;
};

}  // namespace drover::image
