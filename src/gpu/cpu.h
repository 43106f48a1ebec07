#pragma once

// What programs may ask of a machine's CPUs (Q3). Pure.

#include <string>
#include <string_view>
#include <vector>

namespace drover::gpu {

/// From the text of /proc/cpuinfo: the micro-architecture levels of the x86-64 psABI that the first CPU
/// meets, "x86-64" to "x86-64-v4", then "avx2" and "avx512f" when it has them. None for other architectures.
std::vector<std::string> cpu_features(std::string_view cpuinfo);

}  // namespace drover::gpu
