#include "pods/pod_containerizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "base/eventually.h"
#include "pods/log_copy.h"
#include "pods/pod_sandbox.h"
#include "pods/testing/pair_connection.h"
#include "pods/testing/pod_life.h"

namespace drover::pods {
namespace {

using namespace std::chrono_literals;
using container::Found;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kPod = "drover-ann/t-0";

using PodContainerizerTest = testing::PodLife;

/// Of nodes that do as they are asked. The first connection fails.
class ObedientAgents {
 public:
  NodeAgents& agents() { return agents_; }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  Result<std::unique_ptr<AgentConnection>> connect(const std::string& node) {
    if (!std::exchange(failed_, true)) return fail(ErrorKind::kUnavailable, "no agent");
    auto [connection, end] = testing::PairConnection::make();
    threads_.emplace_back([this, node, served = std::move(end)] {
      kube::Wire wire(served.get(), served.get());
      const auto in = [] { return std::chrono::steady_clock::now() + 20s; };
      while (const auto request = wire.receive_request(in())) {
        const std::lock_guard lock(mutex_);
        asked_.push_back(fmt::format("{}: {} {}", node, request->method, request->target));
        if (!wire.send(kube::WireAnswer{}, in())) return;
      }
    });
    return std::move(connection);
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
  bool failed_ = false;
  std::vector<std::jthread> threads_;
  NodeAgents agents_{[this](const auto& node, auto) { return connect(node); },
                     {.answer = 20s, .idle = 30s, .spared = 0ms}};
};

TEST_F(PodContainerizerTest, SandboxesOfNodesAreFoundAgainAndGoWithTheTask) {
  std::vector<std::string> asked, uids;
  NodeAgents agents([&](const auto& node, auto) -> Result<std::unique_ptr<AgentConnection>> {
    asked.push_back(node);
    return fail(ErrorKind::kUnavailable, "no agent");
  });
  agents_ = &agents;
  begin();
  for (int attempt = 0; attempt < 2; ++attempt) {
    ASSERT_TRUE(pods_->launch(launch_of(attempt)));
    uids.push_back(kube::text_at(*pod(attempt), "/metadata/uid"));
    bind(attempt);
    run(attempt);
    end(0, attempt);
    EXPECT_THAT(told_.lines(3 * (attempt + 1)), Contains("ended t 0"));
  }
  const auto places = places_of(Directory::open(folder_.root() + "/tasks/t").value());
  EXPECT_THAT(places, ElementsAre(SandboxPlace{"n1", uids[0]}, SandboxPlace{"n1", uids[1]}));
  EXPECT_EQ(pods_->files("t")->file({}, "result").error().kind, ErrorKind::kUnavailable);
  EXPECT_THAT(asked, ElementsAre("n1"));
  ASSERT_TRUE(pods_->forget("t")) << "whatever nodes say";
  EXPECT_TRUE(eventually([&] { return pods_->known().empty(); }));
  pods_.reset();
}

TEST_F(PodContainerizerTest, TellsOfALifeInOrderAndKeepsThePodUntilItsEndIsRecorded) {
  node_logs("2026-11-27T14:00:00.5Z hello\n2026-11-27T14:00:01.25Z $HOME\n");
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  EXPECT_THAT(told_.lines(2), ElementsAre("placed t 0 n1 GPU-1,GPU-3", "started t"));
  end(3);
  EXPECT_THAT(told_.lines(3), Contains("ended t 3"));
  EXPECT_EQ(output(), "hello\n$HOME\n");
  ASSERT_TRUE(pod());
  ASSERT_TRUE(pods_->clean("t"));
  EXPECT_FALSE(pod());
  EXPECT_EQ(output(), "hello\n$HOME\n");
  ASSERT_TRUE(pods_->forget("t"));
  EXPECT_TRUE(eventually([&] { return pods_->known().empty(); }));
}

TEST_F(PodContainerizerTest, WhatAPodCannotBeIsRefusedAtOnceAndWhole) {
  auto launch = launch_of();
  launch.task.image.reset();
  launch.task.privileged = true;
  const auto refused = pods_->launch(launch);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("needs an image"));
  EXPECT_THAT(refused.error().message, HasSubstr("privileged"));
  EXPECT_THAT(pods_->known(), IsEmpty());
}

TEST_F(PodContainerizerTest, MakesThePodWhenTheServerIsThereAgain) {
  api_.fail_next(
      {{ErrorKind::kUnavailable, "no answer", "", ""}, {ErrorKind::kTimeout, "no answer", "", ""}});
  ASSERT_TRUE(pods_->launch(launch_of()));
  EXPECT_TRUE(eventually([&] { return pod().has_value(); }));
  EXPECT_THAT(told_.lines(1), Contains("waits t: no answer"));
}

TEST_F(PodContainerizerTest, WhatTheServerRefusesHasFailed) {
  api_.fail_next({{ErrorKind::kPermissionDenied, "namespaces are forbidden, which is no matter", "", ""},
                  {ErrorKind::kPermissionDenied, "pods are forbidden", "", ""}});
  ASSERT_TRUE(pods_->launch(launch_of()));
  EXPECT_THAT(told_.lines(1), ElementsAre("failed t 0: pods are forbidden"));
}

TEST_F(PodContainerizerTest, MakesTheObjectThatStandsForAPriority) {
  auto launch = launch_of();
  launch.task.priority = -7;
  ASSERT_TRUE(pods_->launch(launch));
  const auto made = api_.get({{"scheduling.k8s.io", "v1", "priorityclasses"}, "", "drover-minus-7"});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("value"), -7);
  EXPECT_EQ(pod()->at("spec").at("priorityClassName"), "drover-minus-7");
}

TEST_F(PodContainerizerTest, TheFirstOfAGangIsFoundByANameInEachAttempt) {
  auto launch = launch_of();
  launch.task.gang = workload::GangMembership{"g", 0, 2, workload::Arrangement::kPack};
  launch.gang = container::GangPlace{"g", 0, {"here", "here"}, "127.0.0.1", 0};
  ASSERT_TRUE(pods_->launch(launch));
  const kube::ObjectPath service = {{"", "v1", "services"}, "drover-ann", "drover-g"};
  EXPECT_EQ(api_.get(service)->at("spec").at("selector").at("drover.dev/attempt"), "0");
  const auto environment = pod()->at("spec").at("containers")[0].at("env");
  EXPECT_THAT(environment, Contains(json{{"name", "MASTER_ADDR"}, {"value", "drover-g.drover-ann.svc"}}));
  EXPECT_THAT(environment, Contains(json{{"name", "DROVER_GANG_HOSTS"}, {"value", "g-0-0,g-1-0"}}));
  ASSERT_TRUE(pods_->clean("t"));
  launch.attempt = 1;
  ASSERT_TRUE(pods_->launch(launch));
  EXPECT_EQ(api_.get(service)->at("spec").at("selector").at("drover.dev/attempt"), "1");
}

TEST_F(PodContainerizerTest, WhoHasNoGpusSeesNoneWhateverItsImageAndItsUserSay) {
  auto launch = launch_of();
  launch.task.environment.edit()["NVIDIA_VISIBLE_DEVICES"] = "all";
  ASSERT_TRUE(pods_->launch(launch));
  const auto named = [](const json& pod) {
    std::string value = "unset";
    for (const auto& variable : pod.at("spec").at("containers")[0].at("env"))
      if (variable.at("name") == "NVIDIA_VISIBLE_DEVICES") value = variable.at("value");
    return value;
  };
  EXPECT_EQ(named(*pod()), "unset") << "its node's agent says it";
  ASSERT_TRUE(pods_->clean("t"));
  launch.task.resources.gpus.clear();
  ASSERT_TRUE(pods_->launch(launch));
  EXPECT_EQ(named(*pod()), "void");
}

TEST_F(PodContainerizerTest, SaysWhyItWaits) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  set_status({{"conditions", json::array({{{"type", "PodScheduled"},
                                           {"status", "False"},
                                           {"message", "0/2 nodes are available"}}})}});
  EXPECT_THAT(told_.lines(1), ElementsAre("waits t: 0/2 nodes are available"));
}

