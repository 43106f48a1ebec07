#include "engine/fitness.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// GPUs of a machine, each with why it is unfit.
std::vector<gpu::Device> gpus(const std::string& machine, const std::vector<std::string>& unfit) {
  std::vector<gpu::Device> devices;
  for (const auto& why : unfit) {
    const auto index = static_cast<int>(devices.size());
    devices.push_back({.uuid = fmt::format("{}{}", machine, index), .index = index, .unhealthy = why});
  }
  return devices;
}

placement::Node node_of(const std::string& name, const std::vector<std::string>& unfit) {
  placement::Node node{.name = name};
  node.inventory.devices = gpus(name, unfit);
  return node;
}

TEST(Fitness, ChangesAreNewsAndWhatStaysIsNone) {
  const auto before = gpus("G", {"", "XID 79", "XID 79", "", "lost"});
  EXPECT_THAT(fitness_news(before, before), IsEmpty());
  EXPECT_THAT(fitness_news(before, gpus("G", {"lost", "", "XID 79", "", "XID 48"})),
              ElementsAre(FitnessNews{false, "GPU 0 (G0): lost"}, FitnessNews{true, "GPU 1 (G1) is fit"},
                          FitnessNews{false, "GPU 4 (G4): XID 48"}));
  EXPECT_THAT(fitness_news(before, gpus("G", {"", "XID 79"})), IsEmpty()) << "of those that are gone";
}

TEST(Fitness, OnOneMachineAGpuThatComesIsNewsToo) {
  EXPECT_THAT(fitness_news(gpus("G", {""}), gpus("G", {"", "", "lost"})),
              ElementsAre(FitnessNews{true, "GPU 1 (G1) is fit"}, FitnessNews{false, "GPU 2 (G2): lost"}));
}

TEST(Fitness, AGpuIsKnownByItsUuidWhereverItStands) {
  auto turned = gpus("G", {"", "XID 79", ""});
  std::ranges::reverse(turned);
  EXPECT_THAT(fitness_news(gpus("G", {"", "XID 79", ""}), turned), IsEmpty());
}

TEST(Fitness, NodesOfAClusterAreNamed) {
  const std::vector before{node_of("a", {"", ""}), node_of("b", {"XID 79"})};
  EXPECT_THAT(fitness_news(before, {node_of("b", {""}), node_of("a", {"", "lost"})}),
              ElementsAre(FitnessNews{true, "GPU 0 of node b (b0) is fit"},
                          FitnessNews{false, "GPU 1 of node a (a1): lost"}));
}

TEST(Fitness, NobodyHearsOfWhatComesWithItsNode) {
  const std::vector before{node_of("a", {""})};
  EXPECT_THAT(fitness_news({}, before), IsEmpty()) << "the first look";
  EXPECT_THAT(fitness_news(before, {node_of("a", {""}), node_of("b", {"", "lost"})}), IsEmpty());
  EXPECT_THAT(fitness_news(before, std::vector<placement::Node>{}), IsEmpty());
  auto described = node_of("a", {"", "lost"});
  for (auto& device : described.inventory.devices) device.uuid = "GPU-" + device.uuid;
  EXPECT_THAT(fitness_news(before, {described}), IsEmpty()) << "which were only counted before";
}

}  // namespace
}  // namespace drover::engine
