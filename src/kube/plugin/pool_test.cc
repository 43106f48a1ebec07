#include "kube/plugin/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::machine;
using ::testing::SizeIs;
using testing::uuid;
using namespace std::chrono_literals;

PoolFacts facts(int gpus) {
  PoolFacts made;
  made.inventory = machine(gpus);
  for (int i = 0; i < gpus; ++i) {
    const auto minor = static_cast<unsigned>(i);
    made.nodes[uuid(i)] = {{fmt::format("/dev/nvidia{}", i), 195, minor}};
  }
  made.parts.cdi = CdiSupport::kYes;
  return made;
}

PluginConfig two_names() {
  PluginConfig config;
  config.resources = {{"x/gpu", "*"}, {"x/model", "*"}};
  return config;
}

std::vector<std::string> troubles(const Pool& pool, const std::string& resource) {
  std::vector<std::string> all;
  for (const auto& device : pool.wait(resource, 0, {}).devices) all.push_back(device.trouble);
  return all;
}

/// A pool that the kubelet has told who has what: nobody.
class FreshPool : public Pool {
 public:
  explicit FreshPool(PluginConfig config) : Pool(std::move(config)) { saw({}, Usage::Clock::now()); }
};

TEST(Pool, TellsOfWhatLimitsHaveInTheCallThatGivesIt) {
  std::vector<Holders> told;
  std::function<void()> notify;
  Pool pool(two_names(), true, [&] { notify(); });
  notify = [&] { told.push_back(pool.holders()); };  // may ask the pool
  pool.saw({}, Usage::Clock::now());
  pool.update(facts(2));
  EXPECT_THAT(told, IsEmpty());
  ASSERT_TRUE(pool.allocate("x/gpu", {uuid(1)}));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0], (Holders{{uuid(1), {"x/gpu"}}}));
  ASSERT_FALSE(pool.allocate("x/model", {uuid(1)}));
  ASSERT_TRUE(pool.start("x/gpu", {uuid(1)}));
  EXPECT_THAT(told, SizeIs(1)) << "nobody has more than before";
  ASSERT_TRUE(pool.start("x/model", {uuid(0)}));
  EXPECT_THAT(told, SizeIs(2));
  pool.saw({{"default", "pod", "main", {{"x/gpu", {uuid(1)}}, {"x/model", {uuid(0)}}}, {}}},
           Usage::Clock::now());
  EXPECT_THAT(told, SizeIs(2));
  pool.saw({}, Usage::Clock::now());
  ASSERT_THAT(told, SizeIs(3));
  EXPECT_THAT(told[2], IsEmpty());
}

TEST(Pool, GivesAGpuUnderOneNameOnly) {
  FreshPool pool(two_names());
  pool.update(facts(2));
  ASSERT_TRUE(pool.allocate("x/model", {uuid(1)}));
  EXPECT_THAT(troubles(pool, "x/gpu"), ElementsAre("", "in use as x/model"));
  EXPECT_THAT(troubles(pool, "x/model"), ElementsAre("", ""));
  const auto second = pool.allocate("x/gpu", {uuid(0), uuid(1)});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("in use as x/model"));
  EXPECT_THAT(troubles(pool, "x/model"), ElementsAre("", "")) << "nothing of a refused request is taken";
  pool.saw({{"default", "pod", "main", {{"x/model", {uuid(1)}}}, {}}}, Usage::Clock::now());
  pool.saw({}, Usage::Clock::now());
  EXPECT_THAT(troubles(pool, "x/gpu"), ElementsAre("", ""));
}

TEST(Pool, GivesNobodyWhatTheKubeletHasForgotten) {
  FreshPool pool(two_names());
  pool.update(facts(2));
  pool.saw({{"default", "pod", "main", {{"x/gpu", {uuid(1)}}}, {}, true}}, Usage::Clock::now());
  EXPECT_THAT(troubles(pool, "x/gpu"), ElementsAre("", "")) << "the scheduler counts the pod that has it";
  EXPECT_THAT(pool.prefer("x/gpu", {uuid(0), uuid(1)}, {}, 1), ElementsAre(uuid(0)));
  EXPECT_THAT(pool.prefer("x/gpu", {uuid(0), uuid(1)}, {}, 2), ElementsAre(uuid(0)));
  EXPECT_THAT(pool.allocate("x/gpu", {uuid(1)}).error().message, HasSubstr("the kubelet knows nothing"));
  EXPECT_TRUE(pool.start("x/gpu", {uuid(1)})) << "its own container starts again";
}

