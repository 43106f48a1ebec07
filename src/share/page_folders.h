#pragma once

// Folders of pages (pages.h) by the names of those whose shares they are of. Each is whole or absent, and
// durable when it is there; kill -9 at any moment leaves at most what remove_unfinished() removes. Blocks.
// Not thread safe.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "share/pages.h"

namespace drover::share {

class PageFolders {
 public:
  /// `folder` is made when something is written. Whoever passes names has looked at them: they are parts of
  /// paths.
  explicit PageFolders(std::string folder) : folder_(std::move(folder)) {}

  /// What somebody who was killed had begun to make. For the one that takes his place.
  Status remove_unfinished() const;
  /// Makes the pages unless they are there: containers that run have them, and never see others.
  Status keep(const std::string& name, const std::vector<Limit>& limits) const;
  /// Those that are not there are fine.
  Status remove(const std::string& name) const;
  /// Whose pages are there.
  Result<std::set<std::string>> list() const;
  /// What has them.
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

}  // namespace drover::share
