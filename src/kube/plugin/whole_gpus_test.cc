#include "kube/plugin/whole_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/discovery.h"
#include "kube/gpu_topology.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::machine;
using testing::uuid;

/// "0", or "0: why" of one that is withheld.
std::vector<std::string> shown(const gpu::Inventory& whole) {
  std::vector<std::string> words;
  for (const auto& device : whole.devices)
    words.push_back(std::to_string(device.index) + (device.unhealthy.empty() ? "" : ": " + device.unhealthy));
  return words;
}

TEST(WholeGpus, AreWithheldAsTheKubeletDoesNotGiveThem) {
  auto gpus = machine(4);
  gpus.devices[3].unhealthy = "XID 79";
  PluginConfig config;
  config.resources.push_back({"nvidia.com/x", "*X*"});
  const Holders holders = {{uuid(0), {"nvidia.com/gpu"}}, {uuid(1), {"nvidia.com/x"}}};
  const auto whole = whole_gpus(gpus, offer(gpus, config, holders, {{uuid(2), "in use by a claim"}}));
  EXPECT_THAT(shown(whole),
              ElementsAre("0", "1: in use as nvidia.com/x", "2: in use by a claim", "3: XID 79"));
  const auto read = read_topology(write_topology(whole)).value();
  EXPECT_EQ(read.links, gpus.links);
  EXPECT_EQ(read.devices[3].unhealthy, "XID 79");
}

TEST(WholeGpus, LeaveOutWhatIsSharedOrCut) {
  auto gpus = machine(4);
  PluginConfig config;
  config.shares = {{"nvidia.com/gpu", 2, "nvidia.com/gpu.shared", {"0"}}};
  gpus.devices[1].mig = gpu::MigMode::kEnabled;
  gpus.devices[1].unhealthy = gpu::kInMigMode;
  const auto whole = whole_gpus(gpus, offer(gpus, config, {}, {}));
  EXPECT_THAT(shown(whole), ElementsAre("2", "3"));
  EXPECT_EQ(whole.links[0][1], gpus.links[2][3]);
  // Numbers of a name that has both kinds are of replicas.
  config.shares.front().rename.clear();
  EXPECT_THAT(shown(whole_gpus(gpus, offer(gpus, config, {}, {}))), IsEmpty());
  EXPECT_THAT(shown(whole_gpus(gpus, {})), IsEmpty());
}

}  // namespace
}  // namespace drover::kube
