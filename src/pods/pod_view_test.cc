#include "pods/pod_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/instant.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kLeaving = "2026-01-02T03:05:00Z";

json pod(const std::string& phase, json status = json::object()) {
  status["phase"] = phase;
  return {{"metadata",
           {{"namespace", "drover-ann"},
            {"name", "6fcb514b0d1c-2"},
            {"uid", "u-1"},
            {"labels", {{kTaskLabel, "6fcb514b0d1c"}, {kAttemptLabel, "2"}, {kJournalLabel, "j"}}}}},
          {"spec", json::object()},
          {"status", std::move(status)}};
}

json on_node(json value) {
  value["spec"]["nodeName"] = "node-1";
  return value;
}

json leaving(json value) {
  value["metadata"]["deletionTimestamp"] = kLeaving;
  return value;
}

json evicted(json value, const std::string& reason = "PreemptionByScheduler") {
  value["status"]["conditions"].push_back(
      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}, {"message", "made room"}});
  return value;
}

json container(json state) {
  return {{"containerStatuses",
           {{{"name", "sidecar"}, {"state", {{"waiting", json::object()}}}},
            {{"name", kContainer}, {"state", std::move(state)}}}}};
}

json running() {
  return on_node(pod("Running", container({{"running", {{"startedAt", "2026-01-02T03:04:05Z"}}}})));
}

json ended(int status, const std::string& reason = "Error", const std::string& message = "") {
  return on_node(
      pod(status == 0 ? "Succeeded" : "Failed", container({{"terminated",
                                                            {{"exitCode", status},
                                                             {"reason", reason},
                                                             {"message", message},
                                                             {"startedAt", "2026-01-02T03:04:05Z"},
                                                             {"finishedAt", "2026-01-02T03:04:15Z"}}}})));
}

TEST(PodView, SaysWhichAttemptItIs) {
  const auto view = read_pod(running());
  EXPECT_EQ(view.task, "6fcb514b0d1c");
  EXPECT_EQ(view.attempt, 2);
  EXPECT_EQ(view.journal, "j");
  EXPECT_EQ(view.name_space + "/" + view.name + " " + view.uid, "drover-ann/6fcb514b0d1c-2 u-1");
  EXPECT_EQ(view.node, "node-1");
  EXPECT_EQ(format_time(view.started_at.value()), "2026-01-02T03:04:05.000Z");
}

TEST(PodView, KnowsEachStateOfALife) {
  using enum Actual;
  const auto pulling = on_node(pod("Pending", container({{"waiting", {{"reason", "ContainerCreating"}}}})));
  const std::vector<std::pair<json, Actual>> states = {
      {pod("Pending"), kUnplaced},
      {leaving(pod("Pending")), kUnplacedLeaving},
      {on_node(pod("Pending")), kPlaced},
      {pulling, kPlaced},
      {leaving(pulling), kPlacedLeaving},
      {evicted(leaving(pulling)), kPlacedEvicted},
      {running(), kRunning},
      {leaving(running()), kRunningLeaving},
      {evicted(leaving(running())), kRunningEvicted},
      {evicted(running()), kRunning},  // it is only about to be deleted
      {ended(0), kEnded},
      {leaving(ended(143)), kEnded},
      {evicted(leaving(ended(143))), kEndedEvicted},
      {on_node(pod("Failed", {{"reason", "OutOfcpu"}, {"message", "Node did not have enough resource"}})),
       kRefused},
      {evicted(running(), "DeletionByPodGC"), kRunning},
  };
  for (const auto& [value, expected] : states)
    EXPECT_EQ(to_string(read_pod(value).actual), to_string(expected)) << value;
}

TEST(PodView, SaysHowItEnded) {
  EXPECT_EQ(read_pod(ended(3)).ending.exit_status, 3);
  EXPECT_EQ(read_pod(ended(0, "Completed")).ending.exit_status, 0);
  EXPECT_TRUE(read_pod(ended(137, "OOMKilled")).ending.out_of_memory);
  EXPECT_EQ(read_pod(ended(128, "StartError", "exec: \"nothing\": not found")).ending.message,
            "exec: \"nothing\": not found");
  EXPECT_EQ(read_pod(ended(1, "Error", "the last lines of its log")).ending.message, "")
      << "people read that elsewhere";
  EXPECT_EQ(format_time(read_pod(ended(3)).ending.finished_at), "2026-01-02T03:04:15.000Z");
  auto by_node = ended(137);
  by_node["status"]["reason"] = "Evicted";
  by_node["status"]["message"] =
      "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.";
  EXPECT_THAT(read_pod(by_node).ending.message, HasSubstr("storage usage exceeds"));
}

