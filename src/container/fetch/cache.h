#pragma once

// What one user has fetched before, by URI: a folder of that user's own that nobody else can enter. Bounded:
// what was used longest ago goes first. Several processes may use it at once.

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "container/fetch/download.h"

namespace drover::container {

class FetchCache {
 public:
  /// `folder` is a directory descriptor that outlives it.
  FetchCache(int folder, std::uint64_t limit) : folder_(folder), limit_(limit) {}

  struct Entry {
    UniqueFd file;
    Validators validators;
  };
  std::optional<Entry> find(const std::string& uri) const;
  /// Keeps a copy of what `file` holds. What is too large, or cannot be kept, is not: the cache is no duty.
  void add(const std::string& uri, int file, const Validators& validators) const;

 private:
  void make_room(std::uint64_t bytes) const;

  int folder_;
  std::uint64_t limit_;
};

/// All of one file into another, from their starts. The kernel copies where it can.
Status copy_content(int from, int to);

}  // namespace drover::container
