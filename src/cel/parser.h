#pragma once

// From text to a tree: precedence and macros. Pure.

#include <string_view>

#include "base/result.h"
#include "cel/expression.h"

namespace drover::cel {

/// kInvalid for what is no CEL, kUnsupported for messages of protocol buffers, and for what is nested deeper
/// than a tree may be high.
Result<Node> parse(std::string_view text);

}  // namespace drover::cel
