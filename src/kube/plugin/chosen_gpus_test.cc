#include "kube/plugin/chosen_gpus.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/plugin/preferred.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::machine;
using ::testing::UnorderedElementsAre;
using testing::uuid;

using Uuids = std::vector<std::string>;
const std::string kGpu = "nvidia.com/gpu";

Uuids named(const std::vector<int>& indices) {
  Uuids names;
  for (const int i : indices) names.push_back(uuid(i));
  return names;
}

/// Was bound as number `order`, and waits; asks for as many as were chosen, or for `size`.
NodePod waiting(int order, const std::vector<int>& chosen, int size = 0) {
  NodePod pod{.name = {"team", "p" + std::to_string(order)},
              .uid = "u" + std::to_string(order),
              .version = static_cast<std::uint64_t>(order),
              .waits = true,
              .gpus = named(chosen)};
  pod.containers = {{{{kGpu, size > 0 ? size : static_cast<int>(chosen.size())}}}};
  return pod;
}

ContainerUse has(const NodePod& pod, const std::vector<int>& gpus, const std::string& container = "main") {
  return {pod.name.name_space, pod.name.name, container, {{kGpu, named(gpus)}}, {}};
}

/// It has taken in these pods, whose containers have devices.
PodResources tells_of(const std::vector<NodePod>& pods, std::vector<ContainerUse> containers = {}) {
  PodResources told;
  for (const auto& pod : pods) told.pods.insert(pod.name);
  told.containers = std::move(containers);
  return told;
}

TEST(ChosenGpus, AreThoseOfTheOnlyPodThatAsksForThatMany) {
  const std::vector<NodePod> pods = {waiting(1, {0}), waiting(2, {2, 5})};
  const ChosenGpus chosen(pods, tells_of(pods));
  const auto hint = chosen.hint({kGpu, 2});
  EXPECT_EQ(hint.take, named({2, 5}));
  EXPECT_THAT(hint.leave, ElementsAre(uuid(0)));
  EXPECT_EQ(narrowed(named({0, 1, 2, 5, 7}), {}, 2, hint), named({2, 5}));
  EXPECT_FALSE(chosen.hint({kGpu, 3}).is_known);
  EXPECT_FALSE(chosen.hint({"nvidia.com/other", 2}).is_known);
}

/// The kubelet takes in whichever it wants, and tells of it before it asks.
TEST(ChosenGpus, OfSeveralAreThoseOfTheOneThatTheKubeletTellsOf) {
  const auto first = waiting(3, {4, 5}), second = waiting(7, {0, 1}), third = waiting(9, {2, 3});
  const std::vector<NodePod> pods = {second, third, first};
  EXPECT_EQ(ChosenGpus(pods, tells_of({second})).hint({kGpu, 2}).take, second.gpus);
  const auto last = ChosenGpus(pods, tells_of({first, second}, {has(second, {0, 1})})).hint({kGpu, 2});
  EXPECT_EQ(last.take, first.gpus);
  EXPECT_THAT(last.leave, UnorderedElementsAre(uuid(2), uuid(3)));
}

TEST(ChosenGpus, AreNobodysAsLongAsTheKubeletTellsOfNoneThatMayAsk) {
  const auto one = waiting(1, {0, 1}), two = waiting(2, {2, 3});
  const auto hint = ChosenGpus({one, two}, tells_of({two}, {has(two, {2, 3})})).hint({kGpu, 2});
  EXPECT_FALSE(hint.is_known);
  EXPECT_EQ(narrowed(named({0, 1, 4, 5}), {}, 2, hint), named({4, 5}));
}

TEST(ChosenGpus, AreThoseOfTheLatestWhereThoseBeforeWereTurnedAway) {
  const auto first = waiting(3, {4, 5}), second = waiting(7, {0, 1});
  EXPECT_EQ(ChosenGpus({second, first}, tells_of({first, second})).hint({kGpu, 2}).take, second.gpus);
  auto ended = second;
  ended.waits = false;
  EXPECT_EQ(ChosenGpus({ended, first}, tells_of({first, second})).hint({kGpu, 2}).take, first.gpus);
}

