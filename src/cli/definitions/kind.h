#pragma once

// What a definition is: it says so itself with `kind`, or its fields tell. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "cli/definitions/document.h"

namespace drover::cli {

enum class DefinitionKind { kApp, kGroup, kJob, kDependentJob, kTask, kGang, kQueue, kQuota };

/// "app", "group", "job", "task", "gang", "queue", "quota".
std::string_view kind_word(DefinitionKind kind);
/// The name of its schema (schemas/schemas.h).
std::string_view schema_of(DefinitionKind kind);
/// A task or a gang: it is submitted, and nothing of its name is looked for first.
bool runs_once(DefinitionKind kind);
/// Of Drover's own format, not of Marathon's or Chronos': a field that nobody knows is a mistake there.
bool is_native(DefinitionKind kind);

/// Says what there is, for people who are told that something is none of it.
inline constexpr const char* kWhatThereIs =
    "an app has 'id' and 'cmd', 'args' or 'container'; a group has 'id' and 'apps' or 'groups'; a job has "
    "'name', 'command' and 'schedule' or 'parents'; a task has 'kind: task' and 'command'; a queue has "
    "'kind: "
    "queue' and 'queue'; a quota has 'kind: quota' and 'user' or 'namespace'";

/// Of an object. The mistake has no place yet.
tl::expected<DefinitionKind, Mistake> kind_of(const nlohmann::json& value);

}  // namespace drover::cli
