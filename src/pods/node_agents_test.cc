#include "pods/node_agents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/fake_tree.h"
#include "kube/sandboxes/service.h"
#include "pods/busy_pods.h"
#include "pods/log_copy.h"
#include "pods/pod_sandbox.h"
#include "pods/testing/pair_connection.h"

namespace drover::pods {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kUid = "11111111-2222-3333-4444-555555555555";

/// Nodes with a sandbox each. "dead" takes connections, and says nothing; "none" takes none.
class NodeAgentsTest : public ::testing::Test {
 protected:
  NodeAgentsTest() {
    kubelet_.folder(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox", kUid));
    store_ = std::make_unique<kube::SandboxStore>(kube::SandboxStore::open(kubelet_.root()).value());
    EXPECT_TRUE(store_->publish({.volume = "v", .target = box_, .uid = kUid}));
    std::ofstream(box_ + "/result") << "42";
    std::ofstream(box_ + "/stdout") << "the task's own";
    task_.file("sandbox/stdout", "said");
    EXPECT_TRUE(note_place(folder(), {"n1", kUid}));
  }
  ~NodeAgentsTest() override {
    agents_.reset();
    for (auto& thread : threads_) thread.join();
  }

  Result<std::unique_ptr<AgentConnection>> connect(const std::string& node) {
    ++connections_;
    if (node == "none") return fail(ErrorKind::kUnavailable, "No agent of ours runs there");
    auto [connection, end] = testing::PairConnection::make();
    if (node == "dead")
      silent_.push_back(std::move(end));
    else
      threads_.emplace_back([this, served = std::move(end)] { serve(served); });
    return std::move(connection);
  }
  void serve(const UniqueFd& end) {
    kube::Wire wire(end.get(), end.get());
    const auto in = [] { return std::chrono::steady_clock::now() + 10s; };
    while (true) {
      const auto request = wire.receive_request(in());
      if (!request || dies_.exchange(false) || !wire.send(kube::answer(*store_, calls_, *request), in()))
        return;
    }
  }
  NodeAgents& agents(AgentLimits limits = {}) {
    agents_ = std::make_unique<NodeAgents>([this](const auto& node, auto) { return connect(node); }, limits);
    return *agents_;
  }
  Directory folder() const { return Directory::open(task_.root()).value(); }
  std::vector<std::string> names(const SandboxReader& sandbox, const std::string& path = "") const {
    std::vector<std::string> names;
    const auto files = sandbox.browse(self_, path).value();
    for (const auto& file : files) names.push_back(file.name);
    return names;
  }

  FakeTree kubelet_, task_;
  const std::string box_ = kubelet_ / fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox/mount", kUid);
  std::unique_ptr<kube::SandboxStore> store_;
  const User self_{::geteuid(), ::getegid(), {}, "me", "/"};
  kube::IdleTimes idle_;
  const kube::PodCalls calls_{.idle = [this] { return idle_; }, .kill = {}};
  std::atomic<int> connections_ = 0;
  std::atomic<bool> dies_ = false;
  std::vector<UniqueFd> silent_;
  std::vector<std::thread> threads_;
  std::unique_ptr<NodeAgents> agents_;
};

TEST_F(NodeAgentsTest, TheSandboxIsTheNodesAndTheOutputTheCopy) {
  const auto sandbox = pod_sandbox(task_.root(), agents());
  EXPECT_THAT(names(*sandbox), ElementsAre("result", "stdout"));
  EXPECT_EQ(sandbox->file(self_, "result").value().read(0, 9).value(), "42");
  EXPECT_EQ(sandbox->file(self_, "/stdout").value().read(0, 20).value(), "said");
  EXPECT_EQ(connections_, 1) << "one for all";
  EXPECT_EQ(agents_->sizes("n1").size(), 1u);
}

TEST_F(NodeAgentsTest, WhenTheNodeHasItNoMoreTheOutputIsLeft) {
  const auto sandbox = pod_sandbox(task_.root(), agents());
  ASSERT_TRUE(kube::remove_sandbox(agents_->agent("n1"), kUid));
  EXPECT_THAT(names(*sandbox), ElementsAre("stdout"));
  EXPECT_EQ(sandbox->file(self_, "result").error().kind, ErrorKind::kNotFound);
}

TEST_F(NodeAgentsTest, AConnectionThatBrokeIsMadeAnew) {
  const auto sandbox = pod_sandbox(task_.root(), agents());
  EXPECT_TRUE(sandbox->file(self_, "result"));
  dies_ = true;
  EXPECT_TRUE(sandbox->file(self_, "result"));
  EXPECT_EQ(connections_, 2);
}

TEST_F(NodeAgentsTest, ANodeThatDoesNotAnswerIsLeftAloneForAWhile) {
  ASSERT_TRUE(note_place(folder(), {"dead", kUid}));
  const auto sandbox = pod_sandbox(task_.root(), agents({.answer = 100ms, .idle = 30s, .spared = 10min}));
  for (int i = 0; i < 3; ++i) {
    const auto files = sandbox->browse(self_, "");
    ASSERT_FALSE(files);
    EXPECT_EQ(files.error().kind, ErrorKind::kUnavailable);
    EXPECT_THAT(files.error().message, HasSubstr("Node 'dead' does not show its sandboxes"));
  }
  EXPECT_EQ(connections_, 1);
  EXPECT_EQ(sandbox->file(self_, "stdout").value().read(0, 20).value(), "said");
  EXPECT_TRUE(kube::sandbox_sizes(agents_->agent("n1"))) << "others are asked";
  EXPECT_FALSE(kube::sandbox_sizes(agents_->agent("none")));
  EXPECT_TRUE(agents_->sizes("none").empty());
}

TEST_F(NodeAgentsTest, WhoDoesNotGetHisTurnIsToldSo) {
  agents({.answer = 300ms, .idle = 30s, .spared = 0ms});
  std::thread first([&] { EXPECT_FALSE(kube::sandbox_sizes(agents_->agent("dead"))); });
  while (connections_ == 0) std::this_thread::yield();
  EXPECT_FALSE(kube::sandbox_sizes(agents_->agent("dead")));
  first.join();
}

TEST_F(NodeAgentsTest, WhatNobodyUsesIsEnded) {
  agents({.answer = 10s, .idle = 20ms, .spared = 10s});
  EXPECT_TRUE(kube::sandbox_sizes(agents_->agent("n1")));
  threads_.front().join();  // it has read the end
  threads_.clear();
  EXPECT_TRUE(kube::sandbox_sizes(agents_->agent("n1")));
  EXPECT_EQ(connections_, 2);
}

TEST_F(NodeAgentsTest, PlacesAreThoseOfAllAttempts) {
  const SandboxPlace first{"n1", kUid}, second{"n2", kUid};
  EXPECT_TRUE(note_place(folder(), first)) << "again";
  EXPECT_THAT(places_of(folder()), ElementsAre(first));
  EXPECT_TRUE(note_place(folder(), second));
  EXPECT_THAT(places_of(folder()), ElementsAre(first, second));
  task_.file("places", "n1 ../../etc\nn2");
  EXPECT_TRUE(places_of(folder()).empty());
}

TEST_F(NodeAgentsTest, OnlyWhoIsKnownToDoNothingIsIdle) {
  const std::string other = "22222222-2222-3333-4444-555555555555";
  std::vector<std::string> told;
  BusyPods pods(agents({.answer = 100ms, .idle = 30s, .spared = 10min}),
                [&](const auto& sentence) { told.push_back(sentence); });
  const std::map<std::string, std::vector<SandboxPlace>> tasks{
      {"known", {{"dead", kUid}, {"n1", kUid}}}, {"unknown", {{"n1", other}}}, {"nowhere", {}}};
  idle_ = {{kUid, 1h}};
  EXPECT_THAT(pods.find(tasks), ElementsAre("known", "nowhere", "unknown"))
      << "it is asked for the first time";
  EXPECT_THAT(pods.find(tasks), ElementsAre("nowhere", "unknown"));
  idle_ = {{kUid, 0ms}};
  EXPECT_THAT(pods.find(tasks), ElementsAre("known", "nowhere", "unknown"));
  EXPECT_THAT(told, ::testing::IsEmpty());
  EXPECT_THAT(pods.find({{"lost", {{"dead", kUid}}}}), ElementsAre("lost"));
  EXPECT_THAT(pods.find({{"lost", {{"dead", kUid}}}}), ElementsAre("lost"));
  EXPECT_THAT(told, ElementsAre(HasSubstr("Whether GPUs do nothing on node 'dead' is not known")));
}

}  // namespace
}  // namespace drover::pods