TEST(ChosenGpus, OfAPodThatLostThemAreThoseOfThePodThatGotThem) {
  const auto one = waiting(1, {0, 1}), two = waiting(2, {2, 3}), three = waiting(3, {4, 5});
  // Nobody knew who asked, at first.
  const std::vector<NodePod> pods = {one, two, three};
  const ChosenGpus chosen(pods, tells_of(pods, {has(two, {0, 1}), has(three, {2, 3})}));
  EXPECT_EQ(chosen.hint({kGpu, 2}).take, named({4, 5}));
  EXPECT_THAT(chosen.corrections({uuid(0), uuid(1), uuid(2), uuid(3), uuid(4), uuid(5)}),
              ElementsAre(ChoiceCorrection{one.name, "u1", named({4, 5})},
                          ChoiceCorrection{two.name, "u2", named({0, 1})},
                          ChoiceCorrection{three.name, "u3", named({2, 3})}));
}

TEST(ChosenGpus, AreLeftAloneByAPodThatNobodyChoseAnyFor) {
  const std::vector<NodePod> pods = {waiting(1, {}, 2), waiting(2, {0, 1}), waiting(3, {2})};
  const ChosenGpus chosen(pods, tells_of({pods.front()}));
  const auto hint = chosen.hint({kGpu, 2});
  EXPECT_TRUE(hint.is_known);
  EXPECT_THAT(hint.take, IsEmpty());
  EXPECT_EQ(narrowed(named({0, 1, 2, 3, 4}), {}, 2, hint), named({3, 4}));
  EXPECT_EQ(narrowed(named({0, 1, 2, 3}), {}, 2, hint), named({0, 1, 2, 3}));
}

TEST(ChosenGpus, OfAPodWithSeveralContainersServeEach) {
  auto pod = waiting(1, {0, 1, 2}, 2);
  pod.containers.push_back({{{kGpu, 1}}});
  const auto first = ChosenGpus({pod}, tells_of({pod})).hint({kGpu, 2});
  EXPECT_EQ(narrowed(named({0, 1, 2, 3}), {}, 2, first), named({0, 1, 2}));
  const auto second = ChosenGpus({pod}, tells_of({pod}, {has(pod, {0, 2})})).hint({kGpu, 1});
  EXPECT_EQ(narrowed(named({1, 3}), {}, 1, second), named({1}));
  const std::set<std::string> all{uuid(0), uuid(1), uuid(2), uuid(3)};
  EXPECT_THAT(ChosenGpus({pod}, tells_of({pod}, {has(pod, {0, 3})})).corrections(all), IsEmpty())
      << "it is being served";
  EXPECT_THAT(ChosenGpus({pod}, tells_of({pod}, {has(pod, {0, 3}), has(pod, {1}, "side")})).corrections(all),
              ElementsAre(ChoiceCorrection{pod.name, "u1", named({0, 1, 3})}));
}

TEST(ChosenGpus, AreTheTruthOnlyOfWholeGpusOfPodsThatGoOn) {
  auto shares = waiting(1, {}, 1);
  auto ended = waiting(2, {1});
  ended.waits = false;
  ended.ended = true;
  auto runs = waiting(3, {}, 1);
  runs.waits = false;
  ContainerUse replica = has(shares, {});
  replica.devices = {{"nvidia.com/gpu.shared", {uuid(0) + "::1"}}};
  const std::vector<NodePod> pods = {shares, ended, runs};
  EXPECT_THAT(ChosenGpus(pods, tells_of(pods, {replica, has(ended, {2}), has(runs, {3})}))
                  .corrections({uuid(0), uuid(1), uuid(2), uuid(3)}),
              ElementsAre(ChoiceCorrection{runs.name, "u3", named({3})}));
}

json pod_object(const std::string& gpus) {
  return {{"metadata",
           {{"name", "a"},
            {"namespace", "n"},
            {"uid", "u"},
            {"resourceVersion", "12"},
            {"annotations", {{"drover.dev/gpus", gpus}}}}},
          {"spec",
           {{"initContainers", json::array({{{"name", "i"}, {"resources", {{"limits", {{kGpu, "1"}}}}}},
                                            {{"name", "s"}, {"restartPolicy", "Always"}}})},
            {"containers",
             json::array({{{"name", "c"}, {"resources", {{"limits", {{kGpu, "2"}, {"cpu", "1"}}}}}}})}}},
          {"status", {{"phase", "Pending"}}}};
}

