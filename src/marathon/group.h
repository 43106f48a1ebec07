#pragma once

// Groups of apps as Marathon's wire has them: apps and further groups, with ids and dependencies seen from
// the group that they stand in. Pure.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "marathon/app.h"

namespace drover::marathon {

inline constexpr std::size_t kMostAppsOfAGroup = 5'000;
inline constexpr std::size_t kDeepestGroup = 32;

/// What there is already within a group.
struct GroupContents {
  std::map<std::string, const workload::Service*> apps;    ///< by id
  std::map<std::string, std::vector<std::string>> groups;  ///< by id: absolute paths that it depends on
};

/// What a group is to be: what there was within it and is not named here, goes.
struct GroupChange {
  std::string id;
  std::vector<App> apps;                                   ///< defined anew, in the order of the document
  std::set<std::string> kept;                              ///< apps that stay as they are
  std::map<std::string, std::vector<std::string>> groups;  ///< itself and all within: what each depends on
};

/// A definition of the group `id` (absolute), or a change to it: a list of apps, groups or dependencies that
/// is left out stays as it was, one that is given stands in place of the old one.
Decoded<GroupChange> decode_group(const std::string& id, const nlohmann::json& body,
                                  const GroupContents& existing, const Options& options);

}  // namespace drover::marathon