TEST(Pool, PrefersWhatNobodyIsSaidToHave) {
  FreshPool pool(two_names());
  pool.update(facts(2));
  pool.saw({{"default", "pod", "main", {{"x/gpu", {uuid(1)}}}, {}}}, Usage::Clock::now());
  EXPECT_THAT(pool.prefer("x/gpu", {uuid(0), uuid(1)}, {}, 1), ElementsAre(uuid(0)));
  EXPECT_THAT(pool.prefer("x/gpu", {uuid(0), uuid(1)}, {uuid(1)}, 2), ElementsAre(uuid(1), uuid(0)));
  EXPECT_EQ(pool.prefer("x/gpu", {uuid(0), uuid(1)}, {}, 2).size(), 2U) << "it may just have ended";
}

TEST(Pool, LeavesAloneWhatClaimsHave) {
  FreshPool pool(two_names());
  pool.update(facts(2));
  EXPECT_TRUE(pool.claim({uuid(0)}));
  EXPECT_THAT(troubles(pool, "x/gpu"), ElementsAre("in use by a claim", ""));
  EXPECT_THAT(pool.allocate("x/model", {uuid(0)}).error().message, HasSubstr("in use by a claim"));
  EXPECT_TRUE(pool.claim({}));
  EXPECT_TRUE(pool.allocate("x/model", {uuid(0)}));
  EXPECT_EQ(pool.holders().count(uuid(0)), 1U);
}

