#pragma once

// What can be calculated before any device is known. Kubernetes does so too, and refuses what fails. Pure.

#include "base/result.h"
#include "cel/expression.h"

namespace drover::cel {

Status calculate_constants(Expression& node);

}  // namespace drover::cel
