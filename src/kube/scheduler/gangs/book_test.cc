#include "kube/scheduler/gangs/book.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/scheduler/gangs/status.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

const Resource kGroups{"scheduling.k8s.io", "v1beta1", "podgroups"};
const GangIdentity kTrain{GangKind::kPodGroup, "team", "train"};

PodTemplate plain() {
  return {.scheduler_name = "drover", .priority = 5};
}

/// Its uid is its name.
Pod pod(std::string name, std::string node = "", PodTemplate made_from = plain()) {
  Pod pod;
  pod.uid = pod.name = std::move(name);
  pod.name_space = "team";
  pod.node_name = std::move(node);
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made_from));
  return pod;
}

GangMember native(std::string subgroup = "") {
  GangMember member{kTrain};
  member.object = GangObject{kGroups, "PodGroup", "train"};
  member.subgroup = std::move(subgroup);
  return member;
}

GangGroup of_size(int minimum) {
  GangGroup group;
  group.minimum = minimum;
  return group;
}

void put_group(GangBook& book, Result<GangGroup> group) {
  book.put_object(kGroups, "team", "train", std::move(group));
}

TEST(GangBook, AGangWaitsForItsObjectAndForItsPods) {
  GangBook book;
  book.put_pod(pod("a"), native());
  EXPECT_EQ(book.view(kTrain).reason, "waits for the PodGroup 'team/train', which is not there yet");
  EXPECT_THAT(book.absent(), ElementsAre(ObjectPath{kGroups, "team", "train"}));
  put_group(book, fail(ErrorKind::kInvalid, "'team/train' of podgroups: the field 'spec' is no object"));
  EXPECT_EQ(book.view(kTrain).reason, "'team/train' of podgroups: the field 'spec' is no object");
  put_group(book, of_size(3));
  EXPECT_THAT(book.absent(), IsEmpty());
  EXPECT_EQ(book.view(kTrain).reason, "waits for 2 of 3 pods of the gang 'team/train'");
  book.put_pod(pod("b"), native());
  auto gated = plain();
  gated.scheduling_gates = {"later"};
  book.put_pod(pod("c", "", gated), native());
  EXPECT_EQ(book.view(kTrain).reason,
            "waits for 1 of 3 pods of the gang 'team/train'; 1 there have scheduling gates");
  EXPECT_THAT(book.view(kTrain).together, IsEmpty());
  book.put_pod(pod("c"), native());
  EXPECT_EQ(book.view(kTrain).reason, "");
  EXPECT_THAT(book.view(kTrain).together, ElementsAre("a", "b", "c"));
  book.remove_object(kGroups, "team", "train");
  EXPECT_NE(book.view(kTrain).reason, "");
}

TEST(GangBook, TheMinimumStartsTogetherAndTheRestOneByOne) {
  GangBook book;
  put_group(book, of_size(2));
  for (const auto* const name : {"d", "c", "b", "a"}) {
    auto member = native();
    member.rank = {*name == 'd' ? 0 : 1};
    book.put_pod(pod(name), member);
  }
  auto view = book.view(kTrain);
  EXPECT_THAT(view.together, ElementsAre("d", "a"));
  EXPECT_THAT(view.later, ElementsAre("b", "c"));
  book.put_pod(pod("a", "n1"), native());
  view = book.view(kTrain);
  EXPECT_TRUE(view.half);
  EXPECT_THAT(view.bound, ElementsAre("a"));
  EXPECT_THAT(view.together, ElementsAre("d"));
  EXPECT_THAT(book.half(), ElementsAre(kTrain));
  book.put_pod(pod("d", "n1"), native());
  view = book.view(kTrain);
  EXPECT_FALSE(view.half);
  EXPECT_THAT(view.together, IsEmpty());
  EXPECT_THAT(view.later, ElementsAre("b", "c"));
  EXPECT_THAT(book.half(), IsEmpty());
}

