#include "placement/parts.h"

#include <algorithm>
#include <tuple>

namespace drover::placement {
namespace {

/// By profile, the largest first: how many more of it fit.
using Rooms = std::vector<int>;

/// Names of all profiles, the largest first.
std::vector<std::string> by_size(const std::vector<CutGpu>& gpus) {
  std::vector<const gpu::MigProfile*> profiles;
  for (const auto& gpu : gpus)
    for (const auto& profile : gpu.facts->profiles) profiles.push_back(&profile);
  std::ranges::sort(profiles, {}, [](const gpu::MigProfile* profile) {
    return std::tuple(~profile->slices, ~profile->attributes.memory_bytes, profile->name);
  });
  std::vector<std::string> names;
  for (const auto* profile : profiles)
    if (std::ranges::find(names, profile->name) == names.end()) names.push_back(profile->name);
  return names;
}

Rooms rooms_of(const CutGpu& gpu, const std::vector<std::string>& names) {
  Rooms rooms;
  for (const auto& name : names) {
    const auto* profile = gpu.facts->profile(name);
    rooms.push_back(profile == nullptr ? 0 : room_for(gpu, *profile));
  }
  return rooms;
}

/// Some instances, and the room that they leave.
struct Way {
  Rooms rooms;
  std::vector<ChosenPart> parts;
};

/// The first of equals stays.
void keep_better(std::optional<Way>& best, Way way) {
  if (!best || way.rooms > best->rooms) best = std::move(way);
}

/// The best ways to put instances of a profile onto one GPU: [n] of n.
class WaysOnGpu {
 public:
  WaysOnGpu(std::size_t position, CutGpu gpu, const std::vector<std::string>& names, const std::string& name)
      : position_(position), gpu_(std::move(gpu)), names_(names), profile_(gpu_.facts->profile(name)) {
    if (profile_ != nullptr) places_ = profile_->placements;
    std::ranges::sort(places_);
    grow(0);
  }
  std::vector<std::optional<Way>> take() { return std::move(ways_); }

 private:
  void grow(std::size_t from) {
    if (ways_.size() <= chosen_.size()) ways_.resize(chosen_.size() + 1);
    keep_better(ways_[chosen_.size()], {rooms_of(gpu_, names_), chosen_});
    for (auto next = from; next < places_.size(); ++next) {
      const Instance instance{profile_->id, places_[next]};
      if (!fits(gpu_, instance)) continue;
      gpu_.taken.push_back(instance);
      chosen_.push_back({position_, instance});
      grow(next + 1);
      chosen_.pop_back();
      gpu_.taken.pop_back();
    }
  }

  std::size_t position_;
  CutGpu gpu_;
  const std::vector<std::string>& names_;
  const gpu::MigProfile* profile_;
  std::vector<gpu::MigPlacement> places_;
  std::vector<ChosenPart> chosen_;
  std::vector<std::optional<Way>> ways_;
};

Way both(const Way& first, const Way& second) {
  Way sum = first;
  for (std::size_t i = 0; i < sum.rooms.size(); ++i) sum.rooms[i] += second.rooms[i];
  sum.parts.insert(sum.parts.end(), second.parts.begin(), second.parts.end());
  return sum;
}

}  // namespace

bool fits(const CutGpu& gpu, const Instance& instance) {
  const auto* profile = gpu.facts->profile(instance.profile_id);
  if (profile == nullptr) return false;
  if (std::ranges::find(profile->placements, instance.placement) == profile->placements.end()) return false;
  const auto alike = std::ranges::count(gpu.taken, instance.profile_id, &Instance::profile_id);
  return static_cast<std::size_t>(alike) < profile->instances &&
         std::ranges::none_of(
             gpu.taken, [&](const Instance& taken) { return taken.placement.overlaps(instance.placement); });
}

/// All places of a profile are of one size, so taking the lowest that is free, again and again, gives the
/// most.
int room_for(const CutGpu& gpu, const gpu::MigProfile& profile) {
  auto places = profile.placements;
  std::ranges::sort(places);
  auto filled = gpu;
  for (const auto& place : places)
    if (const Instance instance{profile.id, place}; fits(filled, instance)) filled.taken.push_back(instance);
  return static_cast<int>(filled.taken.size() - gpu.taken.size());
}

/// Rooms of several GPUs add up, and the order of sums is that of their parts: so the best of all is made of
/// the best for each number on each GPU.
std::optional<std::vector<ChosenPart>> choose_parts(const std::vector<CutGpu>& gpus,
                                                    const std::string& profile, int count) {
  const auto names = by_size(gpus);
  const auto wanted = static_cast<std::size_t>(std::max(count, 0));
  std::vector<std::optional<Way>> best(wanted + 1);  // [n]: of n instances, on the GPUs that were looked at
  best[0] = Way{Rooms(names.size()), {}};
  for (auto position = gpus.size(); position-- > 0;) {
    const auto ways = WaysOnGpu(position, gpus[position], names, profile).take();
    std::vector<std::optional<Way>> next(wanted + 1);
    for (std::size_t all = 0; all <= wanted; ++all)
      for (auto here = std::min(ways.size() - 1, all) + 1; here-- > 0;)  // of equals, the most on the lowest
        if (ways[here] && best[all - here]) keep_better(next[all], both(*ways[here], *best[all - here]));
    best = std::move(next);
  }
  if (!best[wanted]) return std::nullopt;
  return std::move(best[wanted]->parts);
}

}  // namespace drover::placement
