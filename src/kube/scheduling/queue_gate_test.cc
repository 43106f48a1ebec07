#include "kube/scheduling/queue_gate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"
#include "kube/scheduler/pod.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using testing::FakeApi;

const ObjectPath kGated{kPods, "team", "train"};
const auto kMayWrite = [] { return true; };

class QueueGate : public ::testing::Test {
 protected:
  QueueGate() {
    const json pod{
        {"metadata", {{"name", "train"}, {"namespace", "team"}}},
        {"spec", {{"schedulingGates", {{{"name", "drover.dev/queue"}}, {{"name", "example.com/own"}}}}}}};
    EXPECT_TRUE(api.create({kPods, "team", ""}, pod));
    name = {text_at(*api.get(kGated), "/metadata/uid"), "team", "train"};
  }
  Status open() {
    return open_queue_gate(api, name, "node-1", TimePoint(std::chrono::seconds(1'700'000'000)), kMayWrite,
                           {});
  }

  FakeApi api;
  scheduler::PodName name;
};

TEST_F(QueueGate, IsOpenedAloneAndNotedOnThePod) {
  ASSERT_TRUE(open());
  const auto pod = scheduler::read_pod(*api.get(kGated));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->made_from->scheduling_gates, std::vector<std::string>{"example.com/own"});
  EXPECT_EQ(pod->release,
            (scheduler::Release{false, TimePoint(std::chrono::seconds(1'700'000'000)), "node-1"}));
  EXPECT_TRUE(open()) << "once more does no harm";
}

TEST_F(QueueGate, IsOpenedAlsoWhenNobodyKnowsWhetherItWas) {
  api.fail_next({{ErrorKind::kTimeout, "no answer"}, {ErrorKind::kUnavailable, "busy"}});
  EXPECT_TRUE(open());
  api.fail_next({{ErrorKind::kTimeout, "no answer"}});
  EXPECT_FALSE(open_queue_gate(api, name, "node-1", {}, [] { return false; }, {}));
}

TEST_F(QueueGate, OfAnotherPodStays) {
  name.uid = "another";
  EXPECT_EQ(open().error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(scheduler::read_pod(*api.get(kGated))->release.gated);
}

}  // namespace
}  // namespace drover::kube
