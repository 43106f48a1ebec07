#pragma once

// What differs from one kind of definition to the next: whom to ask, and how to say what the answer says.
// Pure.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "objects/definition.h"

namespace drover::objects {

/// "App"
std::string_view kind_name(Kind kind);
/// What the object's status says of what the daemon shows, without conditions.
nlohmann::json shown_status(Kind kind, const nlohmann::json& shown, TimePoint now);
/// A phase in which a job has ended.
bool is_end(std::string_view phase);

}  // namespace drover::objects