TEST(GangBook, WhoFollowsAFailedPodStartsBesideTheOthersAndAllThatFailedStartAnew) {
  GangBook book;
  put_group(book, of_size(2));
  auto failed = pod("a", "n1");
  failed.ended = true;
  book.put_pod(pod("a", "n1"), native());
  book.put_pod(pod("b", "n1"), native());
  book.put_pod(failed, native());
  book.put_pod(pod("a2"), native());
  EXPECT_THAT(book.view(kTrain).together, ElementsAre("a2"));
  failed = pod("b", "n1");
  failed.terminating = true;
  book.put_pod(failed, native());
  EXPECT_EQ(book.view(kTrain).reason, "waits for 1 of 2 pods of the gang 'team/train'");
  EXPECT_EQ(book.gang_of("b"), nullptr);
}

TEST(GangBook, WhoHasSucceededHoldsNobodyUp) {
  GangBook book;
  put_group(book, of_size(2));
  auto done = native();
  done.succeeded = true;
  auto ended = pod("a", "n1");
  ended.ended = true;
  book.put_pod(ended, done);
  book.put_pod(pod("b"), native());
  EXPECT_THAT(book.view(kTrain).together, ElementsAre("b"));
  EXPECT_THAT(book.view(kTrain).bound, IsEmpty());
}

TEST(GangBook, EachPartHasItsMinimum) {
  GangBook book;
  auto group = of_size(3);
  group.of_subgroups = {{"ps", 1}, {"worker", 1}};
  put_group(book, group);
  for (const auto* const name : {"w1", "w2", "w3", "w4"}) book.put_pod(pod(name), native("worker"));
  EXPECT_EQ(book.view(kTrain).reason, "waits for 1 of 1 pods of the part 'ps' of the gang 'team/train'");
  book.put_pod(pod("zz"), native("ps"));
  EXPECT_THAT(book.view(kTrain).together, ElementsAre("w1", "w2", "zz"));
  EXPECT_THAT(book.view(kTrain).later, ElementsAre("w3", "w4"));
}

TEST(GangBook, PodsThatCannotBeDecidedOnAsOneAreRefused) {
  const auto refused = [](const PodTemplate& other, std::string queue = "q", int size = 2) {
    GangBook book;
    GangMember member{kTrain};
    member.size = 2;
    book.put_pod(pod("a"), member, "q");
    member.size = size;
    book.put_pod(pod("b", "", other), member, std::move(queue));
    return book.view(kTrain).reason;
  };
  EXPECT_EQ(refused(plain()), "");
  auto other = plain();
  other.priority = 6;
  EXPECT_EQ(refused(other), "the pods of the gang 'team/train' differ in priority: 'a' and 'b'");
  other = plain();
  other.scheduler_name = "default-scheduler";
  EXPECT_EQ(refused(other), "the pods of the gang 'team/train' differ in their scheduler: 'a' and 'b'");
  other = plain();
  other.preempts = false;
  EXPECT_EQ(refused(other),
            "the pods of the gang 'team/train' differ in their preemption policy: 'a' and 'b'");
  EXPECT_EQ(refused(plain(), "other"),
            "the pods of the gang 'team/train' differ in their queue: 'a' and 'b'");
  EXPECT_EQ(refused(plain(), "q", 3),
            "the pods of the gang 'team/train' differ in what they say of its size: 'a' and 'b'");
}

TEST(GangBook, TheObjectsPriorityIsThatOfThePods) {
  GangBook book;
  book.put_pod(pod("a"), native());
  auto group = of_size(1);
  group.priority = 6;
  put_group(book, group);
  EXPECT_EQ(book.view(kTrain).reason, "the gang 'team/train' has the priority 6, and its pods have 5");
  group.priority = 5;
  group.preempts = false;
  put_group(book, group);
  EXPECT_EQ(book.view(kTrain).reason, "the gang 'team/train' has another preemption policy than its pods");
}

TEST(GangBook, SaysWhichGangsMayHaveChanged) {
  GangBook book;
  put_group(book, of_size(1));
  EXPECT_THAT(book.take_changed(), IsEmpty());
  book.put_pod(pod("a"), native());
  EXPECT_THAT(book.take_changed(), ElementsAre(kTrain));
  put_group(book, of_size(1));
  EXPECT_THAT(book.take_changed(), IsEmpty());
  put_group(book, of_size(2));
  EXPECT_THAT(book.take_changed(), ElementsAre(kTrain));
  book.remove_pod("a");
  EXPECT_THAT(book.take_changed(), ElementsAre(kTrain));
  EXPECT_EQ(book.view(kTrain).reason, "");
}

