#include "gpu/cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <cstdint>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__powerpc64__)
#include <sys/auxv.h>
#endif

namespace drover::gpu {

#if defined(__x86_64__) || defined(__i386__)
namespace {

enum class Register : std::uint8_t { kA, kB, kC, kD };

/// What the kernel must save when it switches programs (XCR0), or they may not use it.
enum class Saved : std::uint8_t { kNothing, kAvx, kAvx512, kTiles };

struct CpuidBit {
  const char* name;
  std::uint32_t leaf;
  std::uint32_t subleaf;
  Register where;
  int bit;
  Saved saved = Saved::kNothing;
};

// Intel, "Software Developer's Manual", volume 2, CPUID; AMD, "AMD64 Architecture Programmer's Manual",
// volume 3, appendix E. Names are those of the kernel.
constexpr CpuidBit kBits[] = {
    {"fpu", 1, 0, Register::kD, 0},
    {"cx8", 1, 0, Register::kD, 8},
    {"cmov", 1, 0, Register::kD, 15},
    {"mmx", 1, 0, Register::kD, 23},
    {"fxsr", 1, 0, Register::kD, 24},
    {"sse", 1, 0, Register::kD, 25},
    {"sse2", 1, 0, Register::kD, 26},
    {"pni", 1, 0, Register::kC, 0},
    {"pclmulqdq", 1, 0, Register::kC, 1},
    {"ssse3", 1, 0, Register::kC, 9},
    {"fma", 1, 0, Register::kC, 12, Saved::kAvx},
    {"cx16", 1, 0, Register::kC, 13},
    {"sse4_1", 1, 0, Register::kC, 19},
    {"sse4_2", 1, 0, Register::kC, 20},
    {"movbe", 1, 0, Register::kC, 22},
    {"popcnt", 1, 0, Register::kC, 23},
    {"aes", 1, 0, Register::kC, 25},
    {"xsave", 1, 0, Register::kC, 27},  // OSXSAVE: the kernel has switched it on
    {"avx", 1, 0, Register::kC, 28, Saved::kAvx},
    {"f16c", 1, 0, Register::kC, 29, Saved::kAvx},
    {"rdrand", 1, 0, Register::kC, 30},
    {"fsgsbase", 7, 0, Register::kB, 0},
    {"bmi1", 7, 0, Register::kB, 3},
    {"avx2", 7, 0, Register::kB, 5, Saved::kAvx},
    {"bmi2", 7, 0, Register::kB, 8},
    {"avx512f", 7, 0, Register::kB, 16, Saved::kAvx512},
    {"avx512dq", 7, 0, Register::kB, 17, Saved::kAvx512},
    {"rdseed", 7, 0, Register::kB, 18},
    {"adx", 7, 0, Register::kB, 19},
    {"avx512ifma", 7, 0, Register::kB, 21, Saved::kAvx512},
    {"clflushopt", 7, 0, Register::kB, 23},
    {"clwb", 7, 0, Register::kB, 24},
    {"avx512pf", 7, 0, Register::kB, 26, Saved::kAvx512},
    {"avx512er", 7, 0, Register::kB, 27, Saved::kAvx512},
    {"avx512cd", 7, 0, Register::kB, 28, Saved::kAvx512},
    {"sha_ni", 7, 0, Register::kB, 29},
    {"avx512bw", 7, 0, Register::kB, 30, Saved::kAvx512},
    {"avx512vl", 7, 0, Register::kB, 31, Saved::kAvx512},
    {"avx512vbmi", 7, 0, Register::kC, 1, Saved::kAvx512},
    {"avx512_vbmi2", 7, 0, Register::kC, 6, Saved::kAvx512},
    {"gfni", 7, 0, Register::kC, 8},
    {"vaes", 7, 0, Register::kC, 9, Saved::kAvx},
    {"vpclmulqdq", 7, 0, Register::kC, 10, Saved::kAvx},
    {"avx512_vnni", 7, 0, Register::kC, 11, Saved::kAvx512},
    {"avx512_bitalg", 7, 0, Register::kC, 12, Saved::kAvx512},
    {"avx512_vpopcntdq", 7, 0, Register::kC, 14, Saved::kAvx512},
    {"rdpid", 7, 0, Register::kC, 22},
    {"cldemote", 7, 0, Register::kC, 25},
    {"movdiri", 7, 0, Register::kC, 27},
    {"movdir64b", 7, 0, Register::kC, 28},
    {"avx512_vp2intersect", 7, 0, Register::kD, 8, Saved::kAvx512},
    {"serialize", 7, 0, Register::kD, 14},
    {"amx_bf16", 7, 0, Register::kD, 22, Saved::kTiles},
    {"avx512_fp16", 7, 0, Register::kD, 23, Saved::kAvx512},
    {"amx_tile", 7, 0, Register::kD, 24, Saved::kTiles},
    {"amx_int8", 7, 0, Register::kD, 25, Saved::kTiles},
    {"avx_vnni", 7, 1, Register::kA, 4, Saved::kAvx},
    {"avx512_bf16", 7, 1, Register::kA, 5, Saved::kAvx512},
    {"amx_fp16", 7, 1, Register::kA, 21, Saved::kTiles},
    {"xsavec", 0xd, 1, Register::kA, 1},
    {"lahf_lm", 0x80000001, 0, Register::kC, 0},
    {"abm", 0x80000001, 0, Register::kC, 5},
    {"sse4a", 0x80000001, 0, Register::kC, 6},
    {"3dnowprefetch", 0x80000001, 0, Register::kC, 8},
    {"syscall", 0x80000001, 0, Register::kD, 11},
    {"lm", 0x80000001, 0, Register::kD, 29},
    {"clzero", 0x80000008, 0, Register::kB, 0},
    {"wbnoinvd", 0x80000008, 0, Register::kB, 9},
};

struct Registers {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;

