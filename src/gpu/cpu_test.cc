#include "gpu/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"

namespace drover::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

CpuFeatures features_of(std::string_view text) {
  return parse_cpu(text).value().features;
}

CpuFeatures without(CpuFeatures features, const std::string& feature) {
  features.erase(feature);
  return features;
}

TEST(CpuNames, AreThoseWhoseFeaturesAreAllThere) {
  EXPECT_THAT(cpu_names(features_of("x86-64")), ElementsAre("x86-64"));
  EXPECT_THAT(cpu_names(features_of("x86-64-v3")),
              ElementsAre("x86-64", "x86-64-v2", "x86-64-v3", "nocona", "core2", "nehalem"));
  EXPECT_THAT(cpu_names(features_of("broadwell")),
              ElementsAre("x86-64", "x86-64-v2", "x86-64-v3", "nocona", "core2", "nehalem", "westmere",
                          "sandybridge", "ivybridge", "haswell", "broadwell"));
  EXPECT_THAT(cpu_names(features_of("skylake-avx512")),
              IsSupersetOf({"x86-64-v4", "broadwell", "skylake", "skylake-avx512"}));
  EXPECT_THAT(cpu_names(features_of("znver4")),
              IsSupersetOf({"x86-64-v4", "haswell", "znver3", "skylake-avx512"}));
  EXPECT_THAT(cpu_names(features_of("znver3")), Not(Contains("skylake-avx512")));
  EXPECT_THAT(cpu_names({}), IsEmpty());
}

TEST(CpuNames, AMissingFeatureTakesAllAway) {
  const auto v4 = cpu_names(without(features_of("cascadelake"), "avx512f"));
  EXPECT_THAT(v4, Contains("skylake"));
  for (const auto* name : {"x86-64-v4", "skylake-avx512", "cascadelake"})
    EXPECT_THAT(v4, Not(Contains(name)));
  EXPECT_THAT(cpu_names(without(features_of("haswell"), "sse4_2")), ElementsAre("x86-64", "nocona", "core2"));
}

TEST(CpuNames, TellWhatACpuIs) {
  for (const auto* name : {"nehalem", "haswell", "broadwell", "skylake", "skylake-avx512", "cascadelake",
                           "icelake-server", "sapphirerapids", "znver1", "znver2", "znver3", "znver4",
                           "x86-64-v4", "neoverse-n1", "neoverse-v2", "power9"})
    EXPECT_EQ(describe_cpu(features_of(name)), name);
  EXPECT_EQ(describe_cpu({}), "");
  EXPECT_EQ(describe_cpu({"avx512f"}), "");
}

TEST(CpuNames, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(features_of("x86_64_v3"), features_of("x86-64-v3"));
  EXPECT_EQ(features_of("Skylake_AVX512"), features_of("skylake-avx512"));
  EXPECT_EQ(features_of("zen3"), features_of("znver3"));
  EXPECT_EQ(features_of("avx512f"), CpuFeatures{"avx512f"});
  const auto both = parse_cpu("x86-64-v3+aes").value();
  EXPECT_EQ(both.level, 3);
  EXPECT_TRUE(both.features.contains("aes") && both.features.contains("avx2"));
  EXPECT_EQ(parse_cpu("broadwell").value().level, 3);
  EXPECT_EQ(parse_cpu("skylake-avx512").value().level, 4);
  for (const auto* text : {"", "+", "haswel", "x86-64-v9", "avx3", "x86-64-v3+", "x86-64-v3,avx"}) {
    const auto parsed = parse_cpu(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_FALSE(parsed.error().hint.empty());
  }
  EXPECT_EQ(parse_cpu("haswel").error().hint, "did you mean 'haswell'?");
}

TEST(ThisCpu, HasWhatTheKernelSaysOfIt) {
  const auto features = this_cpu();
  std::istringstream lines(read_file("/proc/cpuinfo", 64ULL << 20).value());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
    for (const auto* feature :
         {"sse2", "sse4_2", "avx", "avx2", "avx512f", "avx512vl", "bmi2", "clwb", "xsavec"})
      EXPECT_EQ(features.contains(feature), flags.contains(feature)) << feature;
    return;
  }
  GTEST_SKIP() << "the kernel lists no flags of this architecture's CPUs";
}

}  // namespace
}  // namespace drover::gpu
