#pragma once

// What Kubernetes refuses before it runs a selector: types that do not go together, names that nobody
// declared, and constants that are wrong. Pure.

#include "base/result.h"
#include "cel/expression.h"

namespace drover::cel {

/// Fills in types and functions, and calculates what is constant. kUnsupported names a function that is not
/// known here.
Status check(Expression& root);

}  // namespace drover::cel
