#include "gpu/cpu.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

namespace drover::gpu {
namespace {

/// The flags of the first CPU.
std::set<std::string> flags_of(std::string_view cpuinfo) {
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(std::min(line.size(), line.find(':') + 1)));
    std::set<std::string> flags;
    for (std::string word; words >> word;) flags.insert(word);
    return flags;
  }
  return {};
}

struct Level {
  const char* name;
  std::vector<const char*> flags;  ///< in the kernel's words, on top of those of the level below
};

/// psABI x86-64, table "Micro-Architecture Levels". The kernel writes pni for SSE3 and abm for LZCNT.
const std::array<Level, 4>& levels() {
  static const std::array<Level, 4> all{
      {{"x86-64", {"cmov", "cx8", "fpu", "fxsr", "mmx", "syscall", "sse", "sse2", "lm"}},
       {"x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}},
       {"x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}},
       {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}}};
  return all;
}

}  // namespace

std::vector<std::string> cpu_features(std::string_view cpuinfo) {
  const auto flags = flags_of(cpuinfo);
  std::vector<std::string> features;
  for (const auto& level : levels()) {
    if (!std::ranges::all_of(level.flags, [&](const char* flag) { return flags.contains(flag); })) break;
    features.emplace_back(level.name);
  }
  for (const char* flag : {"avx2", "avx512f"})
    if (flags.contains(flag)) features.emplace_back(flag);
  return features;
}

}  // namespace drover::gpu
