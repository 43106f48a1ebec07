#pragma once

// A folder that may not be there yet, by an ordinary, trusted path.

#include <optional>
#include <string>
#include <utility>

#include "base/files.h"

namespace drover {

/// nullopt when there is none.
inline Result<std::optional<Directory>> find_directory(const std::string& path) {
  auto folder = Directory::open(path);
  if (folder) return std::optional(std::move(*folder));
  if (folder.error().kind == ErrorKind::kNotFound) return std::nullopt;
  return Failure(std::move(folder).error());
}

}  // namespace drover
