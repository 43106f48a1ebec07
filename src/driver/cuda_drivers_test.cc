#include "driver/cuda_drivers.h"

#include <gtest/gtest.h>

namespace drover::driver {
namespace {

Version cuda_of(std::string_view text) {
  return Version::parse(text).value();
}

TEST(CudaDrivers, NewerReleasesNeedNewerDriversAndGpus) {
  const auto releases = cuda_releases();
  ASSERT_GT(releases.size(), 30U);
  for (std::size_t i = 1; i < releases.size(); ++i) {
    SCOPED_TRACE(releases[i].cuda);
    EXPECT_LT(cuda_of(releases[i - 1].cuda), cuda_of(releases[i].cuda));
    EXPECT_LT(cuda_of(releases[i - 1].driver), cuda_of(releases[i].driver));
    EXPECT_LE(releases[i - 1].oldest, releases[i].oldest);
  }
}

TEST(CudaDrivers, ADriverServesEveryReleaseUpToItsOwn) {
  for (const auto& release : cuda_releases()) {
    EXPECT_EQ(newest_cuda(std::string(release.driver)), release.cuda);
    EXPECT_TRUE(runs_cuda(std::string(release.driver), "", cuda_of(release.cuda)));
    EXPECT_TRUE(runs_cuda(oldest_driver_for(cuda_of(release.cuda)), "", cuda_of(release.cuda)));
  }
  EXPECT_EQ(newest_cuda("390.30"), "9.1");
  EXPECT_EQ(newest_cuda("384.145"), "9.0");
  EXPECT_EQ(newest_cuda("535.129.03"), "12.2");
  EXPECT_EQ(newest_cuda("304.1"), "");
  EXPECT_EQ(newest_cuda("no version"), "");
}

TEST(CudaDrivers, MinorVersionsAreCompatibleFromCuda11On) {
  EXPECT_TRUE(runs_cuda("535.54.03", "12.2", cuda_of("12.9")));
  EXPECT_TRUE(runs_cuda("450.80.02", "11.0", cuda_of("11.8")));
  EXPECT_TRUE(runs_cuda("580.65.06", "13.0", cuda_of("13.4")));
  EXPECT_FALSE(runs_cuda("450.51.06", "11.0", cuda_of("11.8")));
  EXPECT_FALSE(runs_cuda("410.48", "10.0", cuda_of("10.2"))) << "not before CUDA 11";
  EXPECT_FALSE(runs_cuda("535.54.03", "12.2", cuda_of("13.0")));
  EXPECT_EQ(oldest_driver_for(cuda_of("12.4")), "525.60.13");
  EXPECT_EQ(oldest_driver_for(cuda_of("9.2")), "396.26");
  EXPECT_EQ(oldest_driver_for(cuda_of("14.0")), "");
}

TEST(CudaDrivers, WhatTheDriverSaysOfItselfCounts) {
  EXPECT_TRUE(runs_cuda("390.30", "9.2", cuda_of("9.2")));
  EXPECT_FALSE(runs_cuda("390.30", "", cuda_of("9.2")));
}

TEST(CudaDrivers, NewReleasesDropOldGpus) {
  EXPECT_EQ(oldest_capability(cuda_of("12.9")), (gpu::ComputeCapability{5, 0}));
  EXPECT_EQ(oldest_capability(cuda_of("13.0.1")), (gpu::ComputeCapability{7, 5}));
  EXPECT_EQ(oldest_capability(cuda_of("11.4")), (gpu::ComputeCapability{3, 5}));
  EXPECT_EQ(oldest_capability(cuda_of("5.0")), (gpu::ComputeCapability{0, 0}));
}

}  // namespace
}  // namespace drover::driver
