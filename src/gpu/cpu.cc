#include "gpu/cpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <sstream>

#include "base/decode.h"
#include "base/shorten.h"

namespace drover::gpu {
namespace {

struct Definition {
  const char* name;
  const char* parents;   ///< whose features it has too
  const char* features;  ///< on top of those
  int level;             ///< of the psABI; 0: that of its parents
};

// Levels: the x86-64 psABI, table "Micro-Architecture Levels". Micro-architectures: what GCC's -march of the
// same name lets a compiler use ("x86 Options" of the manual), as archspec tells them apart; what only
// kernels use is left out. Each stands behind its parents. The kernel writes pni for SSE3 and abm for LZCNT.
constexpr Definition kDefinitions[] = {
    {"x86-64", "", "cmov cx8 fpu fxsr mmx syscall sse sse2 lm", 1},
    {"x86-64-v2", "x86-64", "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3", 2},
    {"x86-64-v3", "x86-64-v2", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave", 3},
    {"x86-64-v4", "x86-64-v3", "avx512f avx512bw avx512cd avx512dq avx512vl", 4},
    {"nocona", "x86-64", "pni cx16", 0},
    {"core2", "nocona", "ssse3 lahf_lm", 0},
    {"nehalem", "core2 x86-64-v2", "", 0},
    {"westmere", "nehalem", "pclmulqdq", 0},
    {"sandybridge", "westmere", "aes avx xsave", 0},
    {"ivybridge", "sandybridge", "fsgsbase rdrand f16c", 0},
    {"haswell", "ivybridge x86-64-v3", "", 0},
    {"broadwell", "haswell", "adx rdseed 3dnowprefetch", 0},
    {"skylake", "broadwell", "clflushopt xsavec", 0},
    {"knl", "broadwell", "avx512f avx512cd avx512er avx512pf", 0},
    {"skylake-avx512", "skylake x86-64-v4", "clwb", 0},
    {"cascadelake", "skylake-avx512", "avx512_vnni", 0},
    {"cooperlake", "cascadelake", "avx512_bf16", 0},
    {"cannonlake", "skylake x86-64-v4", "avx512ifma avx512vbmi sha_ni", 0},
    {"icelake-client", "cannonlake",
     "avx512_vnni avx512_vbmi2 avx512_bitalg avx512_vpopcntdq gfni vaes vpclmulqdq rdpid", 0},
    {"icelake-server", "icelake-client cascadelake", "wbnoinvd", 0},
    {"sapphirerapids", "icelake-server cooperlake",
     "amx_tile amx_int8 amx_bf16 avx512_fp16 avx_vnni cldemote movdiri movdir64b serialize", 0},
    {"graniterapids", "sapphirerapids", "amx_fp16", 0},
    {"barcelona", "x86-64", "pni cx16 lahf_lm popcnt sse4a abm", 0},
    {"btver1", "barcelona", "ssse3", 0},
    {"bdver1", "btver1 x86-64-v2", "aes avx pclmulqdq xsave", 0},
    {"bdver2", "bdver1", "bmi1 f16c fma", 0},
    {"bdver3", "bdver2", "fsgsbase", 0},
    {"bdver4", "bdver3 x86-64-v3", "rdrand", 0},
    {"znver1", "x86-64-v3",
     "adx aes clflushopt clzero fsgsbase pclmulqdq rdrand rdseed sha_ni sse4a xsavec 3dnowprefetch", 0},
    {"znver2", "znver1", "clwb rdpid wbnoinvd", 0},
    {"znver3", "znver2", "vaes vpclmulqdq", 0},
    {"znver4", "znver3 x86-64-v4",
     "avx512ifma avx512vbmi avx512_bf16 avx512_bitalg avx512_vbmi2 avx512_vnni avx512_vpopcntdq gfni", 0},
    {"znver5", "znver4", "avx_vnni avx512_vp2intersect movdiri movdir64b", 0},
    {"armv8-a", "", "fp asimd", 0},
    {"armv8.1-a", "armv8-a", "atomics asimdrdm crc32", 0},
    {"armv8.2-a", "armv8.1-a", "dcpop", 0},
    {"neoverse-n1", "armv8.2-a", "aes sha1 sha2 pmull fphp asimdhp lrcpc asimddp", 0},
    {"neoverse-v1", "neoverse-n1", "sve bf16 i8mm", 0},
    {"neoverse-n2", "neoverse-n1", "sve sve2 bf16 i8mm", 0},
    {"neoverse-v2", "neoverse-n2 neoverse-v1", "svebitperm", 0},
    {"power8", "", "power8", 0},
    {"power9", "power8", "power9", 0},
    {"power10", "power9", "power10", 0},
};

// Names that people and distributions use for the same.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"x86-64-v1", "x86-64"}, {"amd64", "x86-64"}, {"v2", "x86-64-v2"},
    {"v3", "x86-64-v3"},     {"v4", "x86-64-v4"}, {"icelake", "icelake-server"},
    {"zen", "znver1"},       {"zen2", "znver2"},  {"zen3", "znver3"},
    {"zen4", "znver4"},      {"zen5", "znver5"},  {"skx", "skylake-avx512"},
    {"armv8", "armv8-a"}};

std::vector<std::string> words_of(const char* text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

const std::vector<CpuName>& definitions() {
  static const auto all = [] {
    std::vector<CpuName> made;
    for (const auto& definition : kDefinitions) {
      CpuName cpu{definition.name, {}, definition.level, definition.level > 0};
      for (const auto& parent : words_of(definition.parents)) {
        const auto& known = *std::ranges::find(made, parent, &CpuName::name);
        cpu.features.insert(known.features.begin(), known.features.end());
        cpu.level = std::max(cpu.level, known.level);
      }
      for (auto& feature : words_of(definition.features)) cpu.features.insert(std::move(feature));
      made.push_back(std::move(cpu));
    }
    return made;
  }();
  return all;
}

bool has_all(const CpuFeatures& features, const CpuFeatures& wanted) {
  return std::ranges::includes(features, wanted);
}

/// Lower case, and dashes where names have them; features keep their underscores.
std::string spelled(std::string_view text) {
  std::string name(text);
  for (auto& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' ? '-' : c;
  for (const auto& [other, meant] : kOtherNames)
    if (name == other) return meant;
  return name;
}

const std::set<std::string>& known_words() {
  static const auto all = [] {
    std::set<std::string> words;
    for (const auto& cpu : definitions()) {
      words.insert(cpu.name);
      words.insert(cpu.features.begin(), cpu.features.end());
    }
    return words;
  }();
  return all;
}

Failure unknown(std::string_view word) {
  const std::string shown = shortened(std::string(word), 64);
  const auto meant = nearest(shown, known_words());
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is no CPU that is known", shown),
              meant.empty()
                  ? "name a level (x86-64-v3), a micro-architecture (broadwell) or a feature (avx512f)"
                  : fmt::format("did you mean '{}'?", meant));
}

Result<CpuName> parse_word(std::string_view word) {
  const auto found = std::ranges::find(definitions(), spelled(word), &CpuName::name);
  if (found != definitions().end()) return *found;
  const std::string feature(word);
  for (const auto& cpu : definitions())
    if (cpu.features.contains(feature)) return CpuName{feature, {feature}, 0, true};
  return unknown(word);
}

/// The level that features include whole.
int level_of(const CpuFeatures& features) {
  int level = 0;
  for (const auto& cpu : definitions())
    if (cpu.is_level && has_all(features, cpu.features)) level = std::max(level, cpu.level);
  return level;
}

}  // namespace

Result<CpuName> parse_cpu(std::string_view text) {
  CpuName asked{std::string(text), {}, 0, true};
  for (const auto& part : std::views::split(text, '+')) {
    DROVER_TRY(const auto one, parse_word(std::string_view(part.begin(), part.end())));
    asked.features.insert(one.features.begin(), one.features.end());
    asked.is_level &= one.is_level;
  }
  if (asked.features.empty()) return unknown(text);
  asked.level = level_of(asked.features);
  return asked;
}

std::vector<std::string> cpu_names(const CpuFeatures& features) {
  std::vector<std::string> names;
  for (const auto& cpu : definitions())
    if (has_all(features, cpu.features)) names.push_back(cpu.name);
  return names;
}

std::string describe_cpu(const CpuFeatures& features) {
  const CpuName* best = nullptr;
  for (const auto& cpu : definitions())
    if (has_all(features, cpu.features) && (best == nullptr || cpu.features.size() >= best->features.size()))
      best = &cpu;
  return best == nullptr ? "" : best->name;
}

}  // namespace drover::gpu
