#include "metrics/gpu_metrics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/files.h"

namespace drover::metrics {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Owner kMain{{"namespace", "ml"}, {"pod", "train"}, {"container", "main"}};
const Owner kSide{{"namespace", "ml"}, {"pod", "train"}, {"container", "side"}};
const Owner kOther{{"namespace", "web"}, {"pod", "serve"}, {"container", "main"}};

class GpuMetricsTest : public testing::Test {
 protected:
  GpuMetricsTest() {
    facts_.host_name = "node1";
    facts_.inventory.driver_version = "535.1";
    facts_.inventory.simulation = "test";
    for (int i = 0; i < 2; ++i) {
      gpu::Device device;
      device.uuid = "GPU-" + std::to_string(i);
      device.index = i;
      device.minor = 4 + i;
      device.model = "A100";
      device.pci = gpu::PciAddress{0, 0xc7, static_cast<std::uint32_t>(i), 0};
      facts_.inventory.devices.push_back(device);
    }
    gpu::GpuUsage usage;
    usage.answers = true;
    usage.gpu_percent = 90;
    usage.memory.used = 3ULL << 30;
    usage.power_mw = 61500;
    usage.nvlink_sent_kib = 3;
    usage.pcie_sent_kb = 5;
    usage.processes = {{10, 1 << 20, 60, 5, 0, 0, {}},
                       {11, 2 << 20, 10, 5, 0, 0, {}},
                       {12, 4 << 20, 20, 0, {}, {}, {}},
                       {13, {}, {}, {}, {}, {}, {}}};
    facts_.usage["GPU-0"] = usage;
    facts_.usage["GPU-1"] = {.answers = true, .gpu_percent = 0};
    facts_.processes = {
        {10, {"python", kMain}}, {11, {"helper", kMain}}, {12, {"serve", kOther}}, {13, {"X", {}}}};
  }

  /// Lines of one name, without it.
  std::vector<std::string> lines(const std::string& name) const {
    const auto text = write(gpu_families(facts_));
    std::vector<std::string> found;
    for (std::size_t at = 0; (at = text.find("\n" + name + "{", at)) != std::string::npos; ++at)
      found.push_back(text.substr(at + 1 + name.size(), text.find('\n', at + 1) - at - 1 - name.size()));
    return found;
  }