TEST_F(PodContainerizerTest, OneThatIsStoppedBeforeItHasAPlaceNeverRan) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  ASSERT_TRUE(pods_->stop("t", false));
  EXPECT_THAT(told_.lines(1), ElementsAre("failed t 0: It was stopped before it was started"));
  EXPECT_FALSE(pod());
}

TEST_F(PodContainerizerTest, OneThatIsStoppedGetsItsTimeAndIsTheBeginningOfNothing) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  (void)told_.lines(2);
  ASSERT_TRUE(pods_->stop("t", false));
  EXPECT_TRUE(pod()->at("metadata").contains("deletionTimestamp"));
  for (const auto& request : api_.requests())
    if (request.verb == "delete")
      EXPECT_FALSE(json::parse(request.body).contains("gracePeriodSeconds")) << "it is what the pod says";
  end(143);
  EXPECT_THAT(told_.lines(3), Contains("ended t 143 stopped"));
}

TEST_F(PodContainerizerTest, WhoseTimeWasMadeShorterIsEndedByItsNodeAlsoAfterARestart) {
  ObedientAgents nodes;
  agents_ = &nodes.agents();
  begin();
  auto launch = launch_of();
  launch.task.grace = 1h;
  ASSERT_TRUE(pods_->launch(launch));
  bind();
  run();
  (void)told_.lines(2);
  const auto kill = fmt::format("n1: DELETE /pods/{}", kube::text_at(*pod(), "/metadata/uid"));
  ASSERT_TRUE(pods_->stop("t", false));
  std::this_thread::sleep_for(200ms);
  EXPECT_THAT(nodes.asked(), IsEmpty()) << "it has an hour";
  ASSERT_TRUE(pods_->stop("t", true));
  EXPECT_TRUE(eventually([&] { return nodes.asked().size() >= 2; })) << "until it is over";
  EXPECT_THAT(nodes.asked(), Each(kill));
  pods_.reset();
  const auto before = nodes.asked().size();
  begin();
  EXPECT_EQ(pods_->recover("t", 0).value(), Found::kAlive);
  EXPECT_TRUE(eventually([&] { return nodes.asked().size() > before; }));
  EXPECT_THAT(nodes.asked(), Each(kill));
  end(137);
  const auto lines = told_.lines(6);
  EXPECT_THAT(lines, Contains(HasSubstr("ended t 137 stopped")));
  EXPECT_THAT(lines, Contains(HasSubstr("A task on node 'n1' gets more time to end than it has: ")));
  pods_.reset();
}

