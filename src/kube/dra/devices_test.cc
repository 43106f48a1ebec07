#include "kube/dra/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/dra/attributes.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;
using ::testing::SizeIs;

gpu::Device h100(int minor) {
  gpu::Device device;
  device.uuid = "GPU-" + std::to_string(minor);
  device.index = device.minor.emplace(minor);
  device.model = "NVIDIA H100 80GB HBM3";
  device.brand = "nvidia";
  device.memory_bytes = 85520809984;
  device.compute_capability = gpu::ComputeCapability{9, 0};
  device.pci = gpu::PciAddress{0, 0x1bU + static_cast<unsigned>(minor), 0, 0};
  device.numa_node = 1;
  return device;
}

View view_of(int count, int nvlinks) {
  View view;
  view.inventory.driver_version = "550.163.01";
  view.inventory.cuda_version = "12.4";
  for (int i = 0; i < count; ++i) view.inventory.devices.push_back(h100(i));
  const auto size = static_cast<std::size_t>(count);
  view.inventory.links.assign(size, std::vector<gpu::Link>(size, {nvlinks, gpu::PcieLevel::kAcross}));
  return view;
}

TEST(Devices, HaveTheAttributesOfNvidiasDriver) {
  auto view = view_of(1, 0);
  view.pcie_roots["GPU-0"] = "pci0000:15";
  EXPECT_EQ(devices_of(view, Sharing::kWhole, "gpu.nvidia.com"), std::vector({json::parse(R"({
    "name": "gpu-0",
    "attributes": {
      "type": {"string": "gpu"},
      "uuid": {"string": "GPU-0"},
      "productName": {"string": "NVIDIA H100 80GB HBM3"},
      "brand": {"string": "Nvidia"},
      "architecture": {"string": "Hopper"},
      "cudaComputeCapability": {"version": "9.0.0"},
      "driverVersion": {"version": "550.163.1"},
      "cudaDriverVersion": {"version": "12.4.0"},
      "resource.kubernetes.io/pciBusID": {"string": "0000:1b:00.0"},
      "resource.kubernetes.io/pcieRoot": {"string": "pci0000:15"},
      "resource.kubernetes.io/numaNode": {"int": 1}
    },
    "capacity": {"memory": {"value": "81559Mi"}}
  })")}));
}

TEST(Devices, SayByWhichNvlinksTheyAreJoined) {
  auto view = view_of(4, 0);
  const auto join = [&](std::size_t a, std::size_t b, int links) {
    view.inventory.links[a][b].nvlinks = view.inventory.links[b][a].nvlinks = links;
  };
  join(0, 1, 4);
  join(1, 2, 2);
  const auto attributes = attributes_of(view);
  EXPECT_EQ(attributes[0]["nvlinkDomain"], json({{"string", "0-1"}}));
  EXPECT_EQ(attributes[1]["nvlinkDomain"], json({{"string", "0-1"}}));
  EXPECT_EQ(attributes[0]["nvlinkDomainSize"], json({{"int", 2}}));
  EXPECT_EQ(attributes[0]["nvlinkDomainLinks"], json({{"int", 4}}));
  EXPECT_EQ(attributes[1]["nvlinkDomain2"], json({{"string", "1-2"}}));
  EXPECT_FALSE(attributes[2].contains("nvlinkDomain"));
  EXPECT_FALSE(attributes[3].contains("nvlinkDomain2"));
}

TEST(Devices, SayWhichSwitchAndBoardTheyAreOn) {
  auto view = view_of(3, 0);
  view.inventory.links[0][2].pcie = view.inventory.links[2][0].pcie = gpu::PcieLevel::kSwitch;
  view.inventory.devices[1].board_id = view.inventory.devices[2].board_id = 7;
  const auto attributes = attributes_of(view);
  EXPECT_EQ(attributes[0]["pcieSwitch"], json({{"string", "0,2"}}));
  EXPECT_EQ(attributes[2]["pcieSwitch"], attributes[0]["pcieSwitch"]);
  EXPECT_EQ(attributes[1]["board"], json({{"string", "1-2"}}));
  EXPECT_FALSE(attributes[0].contains("board"));
}

TEST(Devices, StayWithinTheLimitsOfTheApi) {
  auto view = view_of(64, 1);
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 64; ++j)
      if ((i + j) % 2 == 1 || (i * j) % 3 == 1) view.inventory.links[i][j].nvlinks = 0;
  view.inventory.devices[0].model = std::string(300, 'x');
  view.pcie_roots["GPU-0"] = std::string(300, 'x');
  for (const auto& device : devices_of(view, Sharing::kShare, "gpu.nvidia.com")) {
    EXPECT_LE(device["attributes"].size() + device["capacity"].size(), 32U);
    for (const auto& attribute : device["attributes"])
      if (attribute.contains("string")) EXPECT_LE(attribute["string"].get<std::string>().size(), 64U);
  }
}

TEST(Devices, WithoutFactsHaveNone) {
  View view;
  view.inventory.devices = {gpu::Device{.uuid = "PCI-0000:1b:00.0", .minor = 3},
                            gpu::Device{.uuid = "INDEX-1"}};
  const auto devices = devices_of(view, Sharing::kMemory, "gpu.nvidia.com");
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0]["name"], "gpu-3");
  EXPECT_EQ(devices[0]["attributes"].size(), 2U);
  EXPECT_FALSE(devices[0].contains("capacity"));
  EXPECT_FALSE(devices[0].contains("allowMultipleAllocations"));
}

