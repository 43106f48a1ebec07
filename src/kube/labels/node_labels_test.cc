#include "kube/labels/node_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fake_tree.h"
#include "base/files.h"
#include "kube/client/testing/fake_api.h"
#include "kube/labels/apply.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

gpu::Device device_of(const std::string& model, int number) {
  gpu::Device device;
  device.uuid = "GPU-" + std::to_string(number);
  device.model = model;
  device.memory_bytes = 81559ULL << 20;
  device.compute_capability = {9, 0};
  device.pci = gpu::PciAddress{0, 0x82, static_cast<std::uint32_t>(number), 0};
  device.mig = gpu::MigMode::kDisabled;
  return device;
}

NodeFacts facts_of(const std::vector<std::string>& models) {
  NodeFacts facts;
  facts.inventory.driver_version = "550.163.01";
  facts.inventory.cuda_version = "12.4";
  facts.machine = "DGX H100";
  for (const auto& model : models) {
    facts.inventory.devices.push_back(device_of(model, static_cast<int>(facts.inventory.devices.size())));
    facts.pci_classes[facts.inventory.devices.back().uuid] = "0x030200";
  }
  return facts;
}

TEST(NodeLabels, AreThoseOfFeatureDiscovery) {
  EXPECT_EQ(node_labels(facts_of({"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"}), {}),
            (Labels{{"nvidia.com/cuda.driver.major", "550"},
                    {"nvidia.com/cuda.driver.minor", "163"},
                    {"nvidia.com/cuda.driver.rev", "01"},
                    {"nvidia.com/cuda.driver-version.major", "550"},
                    {"nvidia.com/cuda.driver-version.minor", "163"},
                    {"nvidia.com/cuda.driver-version.revision", "01"},
                    {"nvidia.com/cuda.driver-version.full", "550.163.01"},
                    {"nvidia.com/cuda.runtime.major", "12"},
                    {"nvidia.com/cuda.runtime.minor", "4"},
                    {"nvidia.com/cuda.runtime-version.major", "12"},
                    {"nvidia.com/cuda.runtime-version.minor", "4"},
                    {"nvidia.com/cuda.runtime-version.full", "12.4"},
                    {"nvidia.com/gpu.machine", "DGX-H100"},
                    {"nvidia.com/gpu.mode", "compute"},
                    {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                    {"nvidia.com/gpu.count", "2"},
                    {"nvidia.com/gpu.replicas", "1"},
                    {"nvidia.com/gpu.memory", "81559"},
                    {"nvidia.com/gpu.family", "hopper"},
                    {"nvidia.com/gpu.compute.major", "9"},
                    {"nvidia.com/gpu.compute.minor", "0"},
                    {"nvidia.com/gpu.sharing-strategy", "none"},
                    {"nvidia.com/mig.capable", "true"},
                    {"nvidia.com/mps.capable", "false"},
                    {"nvidia.com/vgpu.present", "false"},
                    {"drover/gpu.count", "2"},
                    {"drover/gpu.models", "1"},
                    {"drover/gpu.model.NVIDIA-H100-80GB-HBM3", "2"}}));
}

TEST(NodeLabels, CountEachModelOfANodeWithSeveral) {
  const auto labels = node_labels(facts_of({"Tesla V100", "A100 (PCIe)", "A100 (PCIe)"}), {});
  EXPECT_THAT(labels, IsSupersetOf(Labels{{"nvidia.com/gpu.product", "Tesla-V100"},
                                          {"nvidia.com/gpu.count", "1"},
                                          {"drover/gpu.count", "3"},
                                          {"drover/gpu.models", "2"},
                                          {"drover/gpu.model.Tesla-V100", "1"},
                                          {"drover/gpu.model.A100-PCIe", "2"}}));
}

TEST(NodeLabels, TellOfSharing) {
  PluginConfig config;
  config.shares = {{.resource = "nvidia.com/gpu", .replicas = 4}};
  auto facts = facts_of({std::string(70, 'x')});
  const auto labels = node_labels(facts, config);
  EXPECT_THAT(labels, IsSupersetOf(Labels{{"nvidia.com/gpu.product", std::string(56, 'x') + "-SHARED"},
                                          {"nvidia.com/gpu.replicas", "4"},
                                          {"nvidia.com/gpu.sharing-strategy", "time-slicing"}}));
  config.shares[0].way = ShareWay::kMps;
  EXPECT_THAT(node_labels(facts, config),
              IsSupersetOf(Labels{{"nvidia.com/mps.capable", "true"},
                                  {"nvidia.com/gpu.product", std::string(56, 'x') + "-SHARED"},
                                  {"nvidia.com/gpu.sharing-strategy", "mps"}}));
  config.shares[0] = {
      .resource = "nvidia.com/gpu", .replicas = 0, .way = ShareWay::kGuard, .memory = 8ULL << 30};
  facts.inventory.devices[0].memory_bytes = 40ULL << 30;
  EXPECT_THAT(node_labels(facts, config),
              IsSupersetOf(Labels{{"nvidia.com/mps.capable", "false"},
                                  {"nvidia.com/gpu.replicas", "5"},
                                  {"nvidia.com/gpu.sharing-strategy", "drover"}}));
  config.shares[0].rename = "nvidia.com/gpu.shared";
  EXPECT_THAT(node_labels(facts, config), Contains(Pair("nvidia.com/gpu.product", std::string(63, 'x'))));
  facts.inventory.devices[0].mig = gpu::MigMode::kEnabled;
  EXPECT_THAT(node_labels(facts, config), Contains(Pair("nvidia.com/gpu.replicas", "0")));
}

/// Of nodes with GPUs in MIG mode, cut for limits.
class MigLabels : public ::testing::Test {
 protected:
  void offer(int gpu, const std::string& profile, unsigned slices) {
    facts.inventory.devices[static_cast<std::size_t>(gpu)].mig = gpu::MigMode::kEnabled;
    const gpu::MigAttributes has{.multiprocessors = 16 * slices,
                                 .copy_engines = slices,
                                 .decoders = 2,
                                 .encoders = 3,
                                 .jpeg_engines = 4,
                                 .ofa_engines = 5,
                                 .memory_bytes = slices * 9984ULL << 20};
    const bool single = config.mig == MigStrategy::kSingle;
    facts.offered.parts["MIG-" + std::to_string(facts.offered.parts.size())] = {
        single ? "nvidia.com/gpu" : "nvidia.com/mig-" + profile,
        facts.inventory.devices[static_cast<std::size_t>(gpu)].uuid,
        {},
        {.name = profile, .slices = slices, .attributes = has}};
  }
  /// Those of one resource, without its name.
  Labels of(const std::string& resource) const {
    Labels found;
    for (const auto& [name, value] : node_labels(facts, config))
      if (name.starts_with(resource + ".")) found[name.substr(resource.size() + 1)] = value;
    return found;
  }

  NodeFacts facts = facts_of({"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"});
  PluginConfig config{.mig = MigStrategy::kMixed};
};

TEST_F(MigLabels, MixedTellsOfEachProfileBesideTheGpus) {
  offer(1, "1g.10gb", 1);
  offer(1, "1g.10gb", 1);
  offer(1, "3g.40gb", 3);
  EXPECT_EQ(of("nvidia.com/mig-1g.10gb"), (Labels{{"product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"},
                                                  {"count", "2"},
                                                  {"replicas", "1"},
                                                  {"sharing-strategy", "none"},
                                                  {"memory", "9984"},
                                                  {"multiprocessors", "16"},
                                                  {"slices.gi", "1"},
                                                  {"slices.ci", "1"},
                                                  {"engines.copy", "1"},
                                                  {"engines.decoder", "2"},
                                                  {"engines.encoder", "3"},
                                                  {"engines.jpeg", "4"},
                                                  {"engines.ofa", "5"}}));
  EXPECT_THAT(of("nvidia.com/mig-3g.40gb"), IsSupersetOf(Labels{{"count", "1"}, {"slices.gi", "3"}}));
  EXPECT_THAT(
      of("nvidia.com/gpu"),
      IsSupersetOf(Labels{
          {"product", "NVIDIA-H100-80GB-HBM3"}, {"count", "2"}, {"replicas", "1"}, {"memory", "81559"}}));
  EXPECT_THAT(of("nvidia.com/mig"), IsSupersetOf(Labels{{"strategy", "mixed"}, {"capable", "true"}}));
}

TEST_F(MigLabels, SingleTellsOfPartsInsteadOfGpus) {
  config.mig = MigStrategy::kSingle;
  config.shares = {{.resource = "nvidia.com/gpu", .replicas = 4}};
  offer(0, "1g.10gb", 1);
  offer(1, "1g.10gb", 1);
  EXPECT_THAT(of("nvidia.com/gpu"),
              IsSupersetOf(Labels{{"product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED"},
                                  {"count", "2"},
                                  {"replicas", "4"},
                                  {"sharing-strategy", "time-slicing"},
                                  {"memory", "9984"},
                                  {"slices.ci", "1"},
                                  {"family", "hopper"},
                                  {"compute.major", "9"}}));
  EXPECT_THAT(of("nvidia.com/mig"), Contains(Pair("strategy", "single")));
}

TEST_F(MigLabels, SingleSaysSoWhereItCannotBe) {
  config.mig = MigStrategy::kSingle;
  facts.inventory.devices[1].mig = gpu::MigMode::kEnabled;
  facts.inventory.devices[1].model = "Cut";
  facts.offered.trouble = "not alike";
  EXPECT_THAT(of("nvidia.com/gpu"),
              IsSupersetOf(Labels{
                  {"product", "Cut-MIG-INVALID"}, {"count", "0"}, {"replicas", "0"}, {"memory", "0"}}));
}

TEST_F(MigLabels, AWholeGpuComesBeforeOneThatIsCut) {
  config.mig = MigStrategy::kNone;
  config.shares = {{.resource = "nvidia.com/gpu", .replicas = 4}};
  facts.inventory.devices[0].mig = gpu::MigMode::kEnabled;
  EXPECT_THAT(
      of("nvidia.com/gpu"),
      IsSupersetOf(Labels{{"product", "NVIDIA-H100-80GB-HBM3-SHARED"}, {"count", "2"}, {"replicas", "4"}}));
  facts.inventory.devices[1].mig = gpu::MigMode::kEnabled;
  EXPECT_THAT(of("nvidia.com/gpu"), IsSupersetOf(Labels{{"product", "NVIDIA-H100-80GB-HBM3"},
                                                        {"count", "2"},
                                                        {"replicas", "0"},
                                                        {"sharing-strategy", "none"}}));
  EXPECT_THAT(of("nvidia.com/mig"), Not(Contains(Key("strategy"))));
}

TEST(NodeLabels, ClaimNothingThatIsNotKnown) {
  NodeFacts facts;
  EXPECT_EQ(node_labels(facts, {}), Labels());
  facts.inventory.devices = {gpu::Device{.uuid = "PCI-0000:01:00.0"}};
  const auto labels = node_labels(facts, {});
  for (const auto* name : {"gpu.product", "gpu.memory", "gpu.family", "cuda.driver.major"})
    EXPECT_THAT(labels, Not(Contains(Key(std::string("nvidia.com/") + name))));
  EXPECT_THAT(labels, IsSupersetOf(Labels{{"nvidia.com/gpu.mode", "unknown"},
                                          {"nvidia.com/gpu.machine", "unknown"},
                                          {"drover/gpu.model.unknown", "1"}}));
  facts.inventory.simulated = true;
  EXPECT_THAT(node_labels(facts, {}), Contains(Pair("drover/gpu.simulated", "true")));
}

TEST(NodeLabels, NameTheCliqueOfTheNode) {
  const std::string clique = "3e8a4c8a-8d8c-4a3e-9a5f-1b2c3d4e5f60.32766";
  auto facts = facts_of({"NVIDIA GB200", "NVIDIA GB200"});
  EXPECT_THAT(node_labels(facts, {}), Not(Contains(Key("nvidia.com/gpu.clique"))));
  facts.inventory.devices[1].clique = clique;
  EXPECT_THAT(node_labels(facts, {}), Contains(Pair("nvidia.com/gpu.clique", clique)));
  facts.inventory.devices[0].clique = "another.1";
  EXPECT_THAT(node_labels(facts, {}), Not(Contains(Key("nvidia.com/gpu.clique"))));
}

TEST(LabelValue, IsThatOfFeatureDiscovery) {
  EXPECT_EQ(label_value("NVIDIA  GeForce RTX 3090 (Laptop)"), "NVIDIA-GeForce-RTX-3090-Laptop");
  EXPECT_EQ(label_value(" a - b "), "a---b");
}

RC_GTEST_PROP(LabelValueProperty, CanStandInALabel, (const std::string& text)) {
  const auto value = label_value(text);
  const auto is_plain = [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; };
  RC_ASSERT(value.size() <= 63U);
  RC_ASSERT((value.empty() || (is_plain(value.front()) && is_plain(value.back()))));
  RC_ASSERT(std::ranges::all_of(
      value, [&](unsigned char c) { return is_plain(c) || c == '-' || c == '_' || c == '.'; }));
  RC_ASSERT(label_value(value) == value);
}

TEST(NodeFacts, AreReadFromTheKernel) {
  FakeTree tree;
  tree.file("sys/class/dmi/id/product_name", "PowerEdge R750\n");
  tree.file("sys/bus/pci/devices/0000:82:01.0/class", "0x030000\n");
  gpu::Inventory inventory;
  inventory.devices = {device_of("x", 0), device_of("x", 1)};
  const auto facts = read_node_facts(tree.root(), inventory);
  EXPECT_EQ(facts.machine, "PowerEdge R750");
  EXPECT_EQ(facts.pci_classes, (std::map<std::string, std::string>{{"GPU-1", "0x030000"}}));
  EXPECT_EQ(facts.inventory, inventory);
}

TEST(ApplyLabels, LeavesOthersAlone) {
  testing::FakeApi api;
  ASSERT_TRUE(api.create({kNodes}, {{"metadata", {{"name", "a"}, {"labels", {{"theirs", "x"}}}}}}));
  EXPECT_TRUE(apply_labels(api, "a", {{"stays", "1"}, {"goes", "1"}}));
  EXPECT_TRUE(apply_labels(api, "a", {{"stays", "2"}}));
  EXPECT_EQ((*api.get({kNodes, "", "a"}))["metadata"]["labels"], json({{"theirs", "x"}, {"stays", "2"}}));
  EXPECT_TRUE(apply_labels(api, "a", {}));
  EXPECT_EQ((*api.get({kNodes, "", "a"}))["metadata"]["labels"], json({{"theirs", "x"}}));
}

TEST(FeatureFile, HasALineForEachLabel) {
  FakeTree tree;
  EXPECT_TRUE(write_feature_file(tree / "gpus", {{"b", "2"}, {"a", "1"}}));
  EXPECT_EQ(read_file(tree / "gpus"), "a=1\nb=2\n");
  EXPECT_TRUE(write_feature_file(tree / "gpus", {}));
  EXPECT_EQ(read_file(tree / "gpus"), "");
  EXPECT_FALSE(write_feature_file(tree / "absent/gpus", {}));
}

}  // namespace
}  // namespace drover::kube
