#include "driver/cdi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

namespace drover::driver {
namespace {

using nlohmann::json;
using testing::ElementsAre;

CdiInput two_gpus() {
  CdiInput input;
  input.inventory.devices.resize(3);
  for (int i = 0; i < 3; ++i) {
    auto& device = input.inventory.devices[static_cast<std::size_t>(i)];
    device.index = i;
    device.minor = 10 + i;
    device.uuid = "GPU-0000-" + std::to_string(i);
    input.gpu_nodes.push_back({"/dev/nvidia" + std::to_string(10 + i), 195, static_cast<unsigned>(10 + i)});
  }
  input.inventory.devices[1].unfit = "GPU is lost";
  input.control_nodes = {{"/dev/nvidiactl", 195, 255}, {"/dev/nvidia-uvm", 508, 0}};
  input.volume = "/var/lib/drover/driver/nvidia_390.30";
  return input;
}

json specification(const CdiInput& input) {
  return json::parse(cdi_specification(input).value());
}

/// The rules of the CDI specification that a reader enforces.
void check_valid(const json& spec) {
  ASSERT_EQ(spec.at("cdiVersion"), "0.5.0");
  ASSERT_TRUE(std::regex_match(spec.at("kind").get<std::string>(),
                               std::regex("[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")));
  const auto check_edits = [](const json& edits) {
    for (const auto& node : edits.at("deviceNodes")) {
      ASSERT_TRUE(node.at("path").get<std::string>().starts_with("/dev/"));
      ASSERT_EQ(node.at("type"), "c");
      ASSERT_EQ(node.at("permissions"), "rw");
    }
  };
  check_edits(spec.at("containerEdits"));
  std::set<std::string> names;
  for (const auto& device : spec.at("devices")) {
    const auto name = device.at("name").get<std::string>();
    ASSERT_TRUE(std::regex_match(name, std::regex("[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?"))) << name;
    ASSERT_TRUE(names.insert(name).second) << name;
    check_edits(device.at("containerEdits"));
  }
}

TEST(CdiTest, OffersFitGpusByIndexAndUuidAndAll) {
  const auto spec = specification(two_gpus());
  check_valid(spec);
  std::vector<std::string> names;
  std::vector<std::size_t> nodes;
  for (const auto& device : spec["devices"]) {
    names.push_back(device["name"]);
    nodes.push_back(device["containerEdits"]["deviceNodes"].size());
  }
  EXPECT_THAT(names, ElementsAre("0", "GPU-0000-0", "2", "GPU-0000-2", "all"));
  EXPECT_THAT(nodes, ElementsAre(1, 1, 1, 1, 2));
  EXPECT_EQ(spec["devices"][2]["containerEdits"]["deviceNodes"][0]["minor"], 12);
}

TEST(CdiTest, ControlDevicesAndTheVolumeGoWithEveryGpu) {
  auto input = two_gpus();
  input.device_folder = "/var/lib/drover/sim/dev";
  const auto spec = specification(input);
  check_valid(spec);
  const auto& edits = spec["containerEdits"];
  ASSERT_EQ(edits["deviceNodes"].size(), 2U);
  EXPECT_EQ(edits["deviceNodes"][0]["path"], "/dev/nvidiactl");
  EXPECT_EQ(edits["deviceNodes"][0]["hostPath"], "/var/lib/drover/sim/dev/nvidiactl");
  ASSERT_EQ(edits["mounts"].size(), 1U);
  EXPECT_EQ(edits["mounts"][0]["hostPath"], input.volume);
  EXPECT_EQ(edits["mounts"][0]["containerPath"], "/usr/local/nvidia");
  EXPECT_THAT(edits["mounts"][0]["options"].get<std::vector<std::string>>(), testing::Contains("ro"));
}

TEST(CdiTest, NothingToOfferIsAnError) {
  auto input = two_gpus();
  input.gpu_nodes.clear();
  EXPECT_EQ(cdi_specification(input).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(cdi_specification({}).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace drover::driver
