#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/fake_tree.h"
#include "base/files.h"
#include "kube/client/testing/fake_api.h"
#include "kube/gpu_topology.h"
#include "kube/report/node_report.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

gpu::Device gpu_with(int index) {
  gpu::Device device;
  device.uuid = "GPU-" + std::to_string(index);
  device.index = index;
  device.minor = index;
  device.model = "Tesla K80";
  return device;
}

NodeState two_gpus() {
  NodeState state;
  state.inventory.devices = {gpu_with(0), gpu_with(1)};
  state.inventory.driver_version = "550.163.01";
  state.cdi = CdiSupport::kYes;
  state.claims = "";
  return state;
}

gpu::Reason xid(std::uint64_t number, bool takes_out = true) {
  return {gpu::ReasonKind::kXid, number, {}, takes_out, {}};
}

gpu::HealthChange failed(const std::string& uuid) {
  return {uuid, {xid(79)}, {}, true, false};
}

std::vector<std::string> statuses(const std::vector<NodeCondition>& conditions) {
  std::vector<std::string> words;
  for (const auto& condition : conditions)
    words.push_back(condition.type + " " + condition.status + " " + condition.reason);
  return words;
}

TEST(NodeConditions, OfAHealthyNode) {
  EXPECT_THAT(statuses(node_conditions(two_gpus())),
              ElementsAre("DroverGpusReady True AllReady", "DroverCdiSupported True RuntimeDoesCdi",
                          "DroverClaimsServed True Serving"));
}

TEST(NodeConditions, SayWhatIsWrong) {
  auto state = two_gpus();
  state.inventory.devices[1].unhealthy = "XID 79: it has fallen off the bus";
  state.cdi = CdiSupport::kNo;
  state.runtime = "containerd 1.6.20 does no CDI";
  state.claims = "the kubelet refuses the driver";
  const auto conditions = node_conditions(state);
  EXPECT_THAT(statuses(conditions),
              ElementsAre("DroverGpusReady False SomeNotReady", "DroverCdiSupported False RuntimeWithoutCdi",
                          "DroverClaimsServed False NotServing"));
  EXPECT_EQ(conditions[0].message,
            "1 of 2 GPUs is given to nobody; GPU 1 (GPU-1): XID 79: it has fallen off the bus");
  EXPECT_EQ(conditions[1].message, state.runtime);
  EXPECT_EQ(conditions[2].message, *state.claims);
  state.inventory.devices[0].unhealthy = std::string(5000, 'x');
  EXPECT_EQ(node_conditions(state)[0].reason, "NoneReady");
  EXPECT_LE(node_conditions(state)[0].message.size(), 2100U);
}

TEST(NodeConditions, OfANodeThatNothingIsKnownOf) {
  NodeState state;
  state.inventory.problems = {{ErrorKind::kNotFound, "there is no libnvidia-ml.so.1", "", ""}};
  const auto conditions = node_conditions(state);
  EXPECT_THAT(statuses(conditions),
              ElementsAre("DroverGpusReady Unknown NoGpus", "DroverCdiSupported Unknown RuntimeDoesNotTell"));
  EXPECT_THAT(conditions[0].message, HasSubstr("libnvidia-ml.so.1"));
}

TEST(GpuEvents, OfAnErrorThatTakesTheGpuOutAndOfItsReturn) {
  const auto events = events_of(failed("GPU-1"), "GPU 1 (GPU-1)");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].text.warning);
  EXPECT_TRUE(events[0].for_pods);
  EXPECT_EQ(events[0].text.reason, "GpuUnhealthy");
  EXPECT_THAT(events[0].text.message, HasSubstr("GPU 1 (GPU-1): XID 79"));
  EXPECT_THAT(events_of({"GPU-1", {}, {xid(79)}, false, true}, "GPU 1 (GPU-1)"),
              ElementsAre(GpuEvent{{false, "GpuHealthy", "GPU 1 (GPU-1) is given out again"}}));
}

TEST(GpuEvents, OfWhatTakesNoGpuOut) {
  const gpu::Reason unmonitored = {gpu::ReasonKind::kUnmonitored, 0, {}, false, {}};
  const auto events = events_of({"GPU-1", {xid(31, false), unmonitored}, {}, true, true}, "GPU 1");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].text.reason, "GpuError");
  EXPECT_TRUE(events[0].for_pods);
  EXPECT_EQ(events[1].text.reason, "GpuWarning");
  EXPECT_FALSE(events[1].for_pods);
}

ContainerUse by_limit(const std::string& pod, const std::string& id) {
  return {"team", pod, "main", {{"nvidia.com/gpu", {id}}}, {}};
}

ContainerUse by_claim(const std::string& pod, const std::string& driver, const std::string& pool) {
  return {"team", pod, "main", {}, {{"claim", driver, pool, "gpu-1", ""}}};
}

