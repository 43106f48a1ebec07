// Over the simulator; folders stand for control groups.

#include "share/kernel_limit.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fake_tree.h"
#include "gpu/discovery.h"
#include "gpu/memory_limit.h"

namespace drover::share {
namespace {

constexpr std::uint64_t kGib = 1ULL << 30;

class KernelLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may set limits";
    tree_.file("groups/drover/a/cgroup.procs", "");
    start("h100-615");
  }
  void TearDown() override {
    for (const char* name : {"DROVER_SIM_PROFILE", "DROVER_SIM_FAULTS", "DROVER_SIM_CGROUP"})
      ::unsetenv(name);
  }
  void start(const std::string& profile) {
    nvml_ = fail(ErrorKind::kNotFound, "not yet");
    ::setenv("DROVER_SIM_PROFILE", (DROVER_SIM_PROFILES "/" + profile + ".yaml").c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", (tree_ / "faults.yaml").c_str(), 1);
    ::setenv("DROVER_SIM_CGROUP", tree_.root().c_str(), 1);
    nvml_ = gpu::Nvml::load(DROVER_SIM_LIBRARY);
    ASSERT_TRUE(nvml_) << to_string(nvml_.error());
    gpus_.clear();
    for (const auto& device : gpu::discover(nvml_, {.kernel = std::nullopt, .simulation = profile}).devices)
      gpus_.push_back(device.uuid);
  }
  void set_faults(const std::string& text) const {
    std::ofstream(tree_ / "faults.new") << text;
    std::filesystem::rename(tree_ / "faults.new", tree_ / "faults.yaml");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  gpu::MemoryLimit limit(const std::string& group, std::size_t gpu = 0) const {
    const auto found = gpu::memory_limit(*nvml_, gpus_.at(gpu), group);
    EXPECT_TRUE(found) << to_string(found.error());
    return found.value_or(gpu::MemoryLimit{7, 7, 7});
  }

  FakeTree tree_;
  const std::string group_ = tree_ / "groups/drover/a";
  Result<gpu::Nvml> nvml_ = fail(ErrorKind::kNotFound, "not yet");
  std::vector<std::string> gpus_;
};

/// The limit is on the leaf, as it was asked for, and those around it know nothing of it; then it is gone.
TEST_F(KernelLimitTest, ALeafIsLimitedAndNothingAroundIt) {
  ASSERT_TRUE(can_limit_memory(*nvml_, gpus_[0], group_));
  ASSERT_TRUE(limit_memory(*nvml_, group_, {{gpus_[0], 8 * kGib}}));
  EXPECT_EQ(limit(group_), (gpu::MemoryLimit{0, 8 * kGib, 0}));
  EXPECT_TRUE(limit(tree_ / "groups/drover").is_none());
  EXPECT_TRUE(limit(tree_ / "groups").is_none());
  ASSERT_TRUE(unlimit_memory(*nvml_, group_, gpus_));
  EXPECT_TRUE(limit(group_).is_none());
  EXPECT_TRUE(unlimit_memory(*nvml_, group_, gpus_)) << "once more";
  std::filesystem::remove_all(group_);
  EXPECT_TRUE(unlimit_memory(*nvml_, group_, gpus_)) << "the group is gone";
}

/// What cannot be set stays as it was: nobody who runs is let off.
TEST_F(KernelLimitTest, ALimitChangesWhileSomethingRuns) {
  ASSERT_TRUE(limit_memory(*nvml_, group_, {{gpus_[0], 8 * kGib}}));
  for (const auto bytes : {12 * kGib, 12 * kGib, 4 * kGib}) {
    ASSERT_TRUE(change_memory_limits(*nvml_, group_, {{gpus_[0], bytes}}));
    EXPECT_EQ(limit(group_).hard, bytes);
  }
  EXPECT_FALSE(change_memory_limits(*nvml_, group_, {{"GPU-nobody", kGib}, {gpus_[0], 2 * kGib}}));
  EXPECT_EQ(limit(group_).hard, 2 * kGib) << "each is tried";
  EXPECT_FALSE(change_memory_limits(*nvml_, group_, {{gpus_[0], kLimitStep - 1}}));
  EXPECT_EQ(limit(group_).hard, 2 * kGib);
  EXPECT_FALSE(change_memory_limits(*nvml_, "/nowhere", {{gpus_[0], 12 * kGib}}));
}

TEST_F(KernelLimitTest, SharesAreRoundedDown) {
  ASSERT_TRUE(limit_memory(*nvml_, group_, {{gpus_[0], 8 * kGib - 1}}));
  EXPECT_EQ(limit(group_).hard, 8 * kGib - kLimitStep);
  const auto tiny = limit_memory(*nvml_, group_, {{gpus_[0], kLimitStep - 1}});
  ASSERT_FALSE(tiny);
  EXPECT_EQ(tiny.error().kind, ErrorKind::kInvalid);
  EXPECT_TRUE(limit(group_).is_none()) << "nothing is left of one that failed";
}

TEST_F(KernelLimitTest, WhatTheDriverRefusesIsNotHalfDone) {
  const auto failed = limit_memory(*nvml_, group_, {{gpus_[0], kGib}, {"GPU-nobody", kGib}});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, testing::HasSubstr("GPU-nobody"));
  EXPECT_TRUE(limit(group_).is_none());
  const auto missing = limit_memory(*nvml_, tree_ / "groups/none", {{gpus_[0], kGib}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kUnavailable);
}

TEST_F(KernelLimitTest, ALimitThatCannotBeReadBackIsNone) {
  set_faults("{0: {fail: {nvmlDeviceGetMemoryLimits: 999}}}");
  const auto failed = limit_memory(*nvml_, group_, {{gpus_[0], kGib}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kUnavailable);
  EXPECT_FALSE(can_limit_memory(*nvml_, gpus_[0], group_));
  EXPECT_FALSE(unlimit_memory(*nvml_, group_, gpus_)) << "nobody knows whether it is gone";
  set_faults("");
  EXPECT_TRUE(limit(group_).is_none());
}

TEST_F(KernelLimitTest, WhatCannotDoItSaysWhy) {
  const auto version1 = can_limit_memory(*nvml_, gpus_[0], "");
  ASSERT_FALSE(version1);
  EXPECT_EQ(version1.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(version1.error().message, testing::HasSubstr("version 2"));
  set_faults("{0: {fail: {nvmlDeviceGetMemoryLimits: 3}}}");
  const auto gpu = can_limit_memory(*nvml_, gpus_[0], group_);
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().kind, ErrorKind::kUnsupported);
  start("dgx-h100");
  const auto old = can_limit_memory(*nvml_, gpus_[0], group_);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace drover::share