TEST(PodView, WhatHasNotRunIsNotLostAndWhatHasIs) {
  const auto refused =
      read_pod(on_node(pod("Failed", {{"reason", "UnexpectedAdmissionError"}, {"message", "no device"}})));
  EXPECT_EQ(refused.why, "UnexpectedAdmissionError: no device");
  auto gone = running();
  gone["status"]["phase"] = "Failed";
  EXPECT_EQ(read_pod(gone).actual, Actual::kLost);
  EXPECT_TRUE(read_pod(gone).ending.lost);
  const auto unheard = read_pod(evicted(on_node(pod("Failed")), "DeletionByPodGC"));
  EXPECT_EQ(unheard.actual, Actual::kLost) << "it may have begun while its node could not tell";
  EXPECT_THAT(unheard.ending.message, HasSubstr("its node is gone"));
  auto without_files = on_node(pod("Failed", container({{"waiting", {{"reason", "PodInitializing"}}}})));
  without_files["status"]["initContainerStatuses"] = {
      {{"name", "fetch"}, {"state", {{"terminated", {{"exitCode", 66}, {"message", "http://x/y: 404"}}}}}}};
  const auto view = read_pod(without_files);
  EXPECT_EQ(view.actual, Actual::kEnded);
  EXPECT_EQ(view.ending.exit_status, 66);
  EXPECT_EQ(view.ending.message, "its files could not be brought: http://x/y: 404");
}

TEST(PodView, SaysWhyItWaitsAndWhyItGoes) {
  auto waits = pod("Pending");
  waits["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/5 nodes are available"}}};
  EXPECT_EQ(read_pod(waits).why, "0/5 nodes are available");
  EXPECT_EQ(read_pod(evicted(leaving(running()))).why, "made room");
}

TEST(PodView, SaysForWhomItMakesRoomWhereTheSchedulerSaidSo) {
  using kube::scheduler::Preemption;
  const auto told = [](const json& evicted) { return read_pod(evicted).preemption; };
  const Preemption preemption{false, "urgent-0"};
  for (auto made : {evicted(leaving(running())), evicted(ended(143))}) {
    EXPECT_EQ(told(made), std::nullopt) << "nobody's words that we know";
    auto& condition = made["status"]["conditions"].back();
    condition["message"] = to_string(preemption);
    EXPECT_EQ(told(made), preemption);
    condition["reason"] = "EvictionByEvictionAPI";
    EXPECT_EQ(told(made), std::nullopt);
    condition["reason"] = "PreemptionByScheduler";
    condition["status"] = "False";
    EXPECT_EQ(told(made), std::nullopt);
  }
}

TEST(PodView, AnyObjectIsReadWithoutHarm) {
  for (const auto& value :
       {json(), json(7), json::array(), json({{"status", "x"}, {"metadata", {1}}}),
        json({{"status", {{"containerStatuses", {7, {{"name", kContainer}, {"state", 3}}}}}}}),
        json({{"metadata", {{"labels", {{kAttemptLabel, "x"}}}}}})})
    EXPECT_EQ(read_pod(value).task, "");
  auto odd = ended(1);
  odd["status"]["containerStatuses"][1]["state"]["terminated"]["exitCode"] = -7;
  EXPECT_EQ(read_pod(odd).ending.exit_status, 0);
}

TEST(PodView, WhatItsNodeCannotStartHasEnded) {
  const auto waits = [](const char* reason) {
    return read_pod(on_node(
        pod("Pending", container({{"waiting", {{"reason", reason}, {"message", "no such image"}}}}))));
  };
  for (const auto* reason : {"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"}) {
    const auto view = waits(reason);
    EXPECT_EQ(view.actual, Actual::kEnded) << reason;
    EXPECT_EQ(view.ending.exit_status, 125);
    EXPECT_THAT(view.ending.message, HasSubstr("no such image"));
  }
  EXPECT_EQ(waits("ErrImagePull").actual, Actual::kPlaced) << "it is tried once more";
  EXPECT_EQ(waits("ErrImagePull").why, "no such image");
}

TEST(PodView, KnowsWhenItIsDueWhereItsTimeWasMadeShorter) {
  auto value = leaving(running());
  EXPECT_FALSE(read_pod(value).due_at) << "nobody says how long it has";
  value["spec"]["terminationGracePeriodSeconds"] = 3600;
  value["metadata"]["deletionGracePeriodSeconds"] = 3600;
  EXPECT_FALSE(read_pod(value).due_at) << "its kubelet sees to it";
  value["metadata"]["deletionGracePeriodSeconds"] = 1;
  const auto due = parse_instant(kLeaving);
  ASSERT_TRUE(due);
  EXPECT_EQ(read_pod(value).due_at, due);
  EXPECT_EQ(read_pod(evicted(value)).due_at, due);
  auto over = leaving(ended(137));
  over["spec"] = value["spec"];
  over["metadata"]["deletionGracePeriodSeconds"] = 1;
  EXPECT_FALSE(read_pod(over).due_at) << "it has ended";
  value["metadata"].erase("deletionTimestamp");
  EXPECT_FALSE(read_pod(value).due_at);
}

TEST(PodView, KnowsItsGpusItsAddressAndWhatHoldsIt) {
  auto value = leaving(running());
  value["metadata"]["annotations"]["drover.dev/gpus"] = "GPU-1,GPU-2";
  value["metadata"]["finalizers"] = json::array({"other", kFinalizer});
  value["status"]["podIP"] = "10.0.0.7";
  const auto view = read_pod(value);
  EXPECT_EQ(view.gpus, (std::vector<std::string>{"GPU-1", "GPU-2"}));
  EXPECT_EQ(view.address, "10.0.0.7");
  EXPECT_TRUE(view.leaving);
  EXPECT_TRUE(view.held);
}

}  // namespace
}  // namespace drover::pods
