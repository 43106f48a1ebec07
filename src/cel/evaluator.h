#pragma once

// Calculates a checked tree. Pure.

#include <string_view>

#include "cel/expression.h"

namespace drover::cel {

/// `device` is what that name stands for. An error is a value.
Value evaluate(const Expression& root, const Value& device, Work& work);

}  // namespace drover::cel
