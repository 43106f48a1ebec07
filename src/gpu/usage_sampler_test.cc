// Over the simulator: what the fault file says that a GPU does must arrive, from its own GPU, and in time.

#include "gpu/usage_sampler.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fake_tree.h"
#include "gpu/discovery.h"

namespace drover::gpu {
namespace {

using namespace std::chrono_literals;

class UsageSamplerTest : public testing::Test {
 protected:
  ~UsageSamplerTest() override {
    const std::weak_ptr<const Result<Nvml>> library = nvml_;
    nvml_.reset();
    while (!library.expired()) std::this_thread::sleep_for(10ms);  // a thread that was left behind has it
    ::unsetenv("DROVER_SIM_PROFILE");
    ::unsetenv("DROVER_SIM_FAULTS");
  }

  void start(const std::string& profile) {
    ::setenv("DROVER_SIM_PROFILE", (std::string(DROVER_SIM_PROFILES) + "/" + profile + ".yaml").c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", faults_.c_str(), 1);
    nvml_ = std::make_shared<const Result<Nvml>>(Nvml::load(DROVER_SIM_LIBRARY));
    ASSERT_TRUE(*nvml_);
    devices_ = discover(*nvml_, {.kernel = std::nullopt, .simulation = profile}).devices;
  }
  void set_faults(const std::string& text) const {
    std::ofstream(faults_ + ".new") << text;
    std::filesystem::rename(faults_ + ".new", faults_);
    std::this_thread::sleep_for(10ms);  // then the library looks at it again
  }
  UsageSampler::Library library() const {
    return [this] { return nvml_; };
  }
  GpuUsage usage_of_first(UsageSampler& sampler) const {
    return sampler.sample(devices_).at(devices_.front().uuid);
  }

  FakeTree tree_;
  const std::string faults_ = tree_ / "faults.yaml";
  SharedNvml nvml_;
  std::vector<Device> devices_;
  UsageSamplerOptions options_{.patience = 20s, .fresh = 0ms};
};

constexpr const char* kBusy = R"(
0:
  temperature: 71
  memory_temperature: 84
  utilization: {gpu: 90, memory: 40, encoder: 3, decoder: 5}
  ecc: {volatile: {corrected: 7, uncorrected: 1}, aggregate: {corrected: 70, uncorrected: 10}}
  remapped_rows: {corrected: 2, uncorrected: 3, failed: true}
  pcie: {replays: 6, sent_kb: 100, received_kb: 200}
  nvlink: {sent_kib: 1000, received_kib: 2000}
  processes:
    - {pid: 30, memory_mib: 1024, utilization: {sm: 60, memory: 25, encoder: 1, decoder: 2}}
    - {pid: 7, memory_mib: 2048}
)";

TEST_F(UsageSamplerTest, TellsOfMemoryAloneWhereThatIsWanted) {
  start("dgx-a100");
  set_faults(kBusy);
  options_.look = Look::kMemory;
  UsageSampler sampler(library(), options_);
  const auto usage = usage_of_first(sampler);
  EXPECT_TRUE(usage.answers);
  EXPECT_EQ(usage.memory.used, 3072ULL << 20);
  ASSERT_EQ(usage.processes.size(), 2U);
  EXPECT_EQ(usage.processes[0].memory_bytes, 2048ULL << 20);
  EXPECT_FALSE(usage.processes[1].sm_percent);
  EXPECT_FALSE(usage.gpu_percent);
}

TEST_F(UsageSamplerTest, TellsWhatAGpuDoes) {
  start("dgx-a100");
  set_faults(kBusy);
  UsageSampler sampler(library(), options_);
  const auto usage = usage_of_first(sampler);
  EXPECT_TRUE(usage.answers);
  EXPECT_EQ(usage.gpu_percent, 90U);
  EXPECT_EQ(usage.memory_percent, 40U);
  EXPECT_EQ(usage.encoder_percent, 3U);
  EXPECT_EQ(usage.decoder_percent, 5U);
  EXPECT_EQ(usage.memory.used, 3072ULL << 20);
  EXPECT_EQ(*usage.memory.total, *usage.memory.used + *usage.memory.free + *usage.memory.reserved);
  EXPECT_EQ(usage.sm_mhz, 1410U);
  EXPECT_EQ(usage.memory_mhz, 1215U);
  EXPECT_EQ(usage.temperature, 71U);
  EXPECT_EQ(usage.memory_temperature, 84U);
  EXPECT_GT(usage.power_mw, 52000U);
  EXPECT_TRUE(usage.energy_mj);
  EXPECT_EQ(usage.pcie_replays, 6U);
  EXPECT_EQ(usage.pcie_sent_kb, 100U);
  EXPECT_EQ(usage.pcie_received_kb, 200U);
  EXPECT_EQ(usage.nvlink_sent_kib, 1000U);
  EXPECT_EQ(usage.nvlink_received_kib, 2000U);
  EXPECT_EQ(usage.corrected_volatile, 7U);
  EXPECT_EQ(usage.uncorrected_volatile, 1U);
  EXPECT_EQ(usage.corrected_aggregate, 70U);
  EXPECT_EQ(usage.uncorrected_aggregate, 10U);
  EXPECT_EQ(usage.remapped_corrected, 2U);
  EXPECT_EQ(usage.remapped_uncorrected, 3U);
  EXPECT_EQ(usage.remap_pending, 0U);
  EXPECT_EQ(usage.remap_failed, 1U);
  EXPECT_EQ(usage.retired_pending, std::nullopt);  // cards that remap rows retire no pages
}

TEST_F(UsageSamplerTest, TellsWhatItsProcessesDo) {
  start("dgx-a100");
  set_faults(kBusy);
  UsageSampler sampler(library(), options_);
  const auto usage = usage_of_first(sampler);
  EXPECT_THAT(usage.processes,
              testing::ElementsAre(ProcessUsage{7, 2048ULL << 20, 45, 20, 1, 2, {}},  // half of the GPU's
                                   ProcessUsage{30, 1024ULL << 20, 60, 25, 1, 2, {}}));
  set_faults("{0: {processes: [{pid: 30, memory_mib: 1}], fail: {nvmlDeviceGetProcessUtilization: 6}}}");
  EXPECT_EQ(usage_of_first(sampler).processes.at(0).sm_percent, 0U);  // no sample: it does nothing
  set_faults("{0: {processes: [{pid: 30, memory_mib: 1}], fail: {nvmlDeviceGetProcessUtilization: 3}}}");
  EXPECT_EQ(usage_of_first(sampler).processes.at(0).sm_percent, std::nullopt);  // not supported
}

TEST_F(UsageSamplerTest, LeavesOutWhatAnOldCardCannotTell) {
  start("k40m");
  UsageSampler sampler(library(), options_);
  const auto usage = usage_of_first(sampler);
  EXPECT_TRUE(usage.answers);
  EXPECT_EQ(usage.gpu_percent, 0U);
  EXPECT_EQ(usage.energy_mj, std::nullopt);
  EXPECT_EQ(usage.memory_temperature, std::nullopt);
  EXPECT_EQ(usage.nvlink_sent_kib, std::nullopt);
  EXPECT_EQ(usage.remapped_corrected, std::nullopt);
  EXPECT_EQ(usage.retired_corrected, 0U);
}

constexpr const char* kCut = R"(
0:
  enabled: true
  instances:
    - {id: 1, profile: 1g.5gb, start: 0, compute: [{id: 0, start: 0, slices: 1}]}
    - {id: 2, profile: 3g.20gb, start: 4, compute: [{id: 0, start: 0, slices: 2}, {id: 1, start: 2, slices: 1}]}
    - {id: 5, profile: 1g.5gb, start: 1}
)";

TEST_F(UsageSamplerTest, TellsTheInstancesOfAGpuInMigMode) {
  tree_.file("mig.yaml", kCut);
  start("dgx-a100");
  set_faults(
      "{0: {utilization: {gpu: 90}, processes: [{pid: 7, memory_mib: 100, gpu_instance: 2, "
      "compute_instance: 1}]}}");
  UsageSampler sampler(library(), options_);
  const auto all = sampler.sample(devices_);
  const auto& usage = all.at(devices_[0].uuid);
  constexpr auto kMib = 1ULL << 20;
  EXPECT_THAT(usage.instances,
              testing::ElementsAre(InstanceUsage{1, {4864 * kMib, 0, 4864 * kMib, 0}},
                                   InstanceUsage{2, {19968 * kMib, 100 * kMib, 19868 * kMib, 0}}));
  EXPECT_EQ(usage.memory.used, 100 * kMib);
  EXPECT_THAT(usage.processes, testing::ElementsAre(ProcessUsage{7, 100 * kMib, {}, {}, {}, {}, {2, 1}}));
  for (const auto& percent :
       {usage.gpu_percent, usage.memory_percent, usage.encoder_percent, usage.decoder_percent})
    EXPECT_EQ(percent, std::nullopt);
  EXPECT_THAT(all.at(devices_[1].uuid).instances, testing::IsEmpty());
}

TEST_F(UsageSamplerTest, ALostGpuTellsNothing) {
  start("k80");
  set_faults("{0: {lost: true}}");
  UsageSampler sampler(library(), options_);
  const auto usage = sampler.sample(devices_);
  EXPECT_EQ(usage.at(devices_[0].uuid), GpuUsage{});
  EXPECT_TRUE(usage.at(devices_[1].uuid).answers);
}

TEST_F(UsageSamplerTest, AGpuThatHangsHoldsUpNoOtherAndIsWaitedForOnce) {
  start("k80");
  set_faults("{0: {slow_ms: 5000}}");
  options_.patience = 3s;
  UsageSampler sampler(library(), options_);
  const auto begin = std::chrono::steady_clock::now();
  const auto usage = sampler.sample(devices_);
  EXPECT_FALSE(usage.at(devices_[0].uuid).answers);
  EXPECT_TRUE(usage.at(devices_[1].uuid).answers);
  // How long the second takes says nothing, but all of them together have not waited for as many patiences.
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(usage_of_first(sampler).answers);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 50 * options_.patience);
  set_faults("{}");
  auto later = usage_of_first(sampler);
  for (int i = 0; i < 3000 && !later.answers; ++i) {
    std::this_thread::sleep_for(10ms);
    later = usage_of_first(sampler);
  }
  EXPECT_TRUE(later.answers);
}

TEST_F(UsageSamplerTest, AFreshSampleIsToldAgain) {
  start("k80");
  options_.fresh = 1h;
  UsageSampler sampler(library(), options_);
  EXPECT_EQ(usage_of_first(sampler).gpu_percent, 0U);
  set_faults("{0: {utilization: {gpu: 50}}}");
  EXPECT_EQ(usage_of_first(sampler).gpu_percent, 0U);
}

TEST_F(UsageSamplerTest, WithoutALibraryNoGpuAnswers) {
  start("k80");
  const auto none = std::make_shared<const Result<Nvml>>(fail(ErrorKind::kNotFound, "no library"));
  UsageSampler sampler([&] { return none; }, options_);
  EXPECT_FALSE(usage_of_first(sampler).answers);
}

}  // namespace
}  // namespace drover::gpu
