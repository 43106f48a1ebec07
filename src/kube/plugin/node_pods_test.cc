#include "kube/plugin/node_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "kube/client/testing/fake_api.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kGpus = "nvidia.com/gpu";

class NodePodsTest : public ::testing::Test {
 protected:
  NodePodsOptions options() {
    NodePodsOptions options;
    options.node = "a";
    options.resources = [this] { return ask_kubelet(); };
    options.pod_uids = [this] { return running_; };
    options.warn = [this](const std::string& sentence) { warned_ = sentence; };
    return options;
  }
  /// Whose pods are taken in as soon as they are bound, unless it is said which are.
  Result<PodResources> ask_kubelet() {
    if (silent_ > 0) {
      --silent_;
      return fail(ErrorKind::kUnavailable, "it has just started");
    }
    PodResources told{taken_in_, uses_};
    if (taken_in_.empty())
      for (const auto& name : bound_) told.pods.insert({"n", name});
    return told;
  }
  void bind(const std::string& name, const std::string& gpus, const std::string& count = "1",
            const std::string& node = "a") {
    json pod = {
        {"metadata", {{"name", name}, {"annotations", json::object()}}},
        {"spec",
         {{"nodeName", node},
          {"containers", json::array({{{"name", "c"}, {"resources", {{"limits", {{kGpus, count}}}}}}})}}},
        {"status", {{"phase", "Pending"}}}};
    if (!gpus.empty()) pod["metadata"]["annotations"]["drover.dev/gpus"] = gpus;
    ASSERT_TRUE(api_->create({kPods, "n"}, pod));
    bound_.push_back(name);
  }
  std::string chosen(const std::string& name) {
    return text_at(api_->get({kPods, "n", name}).value_or(json::object()),
                   "/metadata/annotations/drover.dev~1gpus");
  }
  int count(std::string_view verb) const {
    int number = 0;
    for (const auto& request : api_->requests()) number += request.verb == verb ? 1 : 0;
    return number;
  }
  static bool soon(const std::function<bool()>& holds) {
    for (int i = 0; i < 12000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  std::shared_ptr<testing::FakeApi> api_ = std::make_shared<testing::FakeApi>();
  std::vector<std::string> bound_;
  std::set<PodName> taken_in_;
  std::atomic<int> silent_ = 0;  ///< so many times
  std::vector<ContainerUse> uses_;
  std::map<PodName, std::string> running_;
  std::string warned_;
};

TEST_F(NodePodsTest, KnowsNothingWithoutAnApiServer) {
  NodePods pods(options());
  EXPECT_FALSE(pods.hint({kGpus, 1}).is_known);
  pods.correct({"GPU-1"});
}

TEST_F(NodePodsTest, AsksTheApiServerForAPodThatItHasNotHeardOf) {
  bind("elsewhere", "GPU-9", "1", "b");
  NodePods pods(options());
  pods.follow(api_);
  ASSERT_TRUE(soon([&] { return api_->watches() == 1; }));
  EXPECT_THAT(pods.hint({kGpus, 1}).take, IsEmpty());
  EXPECT_EQ(count("list"), 2);  // the informer's, and one for the question
  bind("one", "GPU-1");
  EXPECT_THAT(pods.hint({kGpus, 1}).take, ElementsAre("GPU-1"));
  bind("two", "GPU-2,GPU-3", "2");
  ASSERT_TRUE(soon([&] {
    const int before = count("list");
    return pods.hint({kGpus, 2}).is_known && count("list") == before;
  }));
  EXPECT_THAT(pods.hint({kGpus, 1}).take, ElementsAre("GPU-1"));
}

TEST_F(NodePodsTest, IsOfNoHindranceWhenTheApiServerIsAway) {
  NodePods pods(options());
  pods.follow(api_);
  ASSERT_TRUE(soon([&] { return api_->watches() == 1; }));
  api_->fail_next({{ErrorKind::kTimeout, "away", "", ""}});
  EXPECT_FALSE(pods.hint({kGpus, 1}).is_known);
}

TEST_F(NodePodsTest, TakesThePodThatTheKubeletTellsOfForTheOneThatAsks) {
  NodePods pods(options());
  pods.follow(api_);
  bind("one", "GPU-1");
  bind("two", "GPU-2");
  bind("three", "GPU-3");
  taken_in_ = {{"n", "two"}};
  EXPECT_THAT(pods.hint({kGpus, 1}).take, ElementsAre("GPU-2"));
  taken_in_ = {{"n", "two"}, {"n", "three"}};
  uses_ = {{"n", "two", "c", {{kGpus, {"GPU-2"}}}, {}}};
  EXPECT_THAT(pods.hint({kGpus, 1}).take, ElementsAre("GPU-3"));
}

TEST_F(NodePodsTest, AsksAKubeletAgainThatHasJustStarted) {
  auto set = options();
  set.patience = 10s;
  NodePods pods(set);
  pods.follow(api_);
  bind("one", "GPU-1");
  silent_ = 3;
  EXPECT_THAT(pods.hint({kGpus, 1}).take, ElementsAre("GPU-1"));
  set.patience = 1ms;
  NodePods impatient(set);
  impatient.follow(api_);
  silent_ = 3;
  EXPECT_FALSE(impatient.hint({kGpus, 1}).is_known);
}

/// Of several that may be the one it is the latest.
TEST_F(NodePodsTest, OrdersPodsAsTheyWereBoundWhateverIsWrittenLater) {
  NodePods pods(options());
  pods.follow(api_);
  bind("one", "GPU-1");
  bind("two", "GPU-2");
  ASSERT_TRUE(soon([&] {
    const int before = count("list");
    return pods.hint({kGpus, 1}).leave.contains("GPU-1") && count("list") == before;
  }));
  ASSERT_TRUE(
      api_->patch({kPods, "n", "one"}, PatchType::kMerge, {{"metadata", {{"labels", {{"a", "b"}}}}}}));
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(pods.hint({kGpus, 1}).take, ElementsAre("GPU-2"));
}

TEST_F(NodePodsTest, WritesTheTruth) {
  bind("right", "GPU-1");
  bind("wrong", "GPU-2");
  bind("silent", "");
  bind("another", "GPU-5");
  uses_ = {{"n", "right", "c", {{kGpus, {"GPU-1"}}}, {}},
           {"n", "wrong", "c", {{kGpus, {"GPU-3"}}}, {}},
           {"n", "silent", "c", {{kGpus, {"GPU-4"}}}, {}},
           {"n", "another", "c", {{kGpus, {"GPU-6"}}}, {}}};
  running_ = {{{"n", "another"}, "that of before"}};
  NodePods pods(options());
  pods.follow(api_);
  const std::set<std::string> all = {"GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", "GPU-6"};
  ASSERT_TRUE(soon([&] {
    pods.correct(all);
    return chosen("silent") == "GPU-4";
  }));
  EXPECT_EQ(chosen("right"), "GPU-1");
  EXPECT_EQ(chosen("wrong"), "GPU-3");
  EXPECT_EQ(chosen("another"), "GPU-5") << "what its forerunner has is not its own";
  EXPECT_EQ(count("patch"), 2);
  // Whoever writes it again and again does not make us do so too.
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(api_->patch({kPods, "n", "wrong"}, PatchType::kMerge,
                            {{"metadata", {{"annotations", {{"drover.dev/gpus", "GPU-2"}}}}}}));
    std::this_thread::sleep_for(50ms);
    pods.correct(all);
  }
  EXPECT_EQ(count("patch"), 5);
  EXPECT_EQ(warned_, "");
}

TEST_F(NodePodsTest, SaysWhichRightIsMissing) {
  bind("wrong", "GPU-2");
  uses_ = {{"n", "wrong", "c", {{kGpus, {"GPU-3"}}}, {}}};
  NodePods pods(options());
  pods.follow(api_);
  ASSERT_TRUE(soon([&] { return pods.hint({kGpus, 5}).leave.empty() && api_->watches() == 1; }));
  api_->fail_next({{ErrorKind::kPermissionDenied, "may not patch pods", "", ""}});
  pods.correct({"GPU-3"});
  EXPECT_THAT(warned_, ::testing::HasSubstr("pods are not told which GPUs they have"));
}

}  // namespace
}  // namespace drover::kube
