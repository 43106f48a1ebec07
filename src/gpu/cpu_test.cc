#include "gpu/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kV1 = "flags\t\t: fpu cx8 cmov mmx fxsr sse sse2 syscall lm";
const std::string kV2 = kV1 + " pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm";
const std::string kV3 = kV2 + " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";

TEST(CpuFeatures, NameTheLevelsThatAreMetInFull) {
  EXPECT_THAT(cpu_features(kV1), ElementsAre("x86-64"));
  EXPECT_THAT(cpu_features(kV2 + " avx"), ElementsAre("x86-64", "x86-64-v2"));
  EXPECT_THAT(cpu_features("processor\t: 0\n" + kV3 + "\nprocessor\t: 1\nflags\t\t: fpu\n"),
              ElementsAre("x86-64", "x86-64-v2", "x86-64-v3", "avx2"));
  EXPECT_THAT(cpu_features(kV3 + " avx512f avx512bw avx512cd avx512dq avx512vl"),
              ElementsAre("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "avx2", "avx512f"));
}

TEST(CpuFeatures, AFlagOfALaterLevelDoesNotMakeUpForAMissingOne) {
  EXPECT_THAT(cpu_features(kV1 + " avx2"), ElementsAre("x86-64", "avx2"));
}

TEST(CpuFeatures, OtherArchitecturesHaveNone) {
  EXPECT_THAT(cpu_features("processor\t: 0\nFeatures\t: fp asimd\n"), IsEmpty());
  EXPECT_THAT(cpu_features("flags"), IsEmpty());
  EXPECT_THAT(cpu_features(""), IsEmpty());
}

}  // namespace
}  // namespace drover::gpu
