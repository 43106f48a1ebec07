#pragma once

// Removes what nobody needs any more: blobs that no name leads to, layers that no name and no task uses, and
// what interrupted pulls have left. What is being used or made ready right now is leased, and stays.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/layers.h"
#include "image/pulled/blobs.h"
#include "image/pulled/catalog.h"
#include "image/pulled/leases.h"

namespace drover::image {

struct Pruned {
  std::vector<std::string> names;  ///< as people write them
  std::size_t blobs = 0;
  std::size_t layers = 0;
  std::uint64_t bytes = 0;  ///< that became free
};

/// Who uses what: the paths of the layers of each task.
using LayersInUse = std::function<Result<std::vector<std::vector<std::string>>>()>;

/// `may_remove` says which names may go, when no task uses them. Blocks; may take long.
Result<Pruned> prune(const Blobs& blobs, Catalog& catalog, const Leases& leases, const Layers& layers,
                     const LayersInUse& in_use, const std::function<bool(const NamedImage&)>& may_remove);

}  // namespace drover::image
