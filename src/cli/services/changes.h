#pragma once

// What a definition would change, in words. Both sides are brought into the form in which the daemon shows
// things, so that a default that is written out is no change. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/definitions/definition.h"

namespace drover::cli {

enum class ChangeKind { kNew, kChanged, kUnchanged, kRemoved };
/// "new", "changed", "unchanged", "removed".
std::string_view change_word(ChangeKind kind);

struct Change {
  std::string name;
  DefinitionKind what = DefinitionKind::kApp;  ///< the apps of a group are apps
  ChangeKind kind = ChangeKind::kNew;
  std::vector<std::string> words;  ///< "image a → b", "instances 1 → 3"
  nlohmann::json wanted;           ///< as the daemon would show it; null for kRemoved
};

/// "/web: image a → b, instances 1 → 3".
std::string sentence(const Change& change);

/// How `now` differs from `before`, field by field: "mem 128 → 256". Values of the environment are not told.
/// Fields that only answers have (tasks, versions …) do not count.
std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& now);

/// `existing` is the app as the API shows it; null when there is none. The definition has been checked.
Change change_of_app(const nlohmann::json& definition, const nlohmann::json& existing);
/// One change for each app in the group, now or then; none when nothing but the group itself is new.
/// `existing` is the group as the API shows it; null when there is none.
std::vector<Change> changes_of_group(const Definition& definition, const nlohmann::json& existing);
Change change_of_job(const Definition& definition, const nlohmann::json& existing, TimePoint now);
/// A task or a gang is new each time.
Change change_of_task(const Definition& definition);

/// Every app in a group of the API, at any depth.
std::vector<nlohmann::json> apps_within(const nlohmann::json& group);

}  // namespace drover::cli