RC_GTEST_PROP(GangBookProperty, NobodyStartsBeforeTheMinimumAndTheOrderOfNewsDoesNotMatter, ()) {
  const auto minimum = *rc::gen::inRange(0, 6);
  const auto count = *rc::gen::inRange(1, 8);
  GangBook book;
  GangBook other;
  const auto both = [&](const auto& change) {
    change(book);
    if (*rc::gen::arbitrary<bool>()) other.take_changed();
    change(other);
  };
  int started = 0;
  int living = 0;
  for (int i = 0; i < count; ++i) {
    const auto name = fmt::format("p{}", i);
    const bool bound = *rc::gen::arbitrary<bool>();
    both([&](GangBook& each) { each.put_pod(pod(name), native()); });
    if (bound) book.put_pod(pod(name, "n"), native());
    if (bound) other.put_pod(pod(name, "n"), native());
    if (*rc::gen::inRange(0, 4) == 0) {
      both([&](GangBook& each) { each.remove_pod(name); });
      continue;
    }
    ++living;
    started += bound ? 1 : 0;
  }
  both([&](GangBook& each) { put_group(each, of_size(minimum)); });
  const auto view = book.view(kTrain);
  RC_ASSERT(view.together == other.view(kTrain).together);
  RC_ASSERT(view.later == other.view(kTrain).later);
  if (!view.together.empty() || !view.later.empty()) {
    RC_ASSERT(static_cast<int>(view.together.size()) + started >= std::min(minimum, living));
    RC_ASSERT(static_cast<int>(view.together.size()) == std::max(0, minimum - started));
    RC_ASSERT(static_cast<int>(view.together.size() + view.later.size()) == living - started);
  } else {
    RC_ASSERT(living == started || living < minimum);
  }
}

TEST(PodGroupStatus, SaysWhatKubeSchedulerSays) {
  const TimePoint now{};
  const json fresh = {{"metadata", {{"generation", 2}}}};
  const auto patch = pod_group_status(kGroups, fresh, GangOutcome::kUnschedulable, "no room", now);
  ASSERT_TRUE(patch);
  EXPECT_EQ(
      *patch,
      json::parse(R"({"status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "False",
      "reason": "Unschedulable", "message": "no room", "observedGeneration": 2,
      "lastTransitionTime": "1970-01-01T00:00:00.000Z"}]}})"));
  auto old = kGroups;
  old.version = "v1alpha2";
  EXPECT_EQ((*pod_group_status(old, fresh, GangOutcome::kError, "x", now))["status"]["conditions"][0]["type"],
            "PodGroupScheduled");
  const auto preempted = *pod_group_status(kGroups, fresh, GangOutcome::kPreempted, "x", now);
  EXPECT_EQ(preempted["status"]["conditions"][0]["reason"], "PreemptionByScheduler");
}

TEST(PodGroupStatus, IsWrittenOnceAndStartedStaysStarted) {
  const TimePoint now{};
  json group = {{"metadata", {{"generation", 1}}}};
  group.merge_patch(*pod_group_status(kGroups, group, GangOutcome::kUnschedulable, "a", now));
  EXPECT_FALSE(
      pod_group_status(kGroups, group, GangOutcome::kUnschedulable, "a", now + std::chrono::hours(1)));
  const auto again =
      *pod_group_status(kGroups, group, GangOutcome::kUnschedulable, "b", now + std::chrono::hours(1));
  EXPECT_EQ(again["status"]["conditions"][0]["lastTransitionTime"], format_time(now));
  group.merge_patch(
      *pod_group_status(kGroups, group, GangOutcome::kScheduled, "", now + std::chrono::hours(2)));
  EXPECT_EQ(group["status"]["conditions"][0]["lastTransitionTime"], format_time(now + std::chrono::hours(2)));
  EXPECT_FALSE(pod_group_status(kGroups, group, GangOutcome::kUnschedulable, "b", now));
}

}  // namespace
}  // namespace drover::kube::scheduler
