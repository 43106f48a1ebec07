// What people are told who ask about a cluster, and what is written to those who wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "base/pause.h"
#include "kube/client/testing/fake_api.h"
#include "kube/scheduling/claim_writer.h"
#include "kube/scheduling/cluster_answers.h"
#include "kube/scheduling/cluster_reading.h"
#include "kube/scheduling/condition_writer.h"
#include "kube/scheduling/planned_pods.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using scheduler::Scheduler;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const Resource kAskedClasses{"resource.k8s.io", "v1", "deviceclasses"};
const Resource kAskedSlices{"resource.k8s.io", "v1", "resourceslices"};
const Resource kAskedTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};
const Resource kAskedGroups{"scheduling.k8s.io", "v1beta1", "podgroups"};

json pod_json(const std::string& name, int gpus, const std::string& node = "") {
  json pod{{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata", {{"name", name}, {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
           {"spec",
            {{"schedulerName", "drover"},
             {"containers",
              {{{"name", "c"},
                {"resources",
                 {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}},
                  {"requests", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  return pod;
}

/// Refuses to list some kinds.
class WithoutRights : public testing::FakeApi {
 public:
  Result<json> send(const ApiRequest& request, const std::stop_token& stop, const TakeItem& take) override {
    if (request.verb == "list" && hidden.contains(request.path.resource.plural))
      return fail(ErrorKind::kPermissionDenied, "forbidden");
    if (request.verb == "patch" && failing-- > 0) return fail(ErrorKind::kUnavailable, "busy");
    return FakeApi::send(request, stop, take);
  }
  std::set<std::string> hidden;
  std::atomic<int> failing = 0;  ///< patches
};

class AskingTest : public ::testing::Test {
 protected:
  void make_node(const std::string& name, int gpus) {
    const json amounts{
        {"cpu", "8"}, {"memory", "8Gi"}, {"pods", "110"}, {"nvidia.com/gpu", std::to_string(gpus)}};
    make({kNodes}, {{"metadata", {{"name", name}}},
                    {"spec", json::object()},
                    {"status", {{"capacity", amounts}, {"allocatable", amounts}}}});
  }
  void make(const ObjectPath& collection, const json& object) {
    ASSERT_TRUE(api_.create(collection, object)) << object;
  }
  void make_pod(const json& pod) { make({kPods, "team"}, pod); }

  Status read(std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    return read_cluster(
        api_, {.patience = patience, .warn = [this](const std::string& said) { warnings_.push_back(said); }},
        scheduler_);
  }
  ClusterAnswers answers() { return {scheduler_, options_, TimePoint(std::chrono::hours(24 * 365 * 60))}; }
  json answer_of(const std::string& pod) { return answers().of_pod(scheduler_.uid_of("team", pod)); }

  WithoutRights api_;
  const scheduler::SchedulerOptions options_;
  Scheduler scheduler_{options_};
  std::vector<std::string> warnings_;
};

TEST_F(AskingTest, SaysWherePodsAreAndWhyTheyWait) {
  make_node("a", 4);
  make_pod(pod_json("runs", 3, "a"));
  make_pod(pod_json("waits", 2));
  auto gated = pod_json("gated", 1);
  gated["spec"]["schedulingGates"] = {{{"name", "example.com/x"}}};
  make_pod(gated);
  auto theirs = pod_json("theirs", 1);
  theirs["spec"]["schedulerName"] = "default-scheduler";
  make_pod(theirs);
  ASSERT_TRUE(read());
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(answer_of("runs")["state"], "bound");
  EXPECT_EQ(answer_of("runs")["node"], "a");
  const auto waits = answer_of("waits");
  EXPECT_EQ(waits["state"], "waits");
  EXPECT_EQ(waits["message"],
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. 2 GPUs are wanted and 1 of 4 is free. "
            "Place 1 of 1 "
            "in the queue. What helps: ask for 1 GPU.");
  EXPECT_THAT(answer_of("gated")["message"].get<std::string>(), HasSubstr("example.com/x"));
  EXPECT_EQ(answer_of("theirs")["message"], "Its scheduler is 'default-scheduler', and not 'drover'");
  const auto queues = answers().of_queues()["queues"];
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0]["used"]["gpus"], 3.0);
  ASSERT_EQ(queues[0]["waiting"].size(), 1U);
  EXPECT_EQ(queues[0]["waiting"][0]["reasons"][0], waits["message"]);
}

TEST_F(AskingTest, PlansWithoutMakingAnything) {
  make_node("a", 4);
  make_pod(pod_json("runs", 3, "a"));
  ASSERT_TRUE(read());
  const auto small = plan_pods(api_, {pod_json("small", 1)}, "team", options_.version, scheduler_);
  ASSERT_TRUE(small);
  EXPECT_EQ(answers().of_pod(small->front())["state"], "starts");
  const auto large = plan_pods(api_, {pod_json("large", 2)}, "team", options_.version, scheduler_);
  EXPECT_THAT(answers().of_pod(large->front())["message"].get<std::string>(),
              StartsWith("0/1 nodes are available"));
  EXPECT_EQ(api_.list({kPods})->items.size(), 1U);
  const auto there = plan_pods(api_, {pod_json("runs", 1)}, "team", options_.version, scheduler_);
  EXPECT_EQ(there.error().kind, ErrorKind::kConflict);
  EXPECT_THAT(there.error().hint, HasSubstr("explain --pod"));
  const auto job = plan_pods(api_, {json{{"kind", "Job"}, {"apiVersion", "batch/v1"}}}, "team",
                             options_.version, scheduler_);
  EXPECT_EQ(job.error().message, "A Job cannot be planned");
}

TEST_F(AskingTest, TellsWhoWouldBeEndedForIt) {
  make_node("a", 4);
  make_pod(pod_json("runs", 4, "a"));
  ASSERT_TRUE(read());
  auto urgent = pod_json("urgent", 2);
  urgent["spec"]["priority"] = 100;
  const auto planned = plan_pods(api_, {urgent}, "team", options_.version, scheduler_);
  EXPECT_THAT(answers().of_pod(planned->front())["ends"], ElementsAre("team/runs"));
}

TEST_F(AskingTest, PlansClaimsAsTheyWouldBeMade) {
  for (const auto& resource : {kAskedClasses, kAskedSlices, kResourceClaims}) api_.serve(resource);
  make_node("a", 0);
  make({kAskedClasses}, {{"metadata", {{"name", "gpu"}}}, {"spec", json::object()}});
  json devices = json::array();
  for (const auto* name : {"gpu-0", "gpu-1"})
    devices.push_back(
        {{"name", name}, {"attributes", {{"uuid", {{"string", name}}}, {"type", {{"string", "gpu"}}}}}});
  make({kAskedSlices}, {{"metadata", {{"name", "a"}}},
                        {"spec",
                         {{"driver", "gpu.example"},
                          {"nodeName", "a"},
                          {"devices", devices},
                          {"pool", {{"name", "a"}, {"generation", 1}, {"resourceSliceCount", 1}}}}}});
  make({kAskedTemplates, "team"},
       {{"metadata", {{"name", "two"}}},
        {"spec",
         {{"spec",
           {{"devices",
             {{"requests",
               {{{"name", "gpus"},
                 {"exactly",
                  {{"deviceClassName", "gpu"}, {"allocationMode", "ExactCount"}, {"count", 2}}}}}}}}}}}}});
  ASSERT_TRUE(read());
  auto pod = pod_json("claims", 0);
  pod["spec"]["containers"][0].erase("resources");
  pod["spec"]["resourceClaims"] = {{{"name", "gpus"}, {"resourceClaimTemplateName", "two"}}};
  const auto planned = plan_pods(api_, {pod}, "team", options_.version, scheduler_);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto answer = answers().of_pod(planned->front());
  EXPECT_EQ(answer["state"], "starts") << answer;
  EXPECT_THAT(answer.value("gpus", json()), ElementsAre("gpu-0", "gpu-1"));
  EXPECT_THAT(api_.list({kResourceClaims})->items, IsEmpty());
}

TEST_F(AskingTest, NamesEveryRightThatIsMissing) {
  make_node("a", 4);
  api_.hidden = {"nodes", "persistentvolumes", "csinodes"};
  const auto read_so = read();
  ASSERT_FALSE(read_so);
  EXPECT_EQ(read_so.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(read_so.error().message,
            "You may not list nodes, persistentvolumes and csinodes.storage.k8s.io of the whole cluster, "
            "which decide where "
            "pods may run");
  EXPECT_THAT(read_so.error().hint, HasSubstr("drover-view"));
}

TEST_F(AskingTest, WhatCannotBeReadIsToldAndCountsAsAbsent) {
  make_node("a", 4);
  auto broken = pod_json("broken", 1);
  broken["spec"]["containers"] = "none";
  make_pod(broken);
  make_pod(pod_json("waits", 8));
  ASSERT_TRUE(read());
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(answer_of("waits")["state"], "waits");
}

class TellingTest : public AskingTest {
 protected:
  ObjectPath group() const { return {kAskedGroups, "team", "train"}; }
  json conditions() {
    const auto found = api_.get(group());
    return found ? found->value("/status/conditions"_json_pointer, json::array()) : json();
  }
  template <typename Holds>
  bool comes_true(const Holds& holds) {
    for (int i = 0; i < 500 && !holds(); ++i) pause(std::chrono::milliseconds(10), {});
    return holds();
  }
};

TEST_F(TellingTest, PodGroupsTellHowTheyStandAndAreWrittenOnce) {
  using scheduler::GangOutcome;
  make({kAskedGroups, "team"}, {{"metadata", {{"name", "train"}}}, {"spec", json::object()}});
  const auto uid = text_at(*api_.get(group()), "/metadata/uid");
  ConditionWriter writer(api_, {.between = std::chrono::milliseconds(1),
                                .again = std::chrono::milliseconds(1),
                                .at_most = std::chrono::milliseconds(1)});
  EXPECT_TRUE(writer.is_news(uid));
  writer.update({{group(), uid, "no room"}});
  EXPECT_FALSE(writer.is_news(uid));
  ASSERT_TRUE(comes_true([&] { return !conditions().empty(); }));
  EXPECT_EQ(conditions()[0]["reason"], "Unschedulable");
  EXPECT_EQ(conditions()[0]["message"], "no room");
  api_.failing = 2;
  writer.update({{group(), uid, "they have started", GangOutcome::kScheduled}});
  ASSERT_TRUE(comes_true([&] { return conditions()[0]["status"] == "True"; }));
  const auto written = api_.requests().size();
  writer.update({{group(), uid, "they have started", GangOutcome::kScheduled}});
  pause(std::chrono::milliseconds(50), {});
  EXPECT_EQ(api_.requests().size(), written);
}

TEST_F(TellingTest, AnotherObjectOfItsNameIsNotWritten) {
  make({kAskedGroups, "team"}, {{"metadata", {{"name", "train"}}}, {"spec", json::object()}});
  ConditionWriter writer(api_);
  writer.update({{group(), "uid-of-an-earlier-one", "no room"}});
  ASSERT_TRUE(comes_true([&] { return api_.requests().size() > 1; }));
  pause(std::chrono::milliseconds(50), {});
  EXPECT_THAT(conditions(), IsEmpty());
}

}  // namespace
}  // namespace drover::kube
