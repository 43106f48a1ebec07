#pragma once

// Remembers which files were read through and found to be the layers that they were said to be, so that a
// start does not read them again. A file is known by its identity (device, inode, size, times), which means
// something until the machine boots: what is remembered lasts so long. Thread safe: an empty file a proof.

#include <memory>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace drover::image {

/// Another one each time that the machine boots.
Result<std::string> boot_id();

class Proofs {
 public:
  /// Keeps them below `folder`, and removes those of earlier boots.
  static Result<Proofs> open(const Directory& folder);

  bool contains(const std::string& key) const;
  /// A proof that cannot be kept is one to be made again: this never fails.
  void add(const std::string& key) const;

 private:
  explicit Proofs(Directory folder) : folder_(std::move(folder)) {}
  Directory folder_;
};

}  // namespace drover::image
