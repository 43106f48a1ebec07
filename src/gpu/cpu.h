#pragma once

// What programs may ask of a machine's CPUs: instruction sets, the levels of the x86-64 psABI, and
// micro-architectures by what they have. A CPU is "at least broadwell" when it has everything that a program
// compiled for broadwell may use, whoever made it: so also when a hypervisor shows less than there is. Pure,
// but for this_cpu().

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::gpu {

/// Instruction sets in the kernel's words: "sse4_2", "avx2", "avx512f".
using CpuFeatures = std::set<std::string, std::less<>>;

/// Of the CPU that this runs on: asked by the instruction cpuid, and of them only what the kernel lets
/// programs use; by AT_HWCAP on AArch64 and AT_PLATFORM on POWER. Empty for other architectures.
CpuFeatures this_cpu();

/// A name that stands for instruction sets.
struct CpuName {
  std::string name;       ///< "x86-64-v3", "skylake-avx512"
  CpuFeatures features;   ///< all of them
  int level = 0;          ///< the level of the psABI that they include: 1 … 4; 0 for other architectures
  bool is_level = false;  ///< it is that level and nothing more
};

/// What `text` asks for: a level, a micro-architecture, a single feature, or several of them joined by '+'
/// ("x86-64-v3+aes"). Underscores are read as dashes in names ("x86_64_v3", "skylake_avx512"). kInvalid for
/// an unknown name.
Result<CpuName> parse_cpu(std::string_view text);

/// Levels first, then micro-architectures from old to new: those that a CPU with these features is at least.
std::vector<std::string> cpu_names(const CpuFeatures& features);

/// The micro-architecture, or else the level, that says most of such a CPU; "" when none does.
std::string describe_cpu(const CpuFeatures& features);

}  // namespace drover::gpu