TEST_F(PodContainerizerTest, WhoDeletesThePodIsNamedWhenTheTaskFailsByIt) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  (void)told_.lines(2);
  ASSERT_TRUE(api_.remove(path()));
  end(137);
  EXPECT_THAT(told_.lines(3), Contains(HasSubstr("somebody had deleted its pod")));
}

TEST_F(PodContainerizerTest, OneThatMakesRoomSaysSoBeforeItEnds) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  (void)told_.lines(2);
  set_status({{"conditions", json::array({{{"type", "DisruptionTarget"},
                                           {"status", "True"},
                                           {"reason", "PreemptionByScheduler"},
                                           {"message", "for 'urgent'"}}})}});
  ASSERT_TRUE(api_.remove(path()));
  end(143);
  EXPECT_THAT(told_.lines(4), ElementsAre(HasSubstr("placed"), "started t", "evicted t 0: for 'urgent'",
                                          "ended t 143 stopped"));
  ASSERT_TRUE(pods_->clean("t"));
  ASSERT_TRUE(pods_->launch(launch_of(1)));
  EXPECT_FALSE(pod(0));
  EXPECT_TRUE(pod(1));
}

TEST_F(PodContainerizerTest, OneThatMakesRoomSaysForWhomInTheWordsOfOneMachine) {
  const std::pair<kube::scheduler::Preemption, std::string> cases[] = {
      {{false, "winner-3"}, "evicted t 0: preempted by work of higher priority, for 'winner'"},
      {{false, "winner-2"}, "evicted t 1: preempted by work of higher priority, for 'winner-2'"},
      {{true, ""}, "evicted t 2: preempted: a queue takes back what it had lent"}};
  auto winner = launch_of(3);
  winner.task.id = "winner";
  ASSERT_TRUE(pods_->launch(winner));
  int attempt = 0;
  std::size_t lines = 0;
  for (const auto& [told, words] : cases) {
    ASSERT_TRUE(pods_->launch(launch_of(attempt)));
    bind(attempt);
    run(attempt);
    (void)told_.lines(lines += 2);
    set_status({{"conditions", json::array({{{"type", "DisruptionTarget"},
                                             {"status", "True"},
                                             {"reason", "PreemptionByScheduler"},
                                             {"message", to_string(told)}}})}},
               attempt);
    ASSERT_TRUE(api_.remove(path(attempt)));
    end(143, attempt);
    EXPECT_THAT(told_.lines(lines += 2), Contains(words));
    ASSERT_TRUE(pods_->clean("t"));
    ++attempt;
  }
}

