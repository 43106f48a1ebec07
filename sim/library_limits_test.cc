// The driver's own limits of memory, as a client of the built library sees them. Folders stand for control
// groups.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "sim/live_process.h"
#include "sim/testing/library_test_base.h"

namespace drover::sim {
namespace {

constexpr std::uint64_t kGib = 1ULL << 30;

class LibraryLimitsTest : public LibraryTestBase {
 protected:
  LibraryLimitsTest() {
    std::filesystem::create_directories(inner_);
    std::filesystem::create_directories(other_);
    ::setenv("DROVER_SIM_CGROUP", group_.c_str(), 1);
  }
  ~LibraryLimitsTest() override { ::unsetenv("DROVER_SIM_CGROUP"); }

  nvmlReturn_t set(const std::string& group, std::uint64_t hard, std::uint64_t soft = 0) const {
    nvmlSetMemoryLimits_v1_t limits{group.c_str(), soft, hard};
    return NVML(nvmlDeviceSetMemoryLimits_v1)(device(0), &limits);
  }
  nvmlGetMemoryLimits_v1_t get(const std::string& group) const {
    nvmlGetMemoryLimits_v1_t limits{group.c_str(), 1, 1, 1};
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryLimits_v1)(device(0), &limits), NVML_SUCCESS);
    return limits;
  }
  nvmlMemory_v2_t memory() const {
    nvmlMemory_v2_t memory{};
    memory.version = NVML_STRUCT_VERSION(Memory, 2);
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device(0), &memory), NVML_SUCCESS);
    return memory;
  }
  std::unique_ptr<LiveProcess> process_in(const std::filesystem::path& group) const {
    return LiveProcess::open(folder_ / "live", 1, own_groups(group));
  }

  const std::filesystem::path group_ = folder_ / "groups/a";
  const std::filesystem::path inner_ = group_ / "inner";
  const std::filesystem::path other_ = folder_ / "groups/b";
};

TEST_F(LibraryLimitsTest, OlderDriversHaveNone) {
  start("dgx-h100");
  EXPECT_EQ(set(group_, kGib), NVML_ERROR_FUNCTION_NOT_FOUND);
  nvmlGetMemoryLimits_v1_t limits{group_.c_str(), 0, 0, 0};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryLimits_v1)(device(0), &limits), NVML_ERROR_FUNCTION_NOT_FOUND);
}

TEST_F(LibraryLimitsTest, AreSetReadAndTakenAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may set limits";
  start("h100-615");
  EXPECT_EQ(get(group_).hardLimit, NVML_DEVICE_MEMORY_LIMIT_MAX);
  ASSERT_EQ(set(group_, 8 * kGib, kGib), NVML_SUCCESS);
  EXPECT_EQ(get(group_).hardLimit, 8 * kGib);
  EXPECT_EQ(get(group_).softLimit, kGib);
  EXPECT_EQ(get(other_).hardLimit, NVML_DEVICE_MEMORY_LIMIT_MAX);
  EXPECT_EQ(set(group_, 4 * kGib), NVML_SUCCESS);
  EXPECT_EQ(get(group_).hardLimit, 4 * kGib);
  EXPECT_EQ(set(group_, NVML_DEVICE_MEMORY_LIMIT_MAX), NVML_SUCCESS);
  EXPECT_EQ(get(group_).hardLimit, NVML_DEVICE_MEMORY_LIMIT_MAX);
  EXPECT_EQ(get(group_).softLimit, 0U);
}