  MachineFacts facts_{"", {}, gpu::Health{gpu::XidPolicy{}}, {}, {}, {}, {}};
};

TEST_F(GpuMetricsTest, NamesGpusAsNvidiasExporterDoes) {
  facts_.holders["GPU-0"] = {kMain};
  EXPECT_THAT(
      lines("DCGM_FI_DEV_GPU_UTIL"),
      testing::ElementsAre(
          R"({gpu="0",UUID="GPU-0",pci_bus_id="00000000:C7:00.0",device="nvidia4",modelName="A100",)"
          R"(Hostname="node1",DCGM_FI_DRIVER_VERSION="535.1",namespace="ml",pod="train",container="main"} 90)",
          R"({gpu="1",UUID="GPU-1",pci_bus_id="00000000:C7:01.0",device="nvidia5",modelName="A100",)"
          R"(Hostname="node1",DCGM_FI_DRIVER_VERSION="535.1"} 0)"));
}

TEST_F(GpuMetricsTest, TellsInItsUnits) {
  EXPECT_THAT(lines("DCGM_FI_DEV_FB_USED"), testing::ElementsAre(testing::EndsWith("} 3072")));
  EXPECT_THAT(lines("DCGM_FI_DEV_POWER_USAGE"), testing::ElementsAre(testing::EndsWith("} 61.5")));
  EXPECT_THAT(lines("drover_gpu_nvlink_sent_bytes_total"), testing::ElementsAre(testing::EndsWith("} 3072")));
  EXPECT_THAT(lines("drover_gpu_pcie_sent_bytes_per_second"),
              testing::ElementsAre(testing::EndsWith("} 5000")));
}

TEST_F(GpuMetricsTest, AWholeGpuIsToldOnceWhoeverHasIt) {
  facts_.holders["GPU-0"] = {kMain, kSide};
  EXPECT_THAT(
      lines("DCGM_FI_DEV_FB_USED"),
      testing::ElementsAre(AllOf(HasSubstr(R"(namespace="ml",pod="train"})"), Not(HasSubstr("container=")))));
  facts_.holders["GPU-0"] = {kMain, kOther};
  EXPECT_THAT(lines("DCGM_FI_DEV_FB_USED"),
              testing::ElementsAre(AllOf(Not(HasSubstr("pod=")), Not(HasSubstr("container=")))));
  EXPECT_THAT(lines("drover_container_gpu_allocated"),
              testing::ElementsAre(HasSubstr(R"(pod="train")"), HasSubstr(R"(pod="serve")")));
  EXPECT_THAT(lines("drover_gpu_allocated"),
              testing::ElementsAre(testing::EndsWith("} 1"), testing::EndsWith("} 0")));
}

TEST_F(GpuMetricsTest, AContainerIsWhatItsProcessesAre) {
  facts_.holders["GPU-0"] = {kMain, kSide};
  EXPECT_THAT(lines("drover_container_gpu_memory_bytes"),
              testing::UnorderedElementsAre(
                  AllOf(HasSubstr(R"(pod="train",container="main")"), testing::EndsWith(" 3145728")),
                  AllOf(HasSubstr(R"(pod="train",container="side")"), testing::EndsWith(" 0")),
                  AllOf(HasSubstr(R"(pod="serve",container="main")"), testing::EndsWith(" 4194304"))));
  EXPECT_THAT(lines("drover_container_gpu_sm_percent"),
              testing::Contains(AllOf(HasSubstr(R"(container="main")"), testing::EndsWith(" 70"))));
}

TEST_F(GpuMetricsTest, AShareIsToldWithItsTierAndWhatBecameOfIt) {
  EXPECT_THAT(lines("drover_container_gpu_memory_limit_bytes"), testing::IsEmpty());
  facts_.shares["GPU-0"] = {{kMain, "counted", 1024, 7, 1}, {kOther, "guarded", 2048, 0, 0, {{512, 9}}}};
  facts_.unattributed["GPU-0"] = 4096;
  EXPECT_THAT(lines("drover_container_gpu_memory_limit_bytes"),
              testing::ElementsAre(AllOf(HasSubstr(R"(pod="train",container="main",tier="counted")"),
                                         testing::EndsWith(" 1024")),
                                   AllOf(HasSubstr(R"(pod="serve")"), testing::EndsWith(" 2048"))));
  EXPECT_THAT(lines("drover_container_gpu_share_overruns_total"),
              testing::ElementsAre(testing::EndsWith(" 7"), testing::EndsWith(" 0")));
  EXPECT_THAT(lines("drover_container_gpu_share_offences_total"),
              testing::ElementsAre(testing::EndsWith(" 1"), testing::EndsWith(" 0")));
  EXPECT_THAT(
      lines("drover_container_gpu_memory_charged_bytes"),
      testing::ElementsAre(AllOf(HasSubstr(R"(pod="serve",container="main")"), testing::EndsWith(" 512"))));
  EXPECT_THAT(
      lines("drover_container_gpu_memory_refused_total"),
      testing::ElementsAre(AllOf(HasSubstr(R"(pod="serve",container="main")"), testing::EndsWith(" 9"))));
  EXPECT_THAT(lines("drover_gpu_memory_unattributed_bytes"),
              testing::ElementsAre(testing::EndsWith(" 4096")));
}

TEST_F(GpuMetricsTest, TellsEveryProcess) {
  EXPECT_THAT(
      lines("drover_process_gpu_memory_bytes"),
      testing::ElementsAre(HasSubstr(R"(pid="10",process="python",namespace="ml")"), HasSubstr(R"(pid="11")"),
                           HasSubstr(R"(pid="12")")));  // 13 does not tell
}

/// GPU 0 in MIG mode: of instance 3 somebody uses half, of 4 nobody has any, and 5 is for programs of no use.
class MigMetricsTest : public GpuMetricsTest {
 protected:
  MigMetricsTest() {
    facts_.mig["GPU-0"].profiles = {{.name = "3g.20gb", .id = 9}, {.name = "1g.5gb", .id = 19}};
    facts_.mig["GPU-0"].instances = {
        {3, 9, {0, 4}, "MIG-a", 0}, {4, 19, {4, 1}, "MIG-b", 0}, {5, 19, {5, 1}, "", 0}};
    auto& usage = facts_.usage["GPU-0"];
    usage = {.answers = true, .memory = {40 * kMib, 10 * kMib, 30 * kMib, {}}, .temperature = 50};
    usage.instances = {{3, {20 * kMib, 10 * kMib, 10 * kMib, {}}}, {4, {5 * kMib, 0, 5 * kMib, {}}}};
    usage.processes = {{10, 10 * kMib, {}, {}, {}, {}, {3, 0}}, {13, 1, {}, {}, {}, {}, {9, 0}}};
    facts_.holders["GPU-0"] = {kMain, kOther, kSide};
    facts_.holders["MIG-a"] = {kMain, kSide};
  }
  static constexpr std::uint64_t kMib = 1 << 20;
  const std::string a_ = R"(GPU_I_PROFILE="3g.20gb",GPU_I_ID="3",)";
};

TEST_F(MigMetricsTest, MemoryIsThatOfInstancesAndOfTheirHolders) {
  EXPECT_THAT(
      lines("DCGM_FI_DEV_FB_USED"),
      testing::ElementsAre(
          testing::EndsWith(a_ + R"(namespace="ml",pod="train"} 10)"),
          testing::EndsWith(R"(DCGM_FI_DRIVER_VERSION="535.1",GPU_I_PROFILE="1g.5gb",GPU_I_ID="4"} 0)")));
  EXPECT_THAT(lines("DCGM_FI_DEV_FB_TOTAL"), testing::SizeIs(2));
  EXPECT_THAT(lines("DCGM_FI_DEV_GPU_TEMP"),
              testing::ElementsAre(testing::EndsWith(R"(DCGM_FI_DRIVER_VERSION="535.1"} 50)")));
  EXPECT_THAT(lines("drover_gpu_allocated"), testing::SizeIs(2));
}

TEST_F(MigMetricsTest, ContainersAndProcessesAreOnTheirInstances) {
  EXPECT_THAT(lines("drover_container_gpu_allocated"),
              testing::ElementsAre(HasSubstr(a_ + R"(namespace="ml",pod="train",container="main")"),
                                   HasSubstr(a_ + R"(namespace="ml",pod="train",container="side")"),
                                   HasSubstr(R"(DCGM_FI_DRIVER_VERSION="535.1",namespace="web")")));
  EXPECT_THAT(lines("drover_container_gpu_memory_bytes"),
              testing::ElementsAre(AllOf(HasSubstr(a_), testing::EndsWith(R"(container="main"} 10485760)")),
                                   AllOf(HasSubstr(a_), testing::EndsWith(R"(container="side"} 0)")),
                                   AllOf(Not(HasSubstr("GPU_I_ID")), HasSubstr(R"(pod="serve")"))));
  EXPECT_THAT(lines("drover_process_gpu_memory_bytes"),
              testing::ElementsAre(HasSubstr(a_ + R"(pid="10",process="python",namespace="ml")"),
                                   HasSubstr(R"(DCGM_FI_DRIVER_VERSION="535.1",GPU_I_ID="9",pid="13")")));
}

TEST_F(MigMetricsTest, WhatTheDriverDoesNotTellIsLeftOut) {
  EXPECT_THAT(lines("DCGM_FI_DEV_GPU_UTIL"), testing::ElementsAre(HasSubstr(R"(UUID="GPU-1")")));
  EXPECT_THAT(lines("drover_container_gpu_sm_percent"), testing::IsEmpty());
  EXPECT_THAT(lines("drover_process_gpu_sm_percent"), testing::IsEmpty());
}

TEST_F(GpuMetricsTest, TellsHealth) {
  const TimePoint now{};
  facts_.health.know("GPU-1");
  facts_.health.apply(gpu::XidSeen{"GPU-0", 48, {}}, now);
  facts_.health.apply(gpu::XidSeen{"GPU-0", 79, {}}, now);
  facts_.health.apply(gpu::XidSeen{"GPU-0", 79, {}}, now);
  facts_.usage.erase("GPU-0");
  EXPECT_THAT(lines("DCGM_FI_DEV_XID_ERRORS"),
              testing::ElementsAre(testing::EndsWith("} 79"), testing::EndsWith("} 0")));
  EXPECT_THAT(lines("drover_gpu_xid_errors_total"),
              testing::ElementsAre(testing::EndsWith(R"(xid="48"} 1)"), testing::EndsWith(R"(xid="79"} 2)")));
  EXPECT_THAT(lines("drover_gpu_healthy"),
              testing::ElementsAre(testing::EndsWith("} 0"), testing::EndsWith("} 1")));
  EXPECT_THAT(lines("drover_gpu_answers"),
              testing::ElementsAre(testing::EndsWith("} 0"), testing::EndsWith("} 1")));
  EXPECT_THAT(lines("drover_gpu_trouble"),
              testing::Contains(testing::EndsWith(R"(reason="xid",number="79",takes_out="true"} 1)")));
}

TEST_F(GpuMetricsTest, NoSeriesIsThereTwice) {
  facts_.holders["GPU-0"] = {kMain, kSide, kOther};
  facts_.holders["GPU-1"] = {kMain};
  for (const auto& family : gpu_families(facts_)) {
    std::set<Labels> seen;
    for (const auto& sample : family.samples)
      EXPECT_TRUE(seen.insert(sample.labels).second) << family.metric->name;
  }
}

TEST(GpuCatalogue, IsWhatTheDocumentationHas) {
  const auto page = read_file(DROVER_SOURCE_DIR "/docs/metrics.md").value();
  for (const auto& metric : gpu_catalogue())
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | {} | {} |\n", metric.name, to_string(metric.type),
                                            metric.help)));
}

}  // namespace
}  // namespace drover::metrics
