#include "pods/gpu_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "pods/pod_writer.h"
#include "pods/testing/tasks.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using workload::Task;

const PodSettings kClaimSettings{.journal = "j"};

Task half() {
  auto task = testing::task_of_ann("6fcb514b0d1c", 1);
  task.resources.share.milli = 500;
  return task;
}

json pod_of(const Task& task, const std::string& uid = "u") {
  const auto pod = write_pod({task, 3, {}}, kClaimSettings);
  if (!pod) {
    ADD_FAILURE() << pod.error().front().message;
    return {};
  }
  auto made = *pod;
  made["metadata"]["uid"] = uid;
  return made;
}

json claim_of(const Task& task) {
  return write_claim(pod_of(task));
}

TEST(GpuClaim, AShareIsAClaimThatItsPodOwns) {
  const auto pod = pod_of(half());
  const auto& container = pod.at("spec").at("containers").at(0);
  EXPECT_FALSE(container.at("resources").at("limits").contains("nvidia.com/gpu"));
  EXPECT_EQ(container.at("resources").at("claims"), json::parse(R"([{"name": "gpus"}])"));
  EXPECT_EQ(pod.at("spec").at("resourceClaims"),
            json::parse(R"([{"name": "gpus", "resourceClaimName": "6fcb514b0d1c-3"}])"));
  const auto claim = write_claim(pod);
  EXPECT_EQ(claim.at("metadata"), json::parse(R"({
    "name": "6fcb514b0d1c-3", "namespace": "drover-ann",
    "labels": {"app.kubernetes.io/managed-by": "drover", "drover.dev/journal": "j"},
    "annotations": {"drover.dev/sole-gpus": "true"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "6fcb514b0d1c-3", "uid": "u", "controller": true}]})"));
  EXPECT_EQ(claim.at("spec"), json::parse(R"({"devices": {"requests": [{"name": "gpus", "exactly": {
    "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1,
    "selectors": [{"cel": {"expression": "device.allowMultipleAllocations == true"}}],
    "capacity": {"requests": {"share": "500"}}}}]}})"));
}

TEST(GpuClaim, SharesOfSeveralGpusAreOfDifferentOnes) {
  auto task = half();
  task.resources.gpus = {{2, {}}};
  task.resources.share = {.memory_bytes = 8ULL << 30};
  const auto devices = claim_of(task).at("spec").at("devices");
  EXPECT_EQ(devices.at("constraints"), json::parse(R"([{"distinctAttribute": "gpu.nvidia.com/uuid"}])"));
  EXPECT_EQ(devices.at("/requests/0/exactly/capacity/requests"_json_pointer),
            json::parse(R"({"memory": "8589934592"})"));
}

TEST(GpuClaim, TheMembersOfAGroupOwnItsClaimTogether) {
  auto task = half();
  task.resources.share = {};
  task.resources.group = "demo";
  auto other = task;
  other.id = "other";
  const auto claim = claim_of(task);
  EXPECT_EQ(claim.at("metadata").at("name"), claim_of(other).at("metadata").at("name"));
  EXPECT_FALSE(claim.at("metadata").at("ownerReferences").at(0).contains("controller"));
  EXPECT_FALSE(claim.at("spec").at("devices").at("requests").at(0).at("exactly").contains("capacity"));
}

TEST(GpuClaim, AGroupIsItsUsersAndOfThoseWhoAskForTheSame) {
  const auto place = [](const Task& task) {
    const auto metadata = claim_of(task).at("metadata");
    return metadata.at("namespace").get<std::string>() + "/" + metadata.at("name").get<std::string>();
  };
  auto task = half();
  task.resources.group = "demo";
  std::set<std::string> places = {place(task)};
  auto more = task;
  more.resources.gpus = {{2, {}}};
  auto larger = task;
  larger.resources.share.milli = 501;
  auto particular = task;
  particular.resources.gpus[0].filter.models = {"A100"};
  auto elsewhere = task;
  elsewhere.resources.group = "demos";
  auto bobs = task;
  bobs.owner = 1001;
  bobs.owner_name = "bob";
  for (const auto& one : {more, larger, particular, elsewhere, bobs})
    EXPECT_TRUE(places.insert(place(one)).second);
}

TEST(GpuClaim, WholeGpusNeedNone) {
  auto task = half();
  task.resources.share = {};
  const auto pod = pod_of(task);
  EXPECT_TRUE(write_claim(pod).is_null());
  EXPECT_FALSE(pod.at("spec").contains("resourceClaims"));
  EXPECT_EQ(pod.at("/spec/containers/0/resources/limits"_json_pointer).at("nvidia.com/gpu"), "1");
  task.resources.gpus.clear();
  task.resources.group = "demo";
  EXPECT_FALSE(needs_claim(task.resources));
}

TEST(GpuClaim, WhatBringsFilesHasNoGpus) {
  auto settings = kClaimSettings;
  settings.helper_image = "drover:1";
  auto task = half();
  task.fetch = std::vector<workload::Fetch>{{.uri = "http://x/y"}};
  const auto pod = write_pod({task, 0, {}}, settings);
  ASSERT_TRUE(pod);
  EXPECT_FALSE(pod->at("/spec/initContainers/0/resources"_json_pointer).contains("claims"));
}

TEST(GpuClaim, WhatNoClaimCanBeIsRefused) {
  auto settings = kClaimSettings;
  settings.claims = false;
  EXPECT_EQ(check_task(half(), {}, settings).error().path, "/gpu_share");
  auto many = half();
  many.resources.gpus = {{33, {}}};
  EXPECT_EQ(check_task(many, {}, kClaimSettings).error().path, "/gpus");
}

TEST(GpuClaim, AServerThatKeepsNoSharesIsFoundOut) {
  const auto written = claim_of(half());
  EXPECT_TRUE(asks_for_the_same(written, written));
  auto kept = written;
  kept["spec"]["devices"]["requests"][0]["exactly"].erase("capacity");
  EXPECT_FALSE(asks_for_the_same(kept, written));
  auto others = written;
  others["metadata"]["labels"].erase(kJournalLabel);
  EXPECT_FALSE(asks_for_the_same(others, written));
}

TEST(GpuClaim, ThePodIsToldWhatItHas) {
  auto pod = pod_of(half());
  pod["metadata"]["annotations"]["drover.dev/claimed-gpus"] = "GPU-1";
  pod["metadata"]["annotations"]["drover.dev/gpus"] = "GPU-2";
  EXPECT_THAT(read_pod(pod).gpus, ElementsAre("GPU-1"));
  container::Launch launch;
  launch.task = half();
  EXPECT_EQ(environment_of(launch, kClaimSettings).at("DROVER_GPU_SHARE"), "0.5");
  launch.task.resources.gpus = {{2, {}}};
  launch.task.resources.share = {.memory_bytes = 1024};
  EXPECT_EQ(environment_of(launch, kClaimSettings).at("DROVER_GPU_MEMORY"), "1024,1024");
}

}  // namespace
}  // namespace drover::pods
