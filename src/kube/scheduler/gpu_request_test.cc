#include "kube/scheduler/gpu_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/scheduler/scheduler.h"
#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using testing::changed;
using testing::claiming;
using ::testing::ElementsAre;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMoment;
using testing::reasons_of;
using testing::slice_of;
using testing::started;

PodObject saying(const std::string& name, std::int64_t gpus, const std::string& request) {
  return {changed(asking_pod(name, {.gpus = gpus}), [&](auto& made) { made.gpu_request = request; })};
}

gpu::Inventory of_model(gpu::Inventory gpus, const std::string& model, std::uint64_t gib) {
  for (auto& device : gpus.devices) {
    device.model = model;
    device.memory_bytes = gib << 30;
  }
  return gpus;
}

TEST(GpuRequest, IsReadAsItWasWritten) {
  placement::Request request;
  request.gpus = {{2, {.models = {"A100", "H100"}, .min_memory_bytes = 1ULL << 30, .ecc = false}},
                  {1, {.min_compute_capability = gpu::ComputeCapability{8, 6}, .min_driver = "535.104"}}};
  request.different_models = true;
  request.interconnect = {.min_nvlinks = 0, .max_pcie = gpu::PcieLevel::kSwitch};
  placement::Request read;
  ASSERT_TRUE(add_gpu_request(write_gpu_request(request), 3, read));
  EXPECT_EQ(read, request);
}

TEST(GpuRequest, IsNothingWhereANumberSaysIt) {
  placement::Request request;
  EXPECT_EQ(write_gpu_request(request), "");
  request.gpus = {{4, {}}};
  EXPECT_EQ(write_gpu_request(request), "");
  ASSERT_TRUE(add_gpu_request(R"({"gpu_memory": "8GiB"})", 4, request));
  EXPECT_EQ(request.gpu_count(), 4);
  EXPECT_NE(write_gpu_request(request), "");
}

TEST(GpuRequest, NamesEveryMistakeAndChangesNothing) {
  const placement::Request before{.gpus = {{2, {}}}};
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"no JSON", "line 1"},
           {"[]", "no object"},
           {R"({"cpus": 4, "gpu_share": 0.5})", "/gpu_share"},
           {R"({"gpus": 3})", "limits"},
           {R"({"gpus": 0.5})", "limits"},
           {R"({"gpu_model": 7})", "/gpu_model"},
           {R"({"interconnect": "wires"})", "'wires'"},
           {R"({"gpus": [{"count": 2, "modell": "x"}]})", "modell"}}) {
    auto request = before;
    const auto added = add_gpu_request(text, 2, request);
    ASSERT_FALSE(added) << text;
    EXPECT_THAT(to_string(added.error()), HasSubstr(message));
    EXPECT_EQ(request, before);
  }
}

TEST(SchedulerGpuRequests, AreKept) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), of_model(gpus_of("a", 4), "A100", 40));
  scheduler.put_node(gpu_node("b", 2), of_model(gpus_of("b", 2), "H100", 80));
  scheduler.put_pod(saying("one", 1, R"({"gpu_model": "H100"})"));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on b: b-0"));
  scheduler.put_pod(saying("two", 2, R"({"gpu_memory": "80GiB"})"));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "two"),
              ElementsAre(HasSubstr("1 has no GPU with 80 GiB")));
  scheduler.remove_pod("uid-two");
  scheduler.put_pod(saying("three", 1, R"({"gpu_memory": "80GiB"})"));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("three on b: b-1"));
}

TEST(SchedulerGpuRequests, HoldForPairs) {
  Scheduler scheduler;
  auto gpus = gpus_of("a", 4);
  gpus.links[0][3].nvlinks = gpus.links[3][0].nvlinks = 2;
  scheduler.put_node(gpu_node("a"), gpus);
  scheduler.put_node(gpu_node("uncertain", 2));  // only says how many
  scheduler.put_pod(saying("one", 2, R"({"interconnect": "nvlink:2"})"));
  EXPECT_THAT(started(scheduler.decide(kMoment)), ElementsAre("one on a: a-0 a-3"));
  scheduler.put_pod(saying("two", 2, R"({"interconnect": "nvlink:2"})"));
  EXPECT_THAT(reasons_of(scheduler.decide(kMoment), "two"), ElementsAre(HasSubstr("NVLink")));
}

TEST(SchedulerGpuRequests, HoldWhereClaimsAreMadeForLimits) {
  Scheduler scheduler;
  scheduler.put_device_class({.name = "gpu", .extended_resource = kGpuResource});
  auto gpus = of_model(gpus_of("a", 4), "A100", 40);
  gpus.devices[2].model = "H100";
  scheduler.put_node(gpu_node("a", 0), gpus);
  scheduler.put_slice(slice_of("a", 4));
  auto pod = saying("one", 1, R"({"gpu_model": "H100"})");
  pod.pod = changed(pod.pod, [](auto& made) {
    made.containers = {{.name = "main", .names = {"cpu", kGpuResource}, .amounts = {{kGpuResource, 1}}}};
  });
  scheduler.put_pod(pod);
  const auto round = scheduler.decide(kMoment);
  ASSERT_EQ(round.starts.size(), 1U);
  EXPECT_EQ(round.starts[0].bindings.at(0).claims.at(0).allocation->devices.at(0).id.device, "gpu-2");
}

TEST(SchedulerGpuRequests, ThatCannotBeMeantAreRefusedInWords) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a"), gpus_of("a", 4));
  scheduler.put_pod(saying("none", 0, R"({"gpu_model": "H100"})"));
  scheduler.put_pod(saying("more", 1, R"({"gpus": 2})"));
  auto both = claiming("both");
  both.pod = changed(both.pod, [](auto& made) {
    made.requests.others[kGpuResource] = 1;
    made.gpu_request = "{}";
  });
  scheduler.put_pod(both);
  const auto round = scheduler.decide(kMoment);
  EXPECT_THAT(started(round), IsEmpty());
  EXPECT_THAT(reasons_of(round, "none"), ElementsAre(HasSubstr("limits ask for none")));
  EXPECT_THAT(reasons_of(round, "more"), ElementsAre(HasSubstr("limits say, which are 1")));
  EXPECT_THAT(reasons_of(round, "both"), ElementsAre(HasSubstr("GPUs by limits and claims")));
}

}  // namespace
}  // namespace drover::kube::scheduler