  std::uint32_t at(Register which) const {
    switch (which) {
      case Register::kA:
        return a;
      case Register::kB:
        return b;
      case Register::kC:
        return c;
      default:
        return d;
    }
  }
};

/// Zeros where the CPU knows no such leaf, or no such part of it.
Registers ask(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers answer;
  if (subleaf > 0 && leaf == 7) {
    Registers parts;
    if (__get_cpuid_count(leaf, 0, &parts.a, &parts.b, &parts.c, &parts.d) == 0 || parts.a < subleaf)
      return {};
  }
  if (__get_cpuid_count(leaf, subleaf, &answer.a, &answer.b, &answer.c, &answer.d) == 0) return {};
  return answer;
}

/// XGETBV of register 0; 0 where the kernel has not switched XSAVE on.
std::uint64_t saved_state() {
  constexpr std::uint32_t kOsXsave = 1U << 27;
  if ((ask(1, 0).c & kOsXsave) == 0) return 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

bool saves(std::uint64_t state, Saved what) {
  constexpr std::uint64_t kVectors = 0x6;                  // SSE and AVX registers
  constexpr std::uint64_t kLongVectors = 0xe0 | kVectors;  // masks, and both halves of the AVX-512 registers
  constexpr std::uint64_t kTiles = 0x60000;
  const auto needed = what == Saved::kAvx      ? kVectors
                      : what == Saved::kAvx512 ? kLongVectors
                      : what == Saved::kTiles  ? kTiles
                                               : 0;
  return (state & needed) == needed;
}

}  // namespace

CpuFeatures this_cpu() {
  const auto state = saved_state();
  CpuFeatures features;
  for (const auto& bit : kBits)
    if ((ask(bit.leaf, bit.subleaf).at(bit.where) >> bit.bit & 1) != 0 && saves(state, bit.saved))
      features.insert(bit.name);
  return features;
}

#elif defined(__aarch64__)

CpuFeatures this_cpu() {
  struct Bit {
    const char* name;
    unsigned long auxiliary;
    unsigned long mask;
  };
  constexpr Bit kBits[] = {{"fp", AT_HWCAP, HWCAP_FP},
                           {"asimd", AT_HWCAP, HWCAP_ASIMD},
                           {"aes", AT_HWCAP, HWCAP_AES},
                           {"pmull", AT_HWCAP, HWCAP_PMULL},
                           {"sha1", AT_HWCAP, HWCAP_SHA1},
                           {"sha2", AT_HWCAP, HWCAP_SHA2},
                           {"crc32", AT_HWCAP, HWCAP_CRC32},
                           {"atomics", AT_HWCAP, HWCAP_ATOMICS},
                           {"fphp", AT_HWCAP, HWCAP_FPHP},
                           {"asimdhp", AT_HWCAP, HWCAP_ASIMDHP},
                           {"asimdrdm", AT_HWCAP, HWCAP_ASIMDRDM},
                           {"lrcpc", AT_HWCAP, HWCAP_LRCPC},
                           {"dcpop", AT_HWCAP, HWCAP_DCPOP},
                           {"asimddp", AT_HWCAP, HWCAP_ASIMDDP},
                           {"sve", AT_HWCAP, HWCAP_SVE},
                           {"sve2", AT_HWCAP2, HWCAP2_SVE2},
                           {"svebitperm", AT_HWCAP2, HWCAP2_SVEBITPERM},
                           {"i8mm", AT_HWCAP2, HWCAP2_I8MM},
                           {"bf16", AT_HWCAP2, HWCAP2_BF16}};
  CpuFeatures features;
  for (const auto& bit : kBits)
    if ((::getauxval(bit.auxiliary) & bit.mask) != 0) features.insert(bit.name);
  return features;
}

#elif defined(__powerpc64__)

CpuFeatures this_cpu() {
  const auto* const platform = reinterpret_cast<const char*>(::getauxval(AT_PLATFORM));
  const auto known = parse_cpu(platform == nullptr ? "" : platform);
  return known ? known->features : CpuFeatures();
}

#else

CpuFeatures this_cpu() {
  return {};
}

#endif

}  // namespace drover::gpu
