#include "sim/faults.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/yaml.h"
#include "gpu/nvml_abi.h"

namespace drover::sim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Profile k80() {
  return load_profile(std::filesystem::path(SIM_PROFILES) / "k80.yaml").value();
}

Result<Faults> decoded(const std::string& text) {
  return decode_faults(*parse_yaml(text, "test"), k80(), "test");
}

std::string fault_mistake(const std::string& text) {
  const auto faults = decoded(text);
  EXPECT_FALSE(faults) << text;
  return faults ? "" : faults.error().message + " at " + faults.error().path;
}

TEST(Faults, EveryFieldIsRead) {
  const auto faults = decoded(R"(
1:
  xid: [79, {xid: 48, gpu_instance: 3, compute_instance: 0}]
  ecc: {volatile: {corrected: 3, uncorrected: 1}, aggregate: {corrected: 9, uncorrected: 2}}
  retired_pages: {single_bit: 4, double_bit: 5, pending: true}
  remapped_rows: {corrected: 1, uncorrected: 2, pending: true, failed: true}
  lost: true
  absent: true
  recovery_action: drain-and-reset
  slow_ms: 20
  fail: {nvmlDeviceGetSerial: 999}
  temperature: 88
  utilization: {gpu: 90, memory: 40}
  processes: [{pid: 12, memory_mib: 512}]
)");
  ASSERT_TRUE(faults);
  EXPECT_FALSE((*faults)[0].lost);
  const auto& gpu = (*faults)[1];
  EXPECT_THAT(gpu.xids, ElementsAre(Xid{79, {}, {}}, Xid{48, 3, 0}));
  EXPECT_EQ(gpu.ecc_volatile.uncorrected, 1U);
  EXPECT_EQ(gpu.ecc_aggregate.corrected, 9U);
  EXPECT_EQ(gpu.retired.double_bit, 5U);
  EXPECT_TRUE(gpu.retired.pending);
  EXPECT_EQ(gpu.remapped.uncorrected, 2U);
  EXPECT_TRUE(gpu.remapped.failed);
  EXPECT_TRUE(gpu.lost);
  EXPECT_TRUE(gpu.absent);
  EXPECT_EQ(gpu.recovery_action, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET);
  EXPECT_EQ(gpu.slow, std::chrono::milliseconds(20));
  EXPECT_EQ(gpu.temperature_c, 88);
  EXPECT_EQ(gpu.utilization.value().sm, 90U);
  EXPECT_EQ(gpu.processes.at(0).memory_mib, 512U);
}

TEST(Faults, GpusAreNamedByPositionUuidOrAddress) {
  EXPECT_TRUE((*decoded("{0: {lost: true}}"))[0].lost);
  EXPECT_TRUE((*decoded("{" + k80().gpus[1].uuid + ": {lost: true}}"))[1].lost);
  EXPECT_TRUE((*decoded("{'0000:05:00.0': {lost: true}}"))[1].lost);
  EXPECT_FALSE((*decoded(""))[0].lost);
}

TEST(Faults, MistakesHaveTheirPaths) {
  EXPECT_THAT(fault_mistake("{7: {}}"), AllOf(HasSubstr("no such GPU"), HasSubstr("/7")));
  EXPECT_THAT(fault_mistake("{0: {}, '0000:04:00.0': {}}"), HasSubstr("twice"));
  EXPECT_THAT(fault_mistake("{0: {lost: maybe}}"), HasSubstr("/0/lost"));
  EXPECT_THAT(fault_mistake("{0: {xid: 79}}"), HasSubstr("/0/xid"));
  EXPECT_THAT(fault_mistake("{0: {xid: [48, 0]}}"), HasSubstr("/0/xid/1"));
  EXPECT_THAT(fault_mistake("{0: {xid: [{gpu_instance: 1}]}}"), HasSubstr("/0/xid/0/xid"));
  EXPECT_THAT(fault_mistake("{0: {xid: [{xid: 79, gpu_instance: -1}]}}"), HasSubstr("/0/xid/0/gpu_instance"));
  EXPECT_THAT(fault_mistake("{0: {recovery_action: rest}}"), HasSubstr("/0/recovery_action"));
  EXPECT_THAT(fault_mistake("{0: {xids: [79]}}"), HasSubstr("unknown field 'xids'"));
  EXPECT_THAT(fault_mistake("{0: {fail: {cudaMalloc: 2}}}"), HasSubstr("/0/fail/cudaMalloc"));
  EXPECT_THAT(fault_mistake("{0: {processes: [{memory_mib: 1}]}}"), HasSubstr("/0/processes/0/pid"));
  EXPECT_THAT(fault_mistake("[1]"), HasSubstr("a key per GPU"));
}

TEST(Faults, AFailingCallStandsForEveryRevision) {
  GpuFaults faults;
  faults.fail = {{"nvmlDeviceGetMemoryInfo", 999}, {"nvmlDeviceGetPciInfo_v3", 2}};
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo_v2"), 999);
  EXPECT_EQ(faults.failure("nvmlDeviceGetMemoryInfo"), 999);
  EXPECT_EQ(faults.failure("nvmlDeviceGetPciInfo_v3"), 2);
  EXPECT_EQ(faults.failure("nvmlDeviceGetPciInfo_v2"), std::nullopt);
  EXPECT_EQ(faults.failure("nvmlDeviceGetUUID"), std::nullopt);
}

class FaultFileTest : public testing::Test {
 protected:
  ~FaultFileTest() override { std::filesystem::remove(file_); }

  void write(const std::string& text) {
    std::ofstream(file_.string() + ".new") << text;
    std::filesystem::rename(file_.string() + ".new", file_);
  }
  /// The state after the file was surely looked at again.
  std::shared_ptr<const Faults> settled() {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return faults_.current();
  }

  const Profile profile_ = k80();
  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("faults_test_" + std::to_string(::getpid()) + ".yaml");
  FaultFile faults_{file_, profile_, false};
};

TEST_F(FaultFileTest, FollowsTheFile) {
  EXPECT_FALSE((*settled())[0].lost);
  write("{0: {lost: true}}");
  EXPECT_TRUE((*settled())[0].lost);
  write("{0: {lost: false}, 1: {lost: true}}");
  EXPECT_FALSE((*settled())[0].lost);
  EXPECT_TRUE((*settled())[1].lost);
  std::filesystem::remove(file_);
  EXPECT_FALSE((*settled())[1].lost);
}

TEST_F(FaultFileTest, KeepsTheLastGoodStateWhenTheFileIsBroken) {
  write("{0: {lost: true}}");
  EXPECT_TRUE((*settled())[0].lost);
  write("{0: {lost: ");
  EXPECT_TRUE((*settled())[0].lost);
  write("{9: {}}");
  EXPECT_TRUE((*settled())[0].lost);
}

}  // namespace
}  // namespace drover::sim
