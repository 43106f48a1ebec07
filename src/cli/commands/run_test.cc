// 'drover run': what reaches the daemon, what comes back, and how it exits.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/testing/cli_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::run_words;
using RunTest = testing::CliTest;

TEST_F(RunTest, RunStreamsBothOutputsAndExitsAsTheTask) {
  auto ending = end_next_task(42, control::TaskState::kFailed, "exited with status 42", [this] {
    server_.append("task-1", "stdout", std::string("out\0\xff\n", 6));
    server_.append("task-1", "stderr", "err\n");
  });
  const auto ran = ask({"run", "--", "anything"});
  ending.join();
  EXPECT_EQ(ran.status, 42);
  EXPECT_EQ(ran.out, std::string("out\0\xff\n", 6));
  EXPECT_EQ(ran.err, "err\n");
}

TEST_F(RunTest, RunHandsOnWhatWasAsked) {
  ::setenv("DROVER_TEST_VALUE", "from here", 1);
  const auto ran = ask({"run",
                        "--detach",
                        "--json",
                        "--gpus",
                        "2",
                        "--cpus",
                        "1.5",
                        "--mem",
                        "2G",
                        "--image",
                        "oci:layout:v1",
                        "--env",
                        "A=b=c",
                        "-e",
                        "DROVER_TEST_VALUE",
                        "-e",
                        "DROVER_TEST_UNSET",
                        "--label",
                        "k=v",
                        "--name",
                        "n",
                        "--timeout",
                        "1h",
                        "--grace",
                        "3s",
                        "--workdir",
                        "/w",
                        "--read-only",
                        "--",
                        "[a,b]",
                        "",
                        "--gpus",
                        "--"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto task = json::parse(ran.out).at("task");
  EXPECT_EQ(task.at("command"), json({"[a,b]", "", "--gpus", "--"}));
  EXPECT_EQ(task.at("gpus"), 2);
  EXPECT_EQ(task.at("cpus"), 1.5);
  EXPECT_EQ(task.at("memory"), 2ULL << 30);
  EXPECT_EQ(task.at("image"), "oci:" + std::filesystem::current_path().string() + "/layout:v1");
  EXPECT_EQ(task.at("env"), json({{"A", "b=c"}, {"DROVER_TEST_VALUE", "from here"}}));
  EXPECT_EQ(task.at("labels"), json({{"k", "v"}}));
  EXPECT_EQ(task.at("timeout_ms"), 3'600'000);
  EXPECT_EQ(task.at("grace_ms"), 3000);
  EXPECT_EQ(task.at("working_directory"), "/w");
  EXPECT_EQ(task.at("read_only"), true);
}

TEST_F(RunTest, RunSaysWhyItWaits) {
  server_.on_strand([this] { server_.daemon().start_state = control::TaskState::kQueued; });
  auto ending = end_next_task(0, control::TaskState::kFinished, "",
                              [this] { wait_for([this] { return server_.daemon().explained > 0; }); });
  const auto ran = ask({"run", "--gpus", "2", "--", "anything"});
  ending.join();
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err,
            "drover: waiting: 2 GPUs are wanted, 0 of 2 are free\ndrover: what helps: ask for 1 GPU\n");
}

TEST_F(RunTest, RunThatCouldNotBeStartedIs125WithTheReason) {
  auto ending = std::thread([this] {
    wait_for(
        [&] { return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).records().empty(); }); });
    server_.on_strand([this] { server_.daemon().fail_to_start("task-1", "There is no image 'x'"); });
  });
  const auto ran = ask({"run", "--image", "x"});
  ending.join();
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.err, "drover: the task failed: There is no image 'x'\n");
}

TEST_F(RunTest, RunGoesOnAfterTheDaemonWasRestarted) {
  auto ending = end_next_task(0, control::TaskState::kFinished, "", [this] {
    server_.append("task-1", "stdout", "before\n");
    std::this_thread::sleep_for(std::chrono::seconds(1));
    server_.stop();
    server_.append("task-1", "stdout", "meanwhile\n");
    std::this_thread::sleep_for(std::chrono::seconds(1));
    server_.start();
    server_.append("task-1", "stdout", "after\n");
  });
  const auto ran = ask({"run", "--", "anything"});
  ending.join();
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "before\nmeanwhile\nafter\n");
  EXPECT_THAT(ran.err, HasSubstr("the daemon does not answer; the task goes on"));
}