TEST(Pool, LetsNoClaimHaveWhatALimitHas) {
  FreshPool pool(two_names());
  pool.update(facts(3));
  ASSERT_TRUE(pool.claim({uuid(1)}));
  ASSERT_TRUE(pool.allocate("x/model", {uuid(0)}));
  const auto refused = pool.claim({uuid(0), uuid(1), uuid(2)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("in use as x/model"));
  EXPECT_THAT(troubles(pool, "x/gpu"), ElementsAre("in use as x/model", "in use by a claim", ""));
  EXPECT_TRUE(pool.claim({uuid(1), uuid(2)}));
}

TEST(Pool, GivesNothingBeforeItKnowsWhoHasWhat) {
  Pool pool(two_names());
  pool.update(facts(2));
  pool.found_claimed({uuid(1)});
  EXPECT_EQ(pool.allocate("x/gpu", {uuid(0)}).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(pool.claim({uuid(0), uuid(1)}).error().kind, ErrorKind::kUnavailable);
  EXPECT_TRUE(pool.claim({uuid(1)})) << "it had that one before";
  pool.saw({}, Usage::Clock::now());
  EXPECT_TRUE(pool.allocate("x/gpu", {uuid(0)}));
  EXPECT_FALSE(pool.allocate("x/gpu", {uuid(1)}));
}

TEST(Pool, StartsNoContainerWithWhatSomebodyElseHasByNow) {
  FreshPool pool(two_names());
  pool.update(facts(3));
  EXPECT_TRUE(pool.start("x/gpu", {uuid(0)}));
  EXPECT_EQ(pool.claim({uuid(0)}).error().kind, ErrorKind::kConflict);
  ASSERT_TRUE(pool.claim({uuid(1)}));
  EXPECT_THAT(pool.start("x/gpu", {uuid(1)}).error().message, HasSubstr("in use by a claim"));
  EXPECT_THAT(pool.start("x/model", {uuid(2), uuid(0)}).error().message, HasSubstr("in use as x/gpu"));
  EXPECT_TRUE(pool.claim({uuid(1), uuid(2)})) << "nothing of a refused start is taken";
}

TEST(Pool, IsAskedAtTheStartWhereOthersMayHaveTheGpu) {
  EXPECT_TRUE(Pool(PluginConfig{}).is_asked_at_start());
  EXPECT_FALSE(Pool(PluginConfig{}, /*claims=*/false).is_asked_at_start());
  EXPECT_TRUE(Pool(two_names(), /*claims=*/false).is_asked_at_start());
}

TEST(Pool, KeepsTheSetOfAContainerBeforeItIsMadeAndBeforeEachOfItsStarts) {
  std::vector<GpuSet> kept;
  Status outcome;
  const auto keep = [&](const GpuSet& gpus) {
    kept.push_back(gpus);
    return outcome;
  };
  PluginConfig config;
  config.resources = {{"x/gpu", "*"}};
  config.shares = {{"x/gpu", 2, "x/part", {uuid(2)}}};
  Pool pool(config, /*claims=*/false, {}, {}, keep);
  EXPECT_TRUE(pool.is_asked_at_start());
  pool.saw({}, Usage::Clock::now());
  pool.update(facts(3));
  ASSERT_TRUE(pool.allocate("x/gpu", {uuid(1), uuid(0)}));
  ASSERT_TRUE(pool.allocate("x/part", {uuid(2) + "::1", uuid(2) + "::0"}));
  EXPECT_THAT(kept, ElementsAre(GpuSet{uuid(0), uuid(1)}, GpuSet{uuid(2)}));
  EXPECT_FALSE(pool.allocate("x/part", {uuid(0)}));
  EXPECT_THAT(kept, SizeIs(2)) << "who gets nothing has no set";
  ASSERT_TRUE(pool.start("x/gpu", {uuid(0), uuid(1)}));
  EXPECT_THAT(kept, SizeIs(3));
  outcome = fail(ErrorKind::kInternal, "the disk is full");
  EXPECT_THAT(pool.start("x/gpu", {uuid(0), uuid(1)}).error().message, HasSubstr("disk is full"));

  config.strategies = {ListStrategy::kEnvironment};
  Pool without_cdi(config, /*claims=*/false, {}, {}, keep);
  without_cdi.saw({}, Usage::Clock::now());
  without_cdi.update(facts(3));
  ASSERT_TRUE(without_cdi.allocate("x/gpu", {uuid(0)}));
  EXPECT_THAT(kept, SizeIs(4)) << "NVIDIA's runtime is told in other ways";
}

TEST(Pool, RefusesWhatItDoesNotHave) {
  FreshPool pool(two_names());
  EXPECT_EQ(pool.allocate("x/gpu", {uuid(0)}).error().kind, ErrorKind::kInvalid);
  pool.update(facts(1));
  EXPECT_EQ(pool.allocate("x/gpu", {"GPU-unknown"}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(pool.allocate("x/gpu", {uuid(0) + "::0"}).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(pool.allocate("y/gpu", {uuid(0)}).error().kind, ErrorKind::kInvalid);
  auto broken = facts(1);
  broken.troubles[uuid(0)] = "XID 79";
  pool.update(broken);
  EXPECT_THAT(pool.allocate("x/gpu", {uuid(0)}).error().message, HasSubstr("XID 79"));
  broken = facts(1);
  broken.nodes.clear();
  pool.update(broken);
  EXPECT_THAT(pool.allocate("x/gpu", {uuid(0)}).error().message, HasSubstr("no device node"));
}

TEST(Pool, GivesSeveralReplicasOfOneGpuAsOne) {
  PluginConfig config;
  config.shares = {{"nvidia.com/gpu", 3, "", {}}};
  FreshPool pool(config);
  pool.update(facts(1));
  const auto granted = pool.allocate("nvidia.com/gpu", {uuid(0) + "::0", uuid(0) + "::2"});
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->cdi_devices.size(), 2U) << "the GPU, and the set that is nothing but it";
  config.refuse_several_shares = true;
  FreshPool strict(config);
  strict.update(facts(1));
  EXPECT_THAT(strict.allocate("nvidia.com/gpu", {uuid(0) + "::0", uuid(0) + "::2"}).error().message,
              HasSubstr("maximum request size for shared resources is 1; found 2"));
}

TEST(Pool, WakesThoseWhoWait) {
  FreshPool pool(two_names());
  pool.update(facts(1));
  const auto before = pool.wait("x/gpu", 0, {});
  EXPECT_EQ(pool.wait("x/gpu", before.version, 1ms).version, before.version);
  std::jthread later([&] { pool.update(facts(2)); });
  const auto after = pool.wait("x/gpu", before.version, 30s);
  EXPECT_GT(after.version, before.version);
  EXPECT_EQ(after.devices.size(), 2U);
  pool.update(facts(2));
  EXPECT_EQ(pool.wait("x/gpu", 0, {}).version, after.version) << "the same facts are no news";
}

TEST(Pool, TellsThatDevicesAreNobodysAnyMore) {
  FreshPool pool(two_names());
  pool.update(facts(2));
  const ContainerUse one{"default", "one", "main", {{"x/gpu", {uuid(0)}}}, {}};
  const ContainerUse two{"default", "two", "main", {{"x/gpu", {uuid(1)}}}, {}};
  pool.saw({one, two}, Usage::Clock::now());
  const auto before = pool.wait("x/gpu", 0, {});
  pool.saw({one, two}, Usage::Clock::now());
  EXPECT_EQ(pool.wait("x/gpu", 0, {}).version, before.version);
  pool.saw({two}, Usage::Clock::now());
  const auto after = pool.wait("x/gpu", before.version, 30s);
  EXPECT_GT(after.left, before.left);
  EXPECT_EQ(after.devices, before.devices);
}

TEST(Pool, PrefersWhenNothingIsKnownYet) {
  const FreshPool pool(two_names());
  EXPECT_THAT(pool.prefer("x/gpu", {"a", "b"}, {}, 1), ElementsAre("a"));
}

/// A pod has just ended, and the next one is to have its GPUs.
TEST(Pool, TakesWhatWasChosenAlthoughSomebodyHadItAMomentAgo) {
  std::vector<ContainerUse> told = {{"default", "pod", "main", {{"x/gpu", {uuid(0), uuid(3)}}}, {}}};
  std::function<void()> look;
  Pool pool(two_names(), true, {}, [&](const DeviceQuestion&) {
    look();
    return DeviceHint{true, {uuid(0), uuid(3)}, {}};
  });
  look = [&] { pool.saw(told, Usage::Clock::now()); };
  look();
  pool.update(facts(4));
  const std::vector<std::string> all = {uuid(0), uuid(1), uuid(2), uuid(3)};
  EXPECT_THAT(pool.prefer("x/gpu", all, {}, 2), ::testing::UnorderedElementsAre(uuid(1), uuid(2)))
      << "a container still runs";
  told.clear();
  EXPECT_THAT(pool.prefer("x/gpu", all, {}, 2), ::testing::UnorderedElementsAre(uuid(0), uuid(3)));
}

TEST(Pool, TakesWhatASchedulerHasChosenOfWholeGpusOnly) {
  PluginConfig config;
  config.resources = {{"x/gpu", "*"}, {"x/part", "*"}};
  config.shares = {{"x/part", 2, "x/shared", {}}};
  std::vector<std::string> asked;
  Pool pool(config, true, {}, [&](const DeviceQuestion& question) {
    asked.push_back(fmt::format("{} {}", question.size, question.resource));
    return DeviceHint{true, {uuid(0), uuid(3)}, {}};
  });
  pool.saw({}, Usage::Clock::now());
  auto known = facts(4);
  pool.update(known);
  const std::vector<std::string> all = {uuid(0), uuid(1), uuid(2), uuid(3)};
  EXPECT_THAT(pool.prefer("x/gpu", all, {}, 2), ::testing::UnorderedElementsAre(uuid(0), uuid(3)));
  EXPECT_THAT(pool.prefer("x/gpu", {uuid(0), uuid(1), uuid(2)}, {}, 2), SizeIs(2));
  pool.saw({{"default", "pod", "main", {{"x/gpu", {uuid(3)}}}, {}}}, Usage::Clock::now());
  EXPECT_THAT(pool.prefer("x/gpu", all, {}, 1), ElementsAre(uuid(0))) << "somebody has the other";
  EXPECT_THAT(asked, ElementsAre("2 x/gpu", "2 x/gpu", "1 x/gpu"));
  pool.prefer("x/shared", {uuid(0) + "::0", uuid(1) + "::0"}, {}, 1);
  known.resources[uuid(2)] = "x/gpu";
  pool.update(known);
  pool.prefer("x/gpu", all, {}, 1);
  EXPECT_THAT(asked, SizeIs(3)) << "shares and MIG devices are nobody's choice";
}

}  // namespace
}  // namespace drover::kube
