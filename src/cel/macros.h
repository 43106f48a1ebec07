#pragma once

// Nodes of a tree, and what macros become. Pure.

#include <string>
#include <vector>

#include "base/result.h"
#include "cel/expression.h"

namespace drover::cel {

inline constexpr int kDeepest = 250;
Failure too_deep(std::size_t place);

Result<Node> made(Expression::Kind kind, std::size_t place, std::string name, std::vector<Node> arguments);
Node literal(std::size_t place, Value value);

/// The call itself when it is no macro.
Result<Node> expanded(Node call);

}  // namespace drover::cel
