#include "kube/usage/attribution.h"

#include <gmock/gmock.h>

namespace drover::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const std::string kId(64, 'a');
const std::string kOtherId(64, 'b');
constexpr const char* kPod = "pod11111111-2222-3333-4444-555555555555";
constexpr const char* kPodSlice = "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice";

class OwnerTest : public testing::Test {
 protected:
  metrics::Owner owner_of(const std::string& cgroups) const { return owner_by_cgroup(running_)(cgroups); }

  const metrics::Owner mine_{{"namespace", "ml"}, {"pod", "train"}, {"container", "main"}};
  std::vector<RunningContainer> running_{{kId, "ml", "train", "main"}, {kOtherId, "web", "other", "main"}};
};

TEST_F(OwnerTest, IsFoundHoweverCgroupsAreNamed) {
  for (const auto& path :
       {fmt::format("/kubepods/besteffort/{}/{}", kPod, kId), fmt::format("/kubepods/{}/{}/init", kPod, kId),
        fmt::format("/kn1/kubepods/burstable/{}/{}", kPod, kId),
        fmt::format("/kubepods.slice/kubepods-burstable.slice/{}/cri-containerd-{}.scope", kPodSlice, kId),
        fmt::format("/kubepods.slice/{}/crio-{}.scope", kPodSlice, kId),
        fmt::format("/kubepods.slice/{}/crio-{}.scope/container", kPodSlice, kId),
        fmt::format("/system.slice/containerd.service/{}:cri-containerd:{}", kPodSlice, kId),
        fmt::format("/../../{}/cri-containerd-{}.scope", kPodSlice, kId),
        fmt::format("/docker/{}/kubelet/kubepods/{}/{}", std::string(64, 'c'), kPod, kId)}) {
    EXPECT_EQ(owner_of("0::" + path + "\n"), mine_) << path;
    EXPECT_EQ(owner_of("0::/\n4:memory:" + path), mine_) << path;
  }
}

TEST_F(OwnerTest, CannotBeChangedFromWithin) {
  EXPECT_EQ(owner_of("0::/kubepods/" + kId + "/" + kOtherId), mine_);
}

TEST_F(OwnerTest, IsNobodyWhereNoContainerIsKnown) {
  for (const auto& cgroups :
       {std::string(), std::string("0::/system.slice/sshd.service"), "0::/kubepods/" + kId + "a",
        "0::/kubepods/" + std::string(64, 'c'), "0::/" + std::string(64, 'A')})
    EXPECT_THAT(owner_of(cgroups), IsEmpty()) << cgroups;
}

class HoldersTest : public testing::Test {
 protected:
  HoldersTest() {
    for (int i = 0; i < 3; ++i) {
      gpu::Device device;
      device.uuid = fmt::format("GPU-{}", i);
      device.minor = i;
      inventory_.devices.push_back(device);
    }
  }
  static metrics::Owner owner(const std::string& pod, const std::string& container = "main") {
    return {{"namespace", "ml"}, {"pod", pod}, {"container", container}};
  }
  std::map<std::string, std::vector<metrics::Owner>> holders(
      const std::vector<ContainerUse>& uses,
      const std::optional<std::vector<RunningContainer>>& running = std::nullopt) const {
    return gpu_holders(inventory_, mig_, {"gpu.nvidia.com", "node1"}, uses, running);
  }

  gpu::Inventory inventory_;
  std::map<std::string, gpu::MigGpu> mig_;
};

TEST_F(HoldersTest, AreThoseOfDevicesReplicasAndClaims) {
  const std::vector<ContainerUse> uses{
      {"ml", "a", "main", {{"nvidia.com/gpu", {"GPU-0"}}}, {}},
      {"ml", "b", "main", {{"nvidia.com/gpu.shared", {"GPU-1::0", "GPU-1::3"}}}, {}},
      {"ml", "c", "main", {{"nvidia.com/gpu.shared", {"GPU-1::1"}}}, {}},
      {"ml", "d", "one", {}, {{"claim", "gpu.nvidia.com", "node1", "gpu-2", ""}}},
      {"ml", "d", "two", {}, {{"claim", "gpu.nvidia.com", "node1", "gpu-2", ""}}}};
  EXPECT_THAT(holders(uses), ElementsAre(Pair("GPU-0", ElementsAre(owner("a"))),
                                         Pair("GPU-1", ElementsAre(owner("b"), owner("c"))),
                                         Pair("GPU-2", ElementsAre(owner("d", "one"), owner("d", "two")))));
}

