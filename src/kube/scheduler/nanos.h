#pragma once

// Kubernetes' quantities with all their digits, in billionths: what is added up and compared before it is
// rounded. Pure.

#include <string_view>

#include "base/result.h"

namespace drover::kube::scheduler {

__extension__ using Nanos = __int128;

/// What is smaller than a billionth is rounded up, and what is 2^63 and more is taken for 2^63 - 1. kInvalid
/// for what is no quantity, or negative.
Result<Nanos> parse_nanos(std::string_view text);

}  // namespace drover::kube::scheduler