TEST(Devices, InMigModeAreNotOfferedAsAWhole) {
  auto view = view_of(1, 0);
  view.inventory.devices[0].mig = gpu::MigMode::kEnabled;
  EXPECT_THAT(devices_of(view, Sharing::kWhole, "gpu.nvidia.com"), IsEmpty());
}

TEST(Devices, AreSharedByMemoryInSteps) {
  auto view = view_of(1, 0);
  view.inventory.devices[0].memory_bytes = (80ULL << 30) + 5;
  const auto device = devices_of(view, Sharing::kMemory, "gpu.nvidia.com").at(0);
  EXPECT_EQ(device["allowMultipleAllocations"], true);
  EXPECT_EQ(device["capacity"], json::parse(R"({"memory": {"value": "80Gi", "requestPolicy": {
    "default": "80Gi", "validRange": {"min": "1Mi", "max": "80Gi", "step": "1Mi"}}}})"));
}

TEST(Devices, AreSharedByThousandths) {
  const auto device = devices_of(view_of(1, 0), Sharing::kShare, "gpu.nvidia.com").at(0);
  EXPECT_EQ(device["allowMultipleAllocations"], true);
  EXPECT_EQ(device["capacity"], json::parse(R"({
    "memory": {"value": "81559Mi", "requestPolicy": {"default": "0", "validValues": ["0"]}},
    "share": {"value": "1k", "requestPolicy": {
      "default": "1k", "validRange": {"min": "1", "max": "1k", "step": "1"}}}})"));
}

TEST(Devices, AreTaintedByTheirTroubles) {
  auto view = view_of(2, 0);
  view.troubles["GPU-1"] = {
      {"gpu.nvidia.com/xid", "31", Effect::kNone, TimePoint(std::chrono::seconds(5)), "noise"},
      {"gpu.nvidia.com/xid", "79", Effect::kNoSchedule, TimePoint(std::chrono::milliseconds(7001)),
       "fell off the bus"}};
  const auto devices = devices_of(view, Sharing::kWhole, "gpu.nvidia.com");
  EXPECT_FALSE(devices[0].contains("taints"));
  EXPECT_EQ(devices[1]["taints"], json::parse(R"([
    {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule", "timeAdded": "1970-01-01T00:00:07Z"},
    {"key": "gpu.nvidia.com/xid", "value": "31", "effect": "None", "timeAdded": "1970-01-01T00:00:05Z"}])"));
  EXPECT_EQ(ailment_of(view, view.inventory.devices[1]), "fell off the bus");
  EXPECT_EQ(ailment_of(view, view.inventory.devices[0]), "");
}

TEST(Devices, AreTaintedWhenTheyAreUnhealthy) {
  auto view = view_of(1, 0);
  view.inventory.devices[0].unhealthy = "GPU is lost";
  EXPECT_EQ(devices_of(view, Sharing::kWhole, "gpu.nvidia.com")[0]["taints"],
            json::parse(R"([{"key": "gpu.nvidia.com/unfit", "effect": "NoSchedule"}])"));
  EXPECT_EQ(ailment_of(view, view.inventory.devices[0]), "GPU is lost");
}

TEST(SemanticVersion, HasThreeNumbersWithoutLeadingZeros) {
  EXPECT_EQ(semantic_version("550.163.01"), "550.163.1");
  EXPECT_EQ(semantic_version("390.30"), "390.30.0");
  EXPECT_EQ(semantic_version("12"), "12.0.0");
  for (const char* text : {"", ".", "1.", "1..2", "1.2.3.4", "a", "1.9999999999"})
    EXPECT_FALSE(semantic_version(text)) << text;
}

}  // namespace
}  // namespace drover::kube::dra
