// Programs in control groups of which the driver limits the memory. Folders stand for the groups.

#include "sim/limits.h"
#include "sim/live_process.h"
#include "sim/testing/cuda_client.h"

namespace drover::sim {
namespace {

class CudaLimitsTest : public CudaTest {
 protected:
  CudaLimitsTest() {
    ::setenv("DROVER_SIM_PROFILE", (std::string(SIM_PROFILES) + "/h100-615.yaml").c_str(), 1);
    ::setenv("DROVER_SIM_CGROUP", group_.c_str(), 1);
    std::filesystem::create_directories(group_);
  }
  ~CudaLimitsTest() override { ::unsetenv("DROVER_SIM_CGROUP"); }

  void limit(std::uint64_t mib) const { EXPECT_TRUE(limits_.set(0, group_at(group_, true), 0, mib * kMib)); }
  static std::uint64_t total_mib() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(CUDA(cuMemGetInfo_v2)(&free, &total), CUDA_SUCCESS);
    return total >> 20;
  }
  static CUresult try_mib(size_t mib) {
    CUdeviceptr address = 0;
    return CUDA(cuMemAlloc_v2)(&address, mib * kMib);
  }

  const std::filesystem::path group_ = folder_ / "group";
  const LimitFile limits_{folder_ / "live"};
};

TEST_F(CudaLimitsTest, ProgramsAreHeldToTheLimitContextsIncluded) {
  limit(1000);
  in_context([] {
    EXPECT_EQ(total_mib(), 1000U);
    EXPECT_EQ(free_mib(), 1000 - kContextMib);
    EXPECT_EQ(try_mib(1002 - kContextMib), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(try_mib(1000 - kContextMib), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), 0U);
    EXPECT_EQ(try_mib(2), CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr managed = 0;
    EXPECT_EQ(CUDA(cuMemAllocManaged)(&managed, 4000 * kMib, 1), CUDA_SUCCESS);
  });
}

TEST_F(CudaLimitsTest, AContextThatDoesNotFitIsRefused) {
  limit(kContextMib - 2);
  in_process([] {
    CUcontext context = nullptr;
    EXPECT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST_F(CudaLimitsTest, ALimitThatIsChangedHoldsAtOnce) {
  limit(1000);
  in_context([&] {
    allocate(400 * kMib);
    EXPECT_EQ(try_mib(302), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(try_mib(300), CUDA_SUCCESS);
    limit(2000);
    EXPECT_EQ(try_mib(1000), CUDA_SUCCESS);
    EXPECT_TRUE(limits_.set(0, group_at(group_, true), 0, kNoMemoryLimit));
    EXPECT_EQ(total_mib(), kTotalMib);
    EXPECT_EQ(try_mib(20'000), CUDA_SUCCESS);
  });
}

TEST_F(CudaLimitsTest, WhatAnotherProcessOfTheGroupHoldsIsNotThere) {
  limit(1000);
  std::filesystem::create_directory(folder_ / "other");
  const auto neighbour = LiveProcess::open(folder_ / "live", 1, own_groups(group_));
  const auto stranger = LiveProcess::open(folder_ / "live", 1, own_groups(folder_ / "other"));
  ASSERT_TRUE(neighbour->reserve(0, 500 * kMib, 80'000 * kMib));
  ASSERT_TRUE(stranger->reserve(0, 5000 * kMib, 80'000 * kMib));
  in_context([] {
    EXPECT_EQ(free_mib(), 500 - kContextMib);
    EXPECT_EQ(try_mib(202), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(try_mib(200), CUDA_SUCCESS);
  });
  EXPECT_FALSE(neighbour->reserve(0, 502 * kMib, 80'000 * kMib));
}

TEST_F(CudaLimitsTest, OlderDriversKnowNoLimits) {
  limit(1000);
  ::setenv("DROVER_SIM_PROFILE", (std::string(SIM_PROFILES) + "/dgx-h100.yaml").c_str(), 1);
  in_context([] {
    EXPECT_EQ(total_mib(), kTotalMib);
    EXPECT_EQ(try_mib(5000), CUDA_SUCCESS);
  });
}

}  // namespace
}  // namespace drover::sim