TEST(PodsWith, AreThoseOfLimitsSharesAndClaims) {
  const std::vector<ContainerUse> containers = {
      by_limit("whole", "GPU-1"),           by_limit("share", "GPU-1::3"),
      by_limit("share", "GPU-1::4"),        by_limit("other", "GPU-10"),
      by_claim("claim", "gpu.d", "node"),   by_claim("driver", "others", "node"),
      by_claim("pool", "gpu.d", "another"),
  };
  EXPECT_THAT(pods_with("GPU-1", {}, two_gpus(), {"gpu.d", "node"}, containers),
              ElementsAre(PodName{"team", "claim"}, PodName{"team", "share"}, PodName{"team", "whole"}));
}

TEST(PodsWith, AreThoseOfThePartThatItConcerns) {
  auto state = two_gpus();
  state.mig["GPU-1"].profiles = {{.name = "1g.5gb", .id = 19}};
  state.mig["GPU-1"].instances = {{7, 19, {0, 1}, "MIG-a", 0}, {8, 19, {1, 1}, "MIG-b", 0}};
  const std::vector<ContainerUse> containers = {
      by_limit("limit", "MIG-a"),
      {"team", "claim", "main", {}, {{"claim", "gpu.d", "node", "gpu-1-mig-1g5gb-19-1", ""}}}};
  const ClaimNames claims{"gpu.d", "node"};
  EXPECT_THAT(pods_with("GPU-1", {}, state, claims, containers),
              ElementsAre(PodName{"team", "claim"}, PodName{"team", "limit"}));
  EXPECT_THAT(pods_with("GPU-1", {7, {}}, state, claims, containers), ElementsAre(PodName{"team", "limit"}));
  EXPECT_THAT(pods_with("GPU-1", {8, 0}, state, claims, containers), ElementsAre(PodName{"team", "claim"}));
  EXPECT_THAT(pods_with("GPU-1", {9, 0}, state, claims, containers), IsEmpty());
  EXPECT_TRUE(knows_instance(state, "GPU-1", {8, 0}));
  EXPECT_FALSE(knows_instance(state, "GPU-1", {9, 0}));
  EXPECT_TRUE(knows_instance(state, "GPU-0", {9, 0}));
  gpu::HealthChange change = failed("GPU-1");
  change.opened.front().instance = {7, 0};
  EXPECT_EQ(events_of(change, "GPU 1").front().instance.gpu, 7U);
}

class NodeReportTest : public ::testing::Test {
 protected:
  NodeReportTest() {
    json node = {{"metadata", {{"name", "a"}}}, {"status", json::object()}};
    EXPECT_TRUE(api_->create({kNodes}, node));
  }

  NodeReportOptions options() {
    NodeReportOptions options;
    options.node = "a";
    options.driver = "gpu.d";
    options.again = options.retry = 20ms;
    options.containers = [] {
      return std::vector<ContainerUse>{by_limit("mine", "GPU-1"), by_limit("other", "GPU-0")};
    };
    options.pod_uids = [] { return std::map<PodName, std::string>{{{"team", "mine"}, "u-1"}}; };
    options.warn = [this](const std::string& sentence) {
      ++warnings_;
      EXPECT_THAT(sentence, HasSubstr("are not written"));
    };
    return options;
  }

  json node() { return api_->get({kNodes, "", "a"}).value_or(json::object()); }
  std::vector<json> events() {
    std::vector<json> found;
    const auto list = api_->list({{"", "v1", "events"}});
    for (const auto& item : list->items) found.push_back(*item);
    return found;
  }

