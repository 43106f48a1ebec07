#pragma once

// What of the images goes: all that nobody needs, when somebody says so; or what was longest not used, when
// the disk has too little room. Blocks; may take long.

#include <cstdint>
#include <functional>
#include <set>

#include "base/result.h"
#include "base/units.h"
#include "image/pulled/removal.h"
#include "image/pulled/uses.h"

namespace drover::image {

/// Blobs that no name leads to, layers that no name and no task uses, and what interrupted pulls have left.
/// `may_remove` says which names may go before, when no task uses them.
Result<Pruned> prune(const Stock& stock, const std::function<bool(const NamedImage&)>& may_remove);

struct RoomRequest {
  std::uint64_t bytes = 0;     ///< to free; no more goes than is needed for it
  std::set<NameOfUser> named;  ///< by work that there is: what these mean stays
  TimePoint unused_since{};    ///< what was used later stays
};

/// What interrupted pulls have left, and then, the longest unused first, images whose registry can give them
/// again and layers of files that users have. What somebody has loaded under a name stays.
Result<Pruned> make_room(const Stock& stock, const Uses& uses, const RoomRequest& request);

}  // namespace drover::image
