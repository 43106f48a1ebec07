#pragma once

// Reads CDI specifications, JSON or YAML, as container engines do: a field that nobody knows, a version that
// is too low for what is used, a name against the rules or a device that does nothing refuse the whole file.
// All mistakes of a file are told at once, with their paths. The files belong to the operator, but other
// programs write them: everything in them is checked and limited. Pure.

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "cdi/specification.h"

namespace drover::cdi {

inline constexpr std::uint64_t kMaxSpecificationBytes = 4ULL << 20;

/// `what` names the file in messages.
Result<Specification> decode_specification(std::string_view text, std::string_view what);

}  // namespace drover::cdi
