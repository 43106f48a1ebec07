#include "image/pulled/prune.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

namespace drover::image {
namespace {

/// What may go at once.
struct Spare {
  TimePoint used;
  std::optional<NamedImage> image;
  std::string diff_id;  ///< of a layer without a name
};

/// Whether work names the image: by a name of its own, or as one that a name chooses of several.
bool is_named(const NamedImage& image, const std::set<NameOfUser>& names) {
  return std::ranges::any_of(names, [&](const NameOfUser& one) {
    const auto name = parse_registry_name(one.second);
    if (!name || !image.is_for(one.first)) return false;
    return *name == image.name ||
           (image.name.tag.empty() && name->whole_repository() == image.name.whole_repository());
  });
}

bool are_same(const NamedImage& one, const NamedImage& other) {
  return one.name == other.name && one.manifest.digest == other.manifest.digest &&
         one.everybody == other.everybody && one.users == other.users && one.pulled_at == other.pulled_at;
}

TimePoint time_of(const std::map<std::string, TimePoint>& times, const std::string& digest) {
  const auto found = times.find(digest);
  return found == times.end() ? TimePoint() : found->second;
}

}  // namespace

Result<Pruned> prune(const Stock& stock, const std::function<bool(const NamedImage&)>& may_remove) {
  DROVER_TRY(auto removal, Removal::begin(stock));
  DROVER_CHECK_OK(removal.take_names(may_remove));
  DROVER_CHECK_OK(removal.remove_loose());
  return removal.pruned();
}

Result<Pruned> make_room(const Stock& stock, const Uses& uses, const RoomRequest& request) {
  DROVER_TRY(auto removal, Removal::begin(stock));
  const auto times = uses.times();
  auto spared = uses.digests_of(request.named);
  const auto is_spare = [&](const std::string& digest, TimePoint used) {
    return used <= request.unused_since && !spared.contains(digest);
  };
  std::vector<Spare> spares;
  for (const auto& image : stock.catalog.list()) {
    const auto used = std::max(image.pulled_at, time_of(times, image.manifest.digest));
    if (image.from_registry && !image.has_variants() && is_spare(image.manifest.digest, used) &&
        !is_named(image, request.named))
      spares.push_back({used, image, ""});
  }
  DROVER_TRY(const auto loose, removal.loose_layers());
  for (const auto& diff_id : loose)
    if (const auto used = time_of(times, diff_id); is_spare(diff_id, used))
      spares.push_back({used, std::nullopt, diff_id});
  std::ranges::sort(spares, {}, [](const Spare& spare) {
    return std::tuple(spare.used, spare.diff_id, spare.image ? spare.image->name.canonical() : "");
  });
  spared.insert(loose.begin(), loose.end());
  for (const auto& [digest, used] : times)
    if (used > request.unused_since) spared.insert(digest);

  DROVER_CHECK_OK(removal.remove_loose(spared));
  for (const auto& spare : spares) {
    if (removal.pruned().bytes >= request.bytes) break;
    spared.erase(spare.diff_id);
    if (spare.image)
      DROVER_CHECK_OK(
          removal.take_names([&](const NamedImage& image) { return are_same(image, *spare.image); }));
    DROVER_CHECK_OK(removal.remove_loose(spared));
  }
  return removal.pruned();
}

}  // namespace drover::image