  static bool soon(const std::function<bool()>& holds) {
    for (int i = 0; i < 12000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  bool has_label(const std::string& name) {
    return node()["metadata"].value("labels", json::object()).contains(name);
  }
  bool has_conditions(std::size_t count) {
    return node()["status"].value("conditions", json::array()).size() == count;
  }

  std::shared_ptr<testing::FakeApi> api_ = std::make_shared<testing::FakeApi>();
  std::atomic<int> warnings_ = 0;
};

TEST_F(NodeReportTest, WritesWhatIsSoAndMendsWhatSomebodyRemoved) {
  NodeReport report(options());
  report.update(two_gpus());
  report.reach(api_);
  ASSERT_TRUE(soon([&] { return has_label("nvidia.com/gpu.count") && has_conditions(3); }));
  ASSERT_TRUE(api_->replace({kNodes, "", "a"}, {{"metadata", {{"name", "a"}}}, {"status", json::object()}}));
  EXPECT_TRUE(soon([&] { return has_label("nvidia.com/gpu.count") && has_conditions(3); }));
}

TEST_F(NodeReportTest, TellsHowGpusAreJoinedWithTheirLabels) {
  auto wanted = options();
  wanted.again = 1h;
  const auto told = [&] { return text_at(node(), "/metadata/annotations/drover.dev~1gpu-topology"); };
  NodeReport report(wanted);
  report.reach(api_);
  auto state = two_gpus();
  state.whole = state.inventory;
  report.update(state);
  ASSERT_TRUE(soon([&] { return has_conditions(3); }));
  EXPECT_EQ(told(), write_topology(state.whole));
  const auto before = api_->requests().size();
  state.whole.devices[1].unhealthy = "XID 79";
  report.update(state);
  ASSERT_TRUE(soon([&] { return told().find("XID 79") != std::string::npos; }));
  state.whole.devices.clear();
  report.update(state);
  ASSERT_TRUE(soon([&] { return told().empty(); }));
  EXPECT_TRUE(has_label("nvidia.com/gpu.count"));
  for (auto i = before; i < api_->requests().size(); ++i)
    EXPECT_TRUE(api_->requests()[i].path.subresource.empty()) << "conditions have not changed";
}

TEST_F(NodeReportTest, TellsTheNodeAndThePodsThatHaveTheGpu) {
  NodeReport report(options());
  report.changed(failed("GPU-1"));  // waits for the API server
  report.update(two_gpus());
  report.reach(api_);
  ASSERT_TRUE(soon([&] { return events().size() == 2; }));
  std::map<std::string, std::string> told;
  for (const auto& event : events()) told[event["involvedObject"]["kind"]] = event["involvedObject"]["uid"];
  EXPECT_EQ(told, (std::map<std::string, std::string>{{"Node", "a"}, {"Pod", "u-1"}}));
}

TEST_F(NodeReportTest, TellsThePodsWhenTheKubeletAnswers) {
  auto wanted = options();
  std::atomic<int> asked = 0;
  wanted.containers = [&, answer = wanted.containers]() -> Result<std::vector<ContainerUse>> {
    if (++asked < 3) return fail(ErrorKind::kTimeout, "what GPUs have are not written");
    return answer();
  };
  NodeReport report(wanted);
  report.changed(failed("GPU-1"));
  report.update(two_gpus());
  report.reach(api_);
  EXPECT_TRUE(soon([&] { return events().size() == 2; }));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(warnings_, 1);
}

TEST_F(NodeReportTest, TellsThePodWhosePartFailsBeforeItWasLookedAt) {
  auto wanted = options();
  wanted.containers = [] { return std::vector<ContainerUse>{by_limit("mine", "MIG-a")}; };
  NodeReport report(wanted);
  auto change = failed("GPU-1");
  change.opened.front().instance = {7, 0};
  report.changed(change);
  auto state = two_gpus();
  state.mig["GPU-1"].profiles = {{.name = "1g.5gb", .id = 19}};
  report.update(state);
  report.reach(api_);
  ASSERT_TRUE(soon([&] { return events().size() == 1; }));  // the node's
  state.mig["GPU-1"].instances = {{7, 19, {0, 1}, "MIG-a", 0}};
  report.update(state);
  EXPECT_TRUE(soon([&] { return events().size() == 2; }));
}

TEST_F(NodeReportTest, TellsOnlyTheNodeWhenNobodyKnowsThePods) {
  auto wanted = options();
  std::atomic<int> asked = 0;
  wanted.containers = [&]() -> Result<std::vector<ContainerUse>> {
    ++asked;
    return fail(ErrorKind::kTimeout, "what GPUs have are not written");
  };
  NodeReport report(wanted);
  report.changed(failed("GPU-1"));
  report.update(two_gpus());
  report.reach(api_);
  EXPECT_TRUE(soon([&] { return asked == 6 && events().size() == 1; }));
}

TEST_F(NodeReportTest, TriesAgainAndComplainsOnce) {
  const Error denied{ErrorKind::kPermissionDenied, "denied", "", ""};
  api_->fail_next({denied, denied, denied, denied});
  NodeReport report(options());
  report.update(two_gpus());
  report.reach(api_);
  // The test's own node; two rounds that fail; labels, and a look and a patch for each condition.
  EXPECT_TRUE(soon([&] { return api_->requests().size() >= 1 + 2 * 2 + 1 + 3 * 2; }));
  EXPECT_TRUE(has_label("nvidia.com/gpu.count"));
  EXPECT_TRUE(has_conditions(3));
  EXPECT_EQ(warnings_, 2);  // of labels, and of conditions
}

TEST_F(NodeReportTest, LabelsGoIntoAFileForFeatureDiscoveryWithoutAnApiServer) {
  const FakeTree tree;
  auto wanted = options();
  wanted.conditions = wanted.events = false;
  wanted.feature_file = tree / "features";
  NodeReport report(wanted);
  EXPECT_FALSE(report.needs_api());
  report.update(two_gpus());
  EXPECT_TRUE(soon([&] {
    return read_file(wanted.feature_file).value_or("").find("nvidia.com/gpu.count=2\n") != std::string::npos;
  }));
}

TEST_F(NodeReportTest, SaysNothingThatItShouldNot) {
  auto wanted = options();
  wanted.labels = wanted.conditions = wanted.events = false;
  {
    NodeReport report(wanted);
    report.update(two_gpus());
    report.reach(api_);
    report.changed(failed("GPU-1"));
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_FALSE(has_label("nvidia.com/gpu.count"));
  EXPECT_THAT(events(), IsEmpty());
}

}  // namespace
}  // namespace drover::kube
