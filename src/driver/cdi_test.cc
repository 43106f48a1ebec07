#include "driver/cdi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "cdi/decode.h"
#include "cdi/write.h"

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
  input.inventory.devices[1].unhealthy = "GPU is lost";
  input.control_nodes = {{"/dev/nvidiactl", 195, 255}, {"/dev/nvidia-uvm", 508, 0}};
  input.files.files = {{"/host/usr/lib/libcuda.so.390.30", "/usr/lib/libcuda.so.390.30", false},
                       {"/run/nvidia-persistenced/socket", "/run/nvidia-persistenced/socket", true},
                       {"/state/live", "/share/live", false, true}};
  input.files.links = {{"/usr/lib/libcuda.so.1", "libcuda.so.390.30"}};
  input.files.libraries = {"/usr/lib/libcuda.so.1"};
  input.program = "/usr/bin/drover";
  return input;
}

json specification(const CdiInput& input) {
  const auto text = cdi::write_specification(cdi_specification(input).value());
  EXPECT_TRUE(cdi::decode_specification(text, "It")) << text;
  return json::parse(text);
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

TEST(CdiTest, ControlDevicesAndTheDriversFilesGoWithEveryGpu) {
  auto input = two_gpus();
  input.device_folder = "/var/lib/drover/sim/dev";
  const auto spec = specification(input);
  check_valid(spec);
  const auto& edits = spec["containerEdits"];
  EXPECT_EQ(edits["env"], json({"NVIDIA_VISIBLE_DEVICES=void"}));
  ASSERT_EQ(edits["deviceNodes"].size(), 2U);
  EXPECT_EQ(edits["deviceNodes"][0]["path"], "/dev/nvidiactl");
  EXPECT_EQ(edits["deviceNodes"][0]["hostPath"], "/var/lib/drover/sim/dev/nvidiactl");
  ASSERT_EQ(edits["mounts"].size(), 3U);
  EXPECT_EQ(edits["mounts"][0]["hostPath"], "/host/usr/lib/libcuda.so.390.30");
  EXPECT_EQ(edits["mounts"][0]["containerPath"], "/usr/lib/libcuda.so.390.30");
  EXPECT_EQ(edits["mounts"][0]["options"], json({"ro", "nosuid", "nodev", "rbind", "rprivate"}));
  EXPECT_THAT(edits["mounts"][1]["options"].get<std::vector<std::string>>(), testing::Contains("noexec"));
  EXPECT_EQ(edits["mounts"][2]["options"], json({"rw", "nosuid", "nodev", "rbind", "rprivate", "noexec"}));
}

TEST(CdiTest, HooksAreDroversOwnAndGetNothingOfTheContainersEnvironment) {
  const auto hooks = specification(two_gpus())["containerEdits"]["hooks"];
  ASSERT_EQ(hooks.size(), 2U);
  for (const auto& hook : hooks) {
    EXPECT_EQ(hook["hookName"], "createContainer");
    EXPECT_EQ(hook["path"], "/usr/bin/drover");
    EXPECT_FALSE(hook["env"].empty());
  }
  EXPECT_EQ(hooks[0]["args"], json({"drover", "cdi-hook", "create-symlinks", "--link",
                                    "libcuda.so.390.30::/usr/lib/libcuda.so.1"}));
  EXPECT_EQ(hooks[1]["args"],
            json({"drover", "cdi-hook", "update-ldcache", "--library", "/usr/lib/libcuda.so.1"}));
}

TEST(CdiTest, TheMountsOfAGuardAreLookedAt) {
  const auto files = edits_of_files({.files = {{"/state/libcuda.so.1", "/usr/lib/libcuda.so.390.30"},
                                               {"/host/libother.so", "/usr/lib/libother.so"},
                                               {"/host/libcuda.so", "/usr/local/nvidia/guard/libbehind.so"}}},
                                    "/hook");
  const auto mounts = mounts_of_guard(files, {{"/state/libcuda.so.1", "libcuda.so.1", "libbehind.so"}});
  const auto made = guard_hook(mounts, "/hook");
  EXPECT_EQ(made.path, "/hook");
  EXPECT_THAT(made.arguments, ElementsAre("drover", "cdi-hook", "check-guard", "--mount",
                                          "/state/libcuda.so.1::/usr/lib/libcuda.so.390.30", "--mount",
                                          "/host/libcuda.so::/usr/local/nvidia/guard/libbehind.so"));
}

TEST(CdiTest, GpusInDevicesOfOthersAreFoundByTheirNumbers) {
  const std::vector<gpu::DeviceNode> gpus = {{"/dev/nvidia0", 120, 7}};
  const auto with = [](std::int64_t major, std::int64_t minor) {
    cdi::Edits edits;
    edits.device_nodes = {{"/dev/innocent", "/dev/x", "c", major, minor}};
    return edits;
  };
  EXPECT_EQ(gpu_node_in(with(195, 3), gpus), "/dev/innocent");
  EXPECT_EQ(gpu_node_in(with(120, 7), gpus), "/dev/innocent");
  EXPECT_EQ(gpu_node_in(with(120, 8), gpus), "");
}

TEST(CdiTest, NothingToOfferIsAnError) {
  auto input = two_gpus();
  input.gpu_nodes.clear();
  EXPECT_EQ(cdi_specification(input).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(cdi_specification({}).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace drover::driver
