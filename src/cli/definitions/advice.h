#pragma once

// A mistake that a decoder has found, in words for people who write files: Marathon's codes, units, words
// that can stand in a place. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "cli/definitions/document.h"

namespace drover::cli {

/// Puts the message into words, and adds a hint where it has none. `pointer` is where it is in `value`, which
/// is of that schema.
void put_in_words(Mistake& mistake, std::string_view schema, std::string_view pointer,
                  const nlohmann::json& value);

}  // namespace drover::cli
