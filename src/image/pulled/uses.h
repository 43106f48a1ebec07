#pragma once

// When each image was used last, by whom under which name, and what it consists of: by this it is decided
// what goes when the disk has too little room. A small file for each use, known by a digest of user and name,
// with the digests of the image's manifest and layers; its time is when. The oldest of very many is dropped.
// Thread safe. Blocks.

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/units.h"

namespace drover::image {

/// An image as one user names it.
using NameOfUser = std::pair<uid_t, std::string>;

class Uses {
 public:
  static constexpr std::size_t kMost = 5000;

  static Result<std::unique_ptr<Uses>> open(Directory folder);

  /// It is used now. What cannot be kept makes an image look older than it is: this never fails.
  void note(const NameOfUser& name, const std::vector<std::string>& digests);
  /// What these were made of when they were used last.
  std::set<std::string> digests_of(const std::set<NameOfUser>& names) const;
  /// When each was last part of something that was used.
  std::map<std::string, TimePoint> times() const;

 private:
  struct Use {
    TimePoint at;
    std::vector<std::string> digests;
  };
  explicit Uses(Directory folder) : folder_(std::move(folder)) {}
  Status read_all_uses();

  Directory folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Use> uses_;  ///< by the name of the file
};

}  // namespace drover::image