TEST_F(LibraryLimitsTest, AreOnlyOfDirectoriesOfControlGroups) {
  start("h100-615");
  EXPECT_EQ(set(folder_ / "missing", kGib), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(set("groups/a", kGib), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(set(group_, kGib, 2 * kGib), NVML_ERROR_INVALID_ARGUMENT);
  nvmlSetMemoryLimits_v1_t nowhere{nullptr, 0, kGib};
  EXPECT_EQ(NVML(nvmlDeviceSetMemoryLimits_v1)(device(0), &nowhere), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceSetMemoryLimits_v1)(device(0), nullptr), NVML_ERROR_INVALID_ARGUMENT);
  NVML(nvmlShutdown)();
  ::unsetenv("DROVER_SIM_CGROUP");
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  EXPECT_EQ(set(group_, kGib), NVML_ERROR_INVALID_ARGUMENT) << "a folder is no control group";
}

TEST_F(LibraryLimitsTest, AreNotOfGpusInMigMode) {
  std::ofstream(folder_ / "mig.yaml") << "0: {enabled: true}\n";
  start("h100-615");
  EXPECT_EQ(set(group_, kGib), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(LibraryLimitsTest, OnlyRootSetsThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  start("h100-615");
  const auto child = ::fork();
  if (child == 0) {
    constexpr uid_t kSomebody = 65534;
    if (::setuid(kSomebody) != 0) ::_exit(2);
    ::_exit(set(group_, kGib) == NVML_ERROR_NO_PERMISSION ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LibraryLimitsTest, TheMemoryOfTheCardIsThatOfTheGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may set limits";
  start("h100-615");
  const auto whole = memory().total;
  const auto inside = process_in(group_);
  const auto outside = process_in(other_);
  ASSERT_TRUE(inside && outside);
  ASSERT_TRUE(inside->reserve(0, kGib, 80 * kGib));
  ASSERT_TRUE(outside->reserve(0, 3 * kGib, 80 * kGib));
  EXPECT_EQ(memory().used, 4 * kGib);
  ASSERT_EQ(set(group_, 8 * kGib), NVML_SUCCESS);
  EXPECT_EQ(memory().total, 8 * kGib);
  EXPECT_EQ(memory().used, kGib);
  EXPECT_EQ(memory().free, 7 * kGib);
  EXPECT_EQ(get(group_).currentUsed, kGib);
  EXPECT_EQ(get(other_).currentUsed, 3 * kGib);
  ASSERT_EQ(set(group_, NVML_DEVICE_MEMORY_LIMIT_MAX), NVML_SUCCESS);
  EXPECT_EQ(memory().total, whole);
}

/// As the driver does it: the view is that of the very group, the limit also that of those around it.
TEST_F(LibraryLimitsTest, ALimitOfTheGroupAroundHoldsAndIsNotSeen) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may set limits";
  start("h100-615");
  const auto process = process_in(inner_);
  ASSERT_EQ(set(group_, 2 * kGib), NVML_SUCCESS);
  EXPECT_FALSE(process->own_limit(0));
  EXPECT_TRUE(process->reserve(0, kGib, 80 * kGib));
  EXPECT_FALSE(process->reserve(0, kGib + 1, 80 * kGib));
  EXPECT_EQ(get(group_).currentUsed, kGib);
  ASSERT_EQ(set(inner_, 5 * kGib), NVML_SUCCESS);
  EXPECT_TRUE(process->reserve(0, kGib + 1, 80 * kGib)) << "its own counts";
  EXPECT_EQ(process->own_limit(0)->hard, 5 * kGib);
}

TEST_F(LibraryLimitsTest, AFullTableIsNoRoomAndSaysSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may set limits";
  start("h100-615");
  auto result = NVML_SUCCESS;
  for (std::size_t i = 0; i <= kLiveLimits; ++i) {
    EXPECT_EQ(result, NVML_SUCCESS);
    const auto group = folder_ / "groups" / std::to_string(i);
    std::filesystem::create_directory(group);
    result = set(group, kGib);
  }
  EXPECT_EQ(result, NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(set(other_, NVML_DEVICE_MEMORY_LIMIT_MAX), NVML_SUCCESS) << "there is none to take away";
  EXPECT_EQ(set(folder_ / "groups/7", NVML_DEVICE_MEMORY_LIMIT_MAX), NVML_SUCCESS);
  EXPECT_EQ(set(other_, kGib), NVML_SUCCESS);
}

}  // namespace
}  // namespace drover::sim