TEST(NodePodTest, IsReadAsKubernetesHasIt) {
  const auto pod = read_node_pod(pod_object("GPU-b,GPU-a")).value();
  EXPECT_EQ(pod.name, (PodName{"n", "a"}));
  EXPECT_EQ(pod.version, 12U);
  EXPECT_TRUE(pod.waits);
  EXPECT_THAT(pod.gpus, ElementsAre("GPU-a", "GPU-b"));
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_TRUE(pod.containers[0].starts_others);
  EXPECT_FALSE(pod.containers[1].starts_others);
  EXPECT_EQ(pod.containers[2].devices, (std::map<std::string, int>{{kGpu, 2}}));
  auto other = pod_object("GPU-a");
  other["status"]["phase"] = "Running";
  EXPECT_FALSE(read_node_pod(other)->waits);
  other["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(read_node_pod(other)->ended);
}

TEST(NodePodTest, NonsenseIsNoChoice) {
  std::string many = "x";
  for (int i = 0; i < 100; ++i) many += fmt::format(",{}", i);
  for (const auto& text : {std::string(), std::string(","), std::string("a,a"), std::string("a,,b"),
                           std::string("a,"), many, std::string(1U << 20U, 'x'), std::string("a,b,c,d")})
    EXPECT_THAT(read_node_pod(pod_object(text))->gpus, IsEmpty()) << text.substr(0, 20);
}

/// Anything at all that owners of pods may have written.
std::vector<NodePod> any_pods() {
  std::vector<NodePod> pods;
  const int count = *rc::gen::inRange(0, 8);
  for (int i = 0; i < count; ++i) {
    auto pod =
        waiting(*rc::gen::inRange(0, 4), *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12)),
                *rc::gen::inRange(1, 5));
    pod.uid = std::to_string(i);
    pod.waits = *rc::gen::arbitrary<bool>();
    pods.push_back(std::move(pod));
  }
  return pods;
}

RC_GTEST_PROP(ChosenGpusProperty, WhateverIsWrittenTheKubeletGetsAsManyAsItAskedForOfWhatIsFree, ()) {
  const auto pods = any_pods();
  PodResources told;
  for (const auto& pod : pods) {
    if (*rc::gen::arbitrary<bool>()) told.pods.insert(pod.name);
    if (*rc::gen::arbitrary<bool>())
      told.containers.push_back(has(pod, *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12))));
  }
  const ChosenGpus chosen(pods, told);
  auto free = named(*rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 8)));
  const int size = *rc::gen::inRange(1, 5);
  const Uuids must(free.begin(),
                   free.begin() + std::min<std::ptrdiff_t>(*rc::gen::inRange(0, size + 1), std::ssize(free)));
  const auto given = PreferredAllocation(machine(8))
                         .of_gpus(narrowed(free, must, size, chosen.hint({kGpu, size})), must, size);
  RC_ASSERT(std::ssize(given) == std::min<std::ptrdiff_t>(size, std::ssize(free)));
  for (const auto& id : given) RC_ASSERT(std::ranges::find(free, id) != free.end());
  for (const auto& id : must) RC_ASSERT(std::ranges::find(given, id) != given.end());
  for (const auto& correction : chosen.corrections({uuid(0), uuid(1)})) RC_ASSERT(!correction.gpus.empty());
}

/// Pods with sets of their own, which the kubelet takes in in any order.
RC_GTEST_PROP(ChosenGpusProperty, EachPodGetsItsOwnWhateverTheOrder, ()) {
  const std::vector<std::vector<int>> sets = {{0, 3}, {1, 6}, {2, 7}, {4}, {5}};
  std::vector<NodePod> pods;
  for (std::size_t i = 0; i < sets.size(); ++i) pods.push_back(waiting(static_cast<int>(i), sets[i]));
  PodResources told;
  auto free = named({0, 1, 2, 3, 4, 5, 6, 7});
  auto order = pods;
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(i)))]);
  for (const auto& pod : order) {
    told.pods.insert(pod.name);
    const int size = pod.containers.front().devices.at(kGpu);
    const auto hint = ChosenGpus(pods, told).hint({kGpu, size});
    auto given = PreferredAllocation(machine(8)).of_gpus(narrowed(free, {}, size, hint), {}, size);
    std::ranges::sort(given);
    RC_ASSERT(given == pod.gpus);
    for (const auto& id : given) std::erase(free, id);
    told.containers.push_back({pod.name.name_space, pod.name.name, "main", {{kGpu, given}}, {}});
  }
}

}  // namespace
}  // namespace drover::kube