/// As a process does that takes them from a descriptor.
bool blocks_interrupts(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid)).value_or("");
  const auto at = status.find("SigBlk:\t");
  return at != std::string::npos &&
         (std::stoull(status.substr(at + 8), nullptr, 16) >> (SIGINT - 1) & 1U) != 0;
}

TEST_F(RunTest, OneInterruptAsksAndTheSecondKills) {
  server_.on_strand([this] { server_.daemon().stop_ends = false; });
  const auto socket = server_.socket();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    ::_exit(run_words({"--socket", socket, "run", "--", "anything"}));
  }
  const auto stops = [&] { return server_.on_strand([&] { return server_.daemon().stops; }); };
  wait_for(
      [&] { return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).records().empty(); }); });
  wait_for([&] { return blocks_interrupts(child); });
  ::kill(child, SIGINT);
  wait_for([&] { return stops().size() == 1; });
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 137);
  EXPECT_THAT(stops(), ::testing::ElementsAre(std::pair<std::string, bool>("task-1", false),
                                              std::pair<std::string, bool>("task-1", true)));
}

TEST_F(RunTest, AGangIsFollowedAsOne) {
  std::thread ending([this] {
    wait_for([&] {
      return server_.on_strand([&] { return server_.daemon().tasks(kRoot).records().size() == 3; });
    });
    for (const auto* id : {"task-1", "task-2", "task-3"})
      server_.append(id, "stdout", "from " + std::string(id));
    server_.append("task-2", "stderr", "oh\n");
    server_.on_strand([this] {
      auto& daemon = server_.daemon();
      // The second failed by itself, and the others because of it: whose end was told first does not matter.
      daemon.drag("task-1", "rank 1 exited with status 7");
      daemon.end("task-1", 143, control::TaskState::kFailed, "rank 1 exited with status 7");
      daemon.end("task-2", 7, control::TaskState::kFailed, "exited with status 7");
      daemon.end("task-3", 0, control::TaskState::kFinished);
    });
  });
  const auto ran = ask({"run", "--gang", "3", "--", "anything"});
  ending.join();
  EXPECT_EQ(ran.status, 7);
  for (const auto* line : {"[0] from task-1\n", "[1] from task-2\n", "[2] from task-3\n"})
    EXPECT_THAT(ran.out, HasSubstr(line));
  EXPECT_THAT(ran.err, HasSubstr("[1] oh\n"));
  EXPECT_THAT(ran.err, HasSubstr("drover: rank 1 failed: exited with status 7\n"));
}

TEST_F(RunTest, ADetachedGangPrintsItsIdsByRank) {
  EXPECT_EQ(ask({"run", "--gang", "2", "--detach", "--", "anything"}).out, "task-1\ntask-2\n");
  const auto all = json::parse(ask({"run", "--gang", "2", "--detach", "--json", "--", "anything"}).out);
  EXPECT_EQ(all.at("gang"), "gang");
  EXPECT_EQ(all.at("tasks").size(), 2u);
  EXPECT_THAT(ask({"ps"}).out, HasSubstr("anything[1]"));
}

TEST_F(RunTest, RefusalsOfTheDaemonNameTheFlag) {
  const auto one = ask({"run", "--gpus", "1", "--interconnect", "nvlink", "--", "x"});
  EXPECT_EQ(one.status, 64);
  EXPECT_THAT(one.err, HasSubstr("drover: --interconnect: "));
  const auto two = ask({"plan", "--gpus", "-0", "--gpu-share", "7", "--nic", "require"});
  EXPECT_EQ(two.status, 64);
  EXPECT_THAT(two.err, HasSubstr("\n  --gpu-share: "));
  EXPECT_THAT(two.err, HasSubstr("\n  --nic: "));
}

}  // namespace
}  // namespace drover::cli