TEST_F(HoldersTest, OfAPartHoldItsGpu) {
  EXPECT_THAT(
      holders({{"ml", "a", "main", {}, {{"claim", "gpu.nvidia.com", "node1", "gpu-2-mig-1g5gb-19-0", ""}}}}),
      ElementsAre(Pair("GPU-2", ElementsAre(owner("a")))));
}

TEST_F(HoldersTest, OfMigDevicesAreThoseOfLimitsAndClaims) {
  mig_["GPU-2"].profiles = {{.name = "1g.5gb", .id = 19}, {.name = "3g.20gb", .id = 9}};
  mig_["GPU-2"].instances = {{7, 19, {0, 1}, "MIG-a", 0}, {8, 19, {1, 1}, "MIG-b", 0}, {9, 9, {4, 4}, "", 0}};
  const std::vector<ContainerUse> uses{
      {"ml", "limit", "main", {{"nvidia.com/mig-1g.5gb", {"MIG-a"}}}, {}},
      {"ml", "share", "main", {{"nvidia.com/mig-1g.5gb.shared", {"MIG-a::1"}}}, {}},
      {"ml", "claim", "main", {}, {{"claim", "gpu.nvidia.com", "node1", "gpu-2-mig-1g5gb-19-1", ""}}}};
  EXPECT_THAT(holders(uses),
              ElementsAre(Pair("GPU-2", ElementsAre(owner("claim"), owner("limit"), owner("share"))),
                          Pair("MIG-a", ElementsAre(owner("limit"), owner("share"))),
                          Pair("MIG-b", ElementsAre(owner("claim")))));
}

TEST_F(HoldersTest, AreNotThoseOfOthersDevices) {
  EXPECT_THAT(holders({{"ml", "a", "main", {{"example.com/nic", {"nic-1"}}}, {}},
                       {"ml", "b", "main", {}, {{"claim", "gpu.example.com", "node1", "gpu-2", ""}}},
                       {"ml", "c", "main", {}, {{"claim", "gpu.nvidia.com", "node2", "gpu-2", ""}}},
                       {"ml", "d", "main", {}, {{"claim", "gpu.nvidia.com", "node1", "gpu-9", ""}}}}),
              IsEmpty());
}

TEST_F(HoldersTest, AnEndedPodGivesWayToTheOneThatRuns) {
  const std::vector<ContainerUse> uses{{"ml", "ended", "main", {{"nvidia.com/gpu", {"GPU-0"}}}, {}},
                                       {"ml", "next", "main", {{"nvidia.com/gpu", {"GPU-0"}}}, {}},
                                       {"ml", "starting", "main", {{"nvidia.com/gpu", {"GPU-1"}}}, {}}};
  EXPECT_THAT(
      holders(uses, {{{"1", "ml", "next", "main"}}}),
      ElementsAre(Pair("GPU-0", ElementsAre(owner("next"))), Pair("GPU-1", ElementsAre(owner("starting")))));
  EXPECT_THAT(holders(uses).at("GPU-0"), testing::SizeIs(2));  // nobody tells which runs
}

TEST(Newcomers, AreLookedForAFewTimesAndNotForEver) {
  Newcomers newcomers;
  EXPECT_FALSE(newcomers.see(""));
  for (int look = 0; look < Newcomers::kLooks; ++look)
    EXPECT_TRUE(newcomers.see("0::/kubepods/pod1/a")) << look;
  EXPECT_FALSE(newcomers.see("0::/kubepods/pod1/a"));
  EXPECT_TRUE(newcomers.see("0::/kubepods/pod1/b"));
  for (std::size_t i = 0; i < 2 * Newcomers::kMost; ++i) newcomers.see("0::/" + std::to_string(i));
  EXPECT_TRUE(newcomers.see("0::/kubepods/pod1/c"));
}

}  // namespace
}  // namespace drover::kube