TEST_F(PodContainerizerTest, OneThatItsNodeRefusesIsMadeAnewUnderTheSameName) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  (void)told_.lines(1);
  set_status({{"phase", "Failed"}, {"reason", "UnexpectedAdmissionError"}});
  EXPECT_THAT(told_.lines(2), Contains("put back t 0: UnexpectedAdmissionError"));
  const auto first = pod()->at("metadata").at("uid");
  ASSERT_TRUE(pods_->launch(launch_of()));
  EXPECT_NE(pod()->at("metadata").at("uid"), first);
  bind();
  run();
  EXPECT_THAT(told_.lines(4), Contains("started t"));
}

TEST_F(PodContainerizerTest, OneThatIsTakenAwayByForceIsLost) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  (void)told_.lines(2);
  ASSERT_TRUE(api_.remove(path()));
  ASSERT_TRUE(api_.patch(path(), kube::PatchType::kMerge, {{"metadata", {{"finalizers", nullptr}}}}));
  EXPECT_THAT(told_.lines(3), Contains("ended t lost: its pod is gone: nobody can say how it ended"));
}

TEST_F(PodContainerizerTest, FindsItAgainInAnotherLife) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  (void)told_.lines(2);
  pods_.reset();
  end(0);
  begin();
  EXPECT_THAT(pods_->known(), ElementsAre("t"));
  EXPECT_TRUE(pods_->examine("t")->alive);
  EXPECT_EQ(pods_->recover("t", 0).value(), Found::kEnded);
  EXPECT_THAT(told_.lines(5),
              ElementsAre(HasSubstr("placed"), "started t", HasSubstr("placed"), "started t", "ended t 0"));
  EXPECT_EQ(pods_->recover("t", 1).value(), Found::kNever) << "of which there is no pod";
  EXPECT_TRUE(eventually([&] { return !pod(); })) << "the attempt before lets go";
}

TEST_F(PodContainerizerTest, APodThatWasMadeByALifeBeforeIsTakenOver) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  pods_.reset();
  begin();
  ASSERT_TRUE(pods_->launch(launch_of()));
  run();
  EXPECT_TRUE(eventually([&] { return std::ranges::count(told_.lines(1), "started t") == 1; }));
}

TEST_F(PodContainerizerTest, WhatComesTooLateIsLetGo) {
  ASSERT_TRUE(pods_->clean("t"));
  const auto launch = launch_of();
  ASSERT_TRUE(api_.create({kube::kPods, "drover-ann"}, *write_pod({launch.task, 0, {}}, {.journal = "j"})));
  EXPECT_TRUE(eventually([&] { return !pod(); }));
}

TEST_F(PodContainerizerTest, PodsOfOtherJournalsAreNotItsOwn) {
  const auto launch = launch_of();
  ASSERT_TRUE(
      api_.create({kube::kPods, "drover-ann"}, *write_pod({launch.task, 0, {}}, {.journal = "other"})));
  EXPECT_THAT(pods_->known(), IsEmpty());
  ASSERT_TRUE(pods_->launch(launch));
  EXPECT_THAT(told_.lines(1), ElementsAre(HasSubstr("failed t 0: ")));
  EXPECT_TRUE(pod());
}

TEST_F(PodContainerizerTest, TheCopyOfTheOutputGoesOnWhereItWas) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  node_logs("2026-11-27T14:00:00.5Z one\n");
  run();
  ASSERT_TRUE(eventually([&] { return output() == "one\n"; }));
  node_logs("2026-11-27T14:00:00.5Z one\n2026-11-27T14:00:00.51Z two\n2026-11-27T14:00:02Z three");
  end(0);
  EXPECT_THAT(told_.lines(3), Contains("ended t 0"));
  EXPECT_EQ(output(), "one\ntwo\nthree");
}

