#pragma once

// A CDI specification in a file, kept up to date. Tells in the log what it does; a trouble that stays is told
// once. Not thread safe.

#include <string>

#include "base/result.h"
#include "cdi/specification.h"

namespace drover {

class CdiFile {
 public:
  /// The name's ending tells the format.
  explicit CdiFile(std::string path) : path_(std::move(path)) {}

  /// Writes the file when it should say something else. Without a specification it stays: GPUs may come back.
  void keep(const Result<cdi::Specification>& specification);

 private:
  Status write(const cdi::Specification& specification) const;

  std::string path_;
  std::string trouble_;  ///< told last
};

}  // namespace drover
