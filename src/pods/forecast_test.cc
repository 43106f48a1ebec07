#include "pods/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/client/testing/fake_api.h"
#include "pods/gpu_claim.h"
#include "pods/pod_view.h"
#include "pods/testing/tasks.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::task_of_ann;

const TimePoint kNoon{std::chrono::hours(24 * 365 * 60)};

class ForecastTest : public ::testing::Test {
 protected:
  void make_node(const std::string& name, int gpus) {
    const json amounts{
        {"cpu", "8"}, {"memory", "8Gi"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}};
    ASSERT_TRUE(api_.create({kube::kNodes}, {{"metadata", {{"name", name}}},
                                             {"spec", json::object()},
                                             {"status", {{"capacity", amounts}, {"allocatable", amounts}}}}));
  }
  /// One that runs there.
  void make_pod(const workload::Task& task, const std::string& node, const std::string& journal) {
    const std::map<std::string, std::string> none;
    auto pod = write_pod({.task = task, .environment = none}, {.journal = journal});
    ASSERT_TRUE(pod);
    pod->at("spec")["nodeName"] = node;
    pod->at("metadata")["creationTimestamp"] = "2026-01-01T00:00:00Z";
    ASSERT_TRUE(api_.create({kube::kPods, pod->at("metadata").at("namespace")}, *pod));
  }
  Result<placement::Forecast> ask(const std::vector<workload::Task>& tasks) {
    return forecast(api_, tasks, options_, kNoon);
  }

  kube::testing::FakeApi api_;
  ForecastOptions options_{{.journal = "j"}, kube::scheduler::kNewestKnown};
};

TEST_F(ForecastTest, GivesSharesAndGroupsTheClaimsThatTheyWouldHave) {
  make_node("a", 0);
  for (const auto* plural : {"resourceslices", "deviceclasses", "resourceclaims"})
    api_.serve({"resource.k8s.io", "v1", plural});
  json devices = json::array();
  for (const auto* uuid : {"GPU-1", "GPU-2"})
    devices.push_back({{"name", uuid},
                       {"allowMultipleAllocations", true},
                       {"attributes", {{"uuid", {{"string", uuid}}}, {"type", {{"string", "gpu"}}}}},
                       {"capacity", {{"share", {{"value", "1000"}}}, {"memory", {{"value", "16Gi"}}}}}});
  ASSERT_TRUE(api_.create({kube::Resource{"resource.k8s.io", "v1", "resourceslices"}},
                          {{"metadata", {{"name", "slice"}}},
                           {"spec",
                            {{"driver", kGpuClass},
                             {"nodeName", "a"},
                             {"pool", {{"name", "a"}, {"generation", 1}, {"resourceSliceCount", 1}}},
                             {"devices", devices}}}}));
  ASSERT_TRUE(api_.create({kube::Resource{"resource.k8s.io", "v1", "deviceclasses"}},
                          {{"metadata", {{"name", kGpuClass}}}, {"spec", json::object()}}));
  auto half = task_of_ann("half", 1), member = task_of_ann("member", 1);
  half.resources.share = {.milli = 500};
  member.resources.group = "pair";
  for (const auto& task : {half, member}) {
    const auto found = ask({task});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_THAT(found->reasons, IsEmpty());
    EXPECT_THAT(found->decisions, SizeIs(1));
  }
}

TEST_F(ForecastTest, SaysWhereItWouldGoAndMakesNothing) {
  make_node("a", 4);
  const auto asked = api_.requests().size();
  const auto found = ask({task_of_ann("t", 2)});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_THAT(found->decisions, SizeIs(1));
  EXPECT_EQ(found->decisions[0].node, "a");
  EXPECT_EQ(found->place, 0);
  EXPECT_THAT(found->reasons, IsEmpty());
  const auto requests = api_.requests();
  for (auto i = asked; i < requests.size(); ++i)
    EXPECT_THAT(requests[i].verb, ::testing::AnyOf("list", "get")) << requests[i].path.resource.plural;
}

TEST_F(ForecastTest, SaysWhyItWouldWaitAndWhatHelps) {
  make_node("a", 4);
  make_pod(task_of_ann("runs", 3), "a", "j");
  const auto found = ask({task_of_ann("t", 2)});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->decisions, IsEmpty());
  ASSERT_THAT(found->reasons, SizeIs(1));
  EXPECT_THAT(found->reasons[0], HasSubstr("0/1 nodes are available"));
  EXPECT_THAT(found->remedies, ElementsAre("ask for 1 GPU"));
  EXPECT_EQ(found->place, 1);
}

TEST_F(ForecastTest, AGangStartsAsAWholeOrNotAtAll) {
  make_node("a", 4);
  const auto gang_of = [](int size, int gpus) {
    std::vector<workload::Task> tasks;
    for (int rank = 0; rank < size; ++rank) {
      tasks.push_back(task_of_ann("g-" + std::to_string(rank), gpus));
      tasks.back().gang = workload::GangMembership{"g", rank, size, {}};
    }
    return tasks;
  };
  EXPECT_THAT(ask(gang_of(2, 2))->decisions, SizeIs(2));
  const auto waits = ask(gang_of(3, 2));
  EXPECT_THAT(waits->decisions, IsEmpty());
  EXPECT_THAT(waits->reasons, SizeIs(1));
}

TEST_F(ForecastTest, TellsWhoseTasksMakeRoom) {
  make_node("a", 4);
  make_pod(task_of_ann("ours", 2), "a", "j");
  make_pod(task_of_ann("theirs", 2), "a", "another");
  auto urgent = task_of_ann("t", 4);
  urgent.priority = 5;
  const auto found = ask({urgent});
  EXPECT_THAT(found->decisions, IsEmpty());
  EXPECT_THAT(found->ended, ::testing::UnorderedElementsAre("ours", ""));
}

TEST_F(ForecastTest, WhatNoPodCanBeIsRefused) {
  make_node("a", 4);
  auto task = task_of_ann("t", 1);
  task.privileged = true;
  EXPECT_EQ(ask({task}).error().path, "/privileged");
}

}  // namespace
}  // namespace drover::pods