TEST_F(PodContainerizerTest, WhatANodeSaysInsteadOfTheOutputIsNotTheOutput) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  node_logs("2026-11-27T14:00:00Z one\nfailed to read \"0.log\"");
  run();
  ASSERT_TRUE(eventually([&] { return output() == "one\n"; }));
  node_logs("unable to retrieve\n2026-11-27T14:00:01Z two\n" + std::string(1000, 'x'));
  end(0);
  EXPECT_THAT(told_.lines(4),
              AllOf(Contains("ended t 0"), Contains(HasSubstr("instead of the output: unable to retrieve"))));
  EXPECT_EQ(output(), "one\ntwo\n");
}

TEST_F(PodContainerizerTest, AnotherAttemptMayRunWhereTheClockIsBehind) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  node_logs("2026-11-27T14:00:05Z one\n");
  run();
  end(1);
  ASSERT_THAT(told_.lines(3), Contains("ended t 1"));
  ASSERT_TRUE(pods_->clean("t"));
  ASSERT_TRUE(pods_->launch(launch_of(1)));
  bind(1);
  node_logs("2026-11-27T14:00:01Z two\n", 1);
  run(1);
  end(0, 1);
  ASSERT_THAT(told_.lines(6), Contains("ended t 0"));
  EXPECT_EQ(output(), "one\ntwo\n");
}

TEST_F(PodContainerizerTest, LinesThatAreNotWholeComeAgainAndLongOnesComePieceByPiece) {
  const std::string longest(100'000, 'x');
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  node_logs("2026-11-27T14:00:00Z one\n2026-11-27T14:00:01Z be");
  run();
  ASSERT_TRUE(eventually([&] { return output().starts_with("one\n"); }));
  // What is written at the end of a piece without a line's end is taken for whole when the server ends it.
  node_logs("2026-11-27T14:00:00Z one\n2026-11-27T14:00:02Z " + longest + "\n2026-11-27T14:00:03Z \n");
  end(0);
  ASSERT_THAT(told_.lines(3), Contains("ended t 0"));
  EXPECT_EQ(output(), "one\nbe" + longest + "\n\n");
}

TEST_F(PodContainerizerTest, WhatWasToldLateChangesNothing) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  bind();
  run();
  (void)told_.lines(2);
  api_.end_watches();
  ASSERT_TRUE(pods_->stop("t", false));
  end(143);
  EXPECT_THAT(told_.lines(3), Contains("ended t 143 stopped"));
}

TEST_F(PodContainerizerTest, ALogHasWhatATerminalHasShownAndItsLineEndsAreATerminals) {
  node_logs("2026-11-27T14:00:00Z one\n2026-11-27T14:00:01Z two\n");
  const auto append = [&](std::uint64_t known) {
    const FakeTree folder;
    const auto parent = Directory::create(folder.root()).value();
    EXPECT_TRUE(parent.make_subdirectory(kSandboxFolder, 0755));
    const auto output = open_output(parent).value();
    EXPECT_TRUE(append_terminal_log(api_, {kube::kPods, "drover-ann", "t-0"}, output.get(), known, {}));
    return read_file(folder.root() + "/sandbox/stdout").value();
  };
  EXPECT_EQ(append(0), "one\r\ntwo\r\n");
  EXPECT_EQ(append(5), "two\r\n");
  EXPECT_EQ(append(7), "o\r\n");
  EXPECT_EQ(append(1000), "");
}

TEST(OrderedTime, IsOrderedAsTimeIs) {
  EXPECT_LT(ordered_time("2026-11-27T14:00:00Z"), ordered_time("2026-11-27T14:00:00.5Z"));
  EXPECT_LT(ordered_time("2026-11-27T14:00:00.5Z"), ordered_time("2026-11-27T14:00:00.51Z"));
  EXPECT_LT(ordered_time("2026-11-27T14:00:00.59Z"), ordered_time("2026-11-27T14:00:00.6Z"));
  for (const auto* text : {"", "hello", "2026-11-27", "2026-11-27T14:00:00.5+01:00"})
    EXPECT_EQ(ordered_time(text), "") << text;
}

}  // namespace
}  // namespace drover::pods
