#include "kube/plugin/gpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fake_tree.h"
#include "base/files.h"
#include "cdi/registry.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using testing::uuid;
using namespace std::chrono_literals;

class GpuSetsTest : public ::testing::Test {
 protected:
  /// What a container's environment says by these devices, as container engines read them.
  std::vector<std::string> told_by(std::vector<std::string> devices) const {
    std::vector<cdi::DeviceName> names;
    for (const auto& device : devices) names.push_back(cdi::parse_device_name(device).value());
    const auto edits = registry().edits_of(names);
    return edits ? edits->environment : std::vector<std::string>{edits.error().message};
  }
  bool knows(const GpuSet& gpus) const {
    return registry().devices().contains(cdi::parse_device_name(set_device(gpus)).value());
  }
  cdi::Registry registry() const { return cdi::Registry::read({tree_.root()}); }

  FakeTree tree_;
  const GpuSets::Clock::time_point start_ = GpuSets::Clock::now();
  const GpuSet pair_ = {uuid(0), uuid(1)}, single_ = {uuid(2)};
};

TEST_F(GpuSetsTest, SayWhoseGpusAContainerHas) {
  GpuSets sets(tree_.root());
  ASSERT_TRUE(sets.add(pair_, start_));
  ASSERT_TRUE(sets.add(single_, start_));
  EXPECT_THAT(told_by({set_device({uuid(1), uuid(0)})}),
              ElementsAre("NVIDIA_VISIBLE_DEVICES=" + uuid(0) + "," + uuid(1)));
  EXPECT_THAT(told_by({set_device(single_)}), ElementsAre("NVIDIA_VISIBLE_DEVICES=" + uuid(2)));
  EXPECT_THAT(registry().problems(), IsEmpty());
  EXPECT_FALSE(knows({uuid(0)})) << "a part of a set is another set";
}

TEST_F(GpuSetsTest, HaveAPlaceForAllPartsOfALargeMachine) {
  GpuSet all;
  for (int i = 0; i < 16 * 7; ++i) all.insert(fmt::format("MIG-6fcb514b-b878-4c9d-95b7-8dc3a7ce6{:03d}", i));
  GpuSets sets(tree_.root());
  ASSERT_TRUE(sets.add(all, start_));
  EXPECT_TRUE(knows(all));
}

TEST_F(GpuSetsTest, GoWhenNobodyHasThemAnyMore) {
  GpuSets sets(tree_.root());
  ASSERT_TRUE(sets.add(pair_, start_));
  ASSERT_TRUE(sets.saw({single_}, start_ + 1s));
  EXPECT_TRUE(knows(pair_)) << "the kubelet does not tell of it yet";
  ASSERT_TRUE(sets.saw({single_}, start_ + GpuSets::kPatience + 1s));
  EXPECT_FALSE(knows(pair_));
  EXPECT_TRUE(knows(single_));
  ASSERT_TRUE(sets.saw({}, start_ + GpuSets::kPatience + 2s));
  EXPECT_TRUE(knows(single_));
  ASSERT_TRUE(sets.saw({}, start_ + 2 * GpuSets::kPatience + 2s));
  EXPECT_FALSE(std::filesystem::exists(tree_ / "k8s.device-plugin.nvidia.com-set.json"))
      << "readers take a specification of nothing for a mistake";
  EXPECT_TRUE(sets.saw({}, start_ + 2 * GpuSets::kPatience + 3s));
}

TEST_F(GpuSetsTest, StayForAContainerThatIsStartedAgain) {
  GpuSets sets(tree_.root());
  ASSERT_TRUE(sets.saw({pair_}, start_));
  // An answer that was on its way when a container was given it is none about that container.
  ASSERT_TRUE(sets.add(pair_, start_ + 2 * GpuSets::kPatience));
  ASSERT_TRUE(sets.saw({pair_}, start_ + GpuSets::kPatience));
  ASSERT_TRUE(sets.saw({}, start_ + 2 * GpuSets::kPatience + 1s));
  EXPECT_TRUE(knows(pair_));
}

TEST_F(GpuSetsTest, OfAProcessThatWasKilledStayUntilItIsKnownWhoHasWhat) {
  ASSERT_TRUE(GpuSets(tree_.root()).add(pair_, start_));
  GpuSets next(tree_.root());
  EXPECT_TRUE(knows(pair_));
  ASSERT_TRUE(next.saw({pair_}, start_));
  EXPECT_TRUE(knows(pair_));
  ASSERT_TRUE(next.saw({}, start_ + GpuSets::kPatience + 1s));
  EXPECT_FALSE(knows(pair_));
}

TEST_F(GpuSetsTest, ComeBackWhenSomebodyHasRemovedThem) {
  GpuSets sets(tree_.root());
  ASSERT_TRUE(sets.add(pair_, start_));
  std::filesystem::remove(tree_ / "k8s.device-plugin.nvidia.com-set.json");
  ASSERT_TRUE(sets.saw({}, start_));
  EXPECT_TRUE(knows(pair_));
}

TEST(SetsOfContainers, AreWhatEachWasGivenAtOnceOfOurResources) {
  const std::vector<OfferedResource> ours = {{"nvidia.com/gpu", false, {}},
                                             {"nvidia.com/gpu.shared", true, {}}};
  const std::vector<ContainerUse> containers = {
      // The kubelet tells by NUMA node.
      {"default", "pod", "main", {{"nvidia.com/gpu", {uuid(2)}}, {"nvidia.com/gpu", {uuid(0)}}}, {}},
      {"default", "pod", "beside", {{"nvidia.com/gpu.shared", {uuid(1) + "::0", uuid(1) + "::3"}}}, {}},
      {"default", "other", "main", {{"example.com/card", {"card-0"}}, {"nvidia.com/gpu", {}}}, {}}};
  EXPECT_THAT(sets_of(containers, ours), UnorderedElementsAre(GpuSet{uuid(0), uuid(2)}, GpuSet{uuid(1)}));
}

}  // namespace
}  // namespace drover::kube
