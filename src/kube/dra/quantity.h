#pragma once

// Kubernetes' quantities ("80Gi", "500", "1k"), as far as whole numbers go:
// k8s.io/apimachinery/pkg/api/resource. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::kube::dra {

/// The value, fractions rounded up as Kubernetes does. kInvalid for what is no quantity, negative, or 2^63
/// and more.
Result<std::int64_t> parse_quantity(std::string_view text);

/// In the form that the API server gives back: bytes with a suffix of powers of 1024, counts with one of
/// 1000.
std::string bytes_quantity(std::uint64_t bytes);
std::string count_quantity(std::uint64_t count);

}  // namespace drover::kube::dra
