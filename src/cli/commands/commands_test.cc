// What the commands besides 'run' show and do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/testing/cli_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using CommandsTest = testing::CliTest;

TEST_F(CommandsTest, PlansWithoutDoing) {
  engine::PlanView plan;
  plan.starts_now = true;
  plan.members = {{"here", {{"GPU-0", 500, 1ULL << 30}, {"GPU-1", 500, 1ULL << 30}}, {0, 1, 2}, {"eth0"}}};
  plan.wanted = {{.milli_cpus = 32'000, .memory_bytes = 125ULL << 30}};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto starts = ask({"plan", "--gpus", "2", "--gpu-share", "0.5"});
  EXPECT_EQ(starts.status, 0);
  EXPECT_THAT(starts.out, HasSubstr("simulated GPUs (profile fake)\nIt would start now\n"));
  EXPECT_THAT(starts.out, HasSubstr("  on here, GPU 0.5 of 0,1: 2 x Tesla K40m, joined by NV2, "
                                    "CPU 0-2, network card eth0\n  with 32 CPUs, 125 GiB\n"));
  plan = {};
  plan.place = 3;
  plan.reasons = {"0 of 2 GPUs are free"};
  plan.remedies = {{.text = "wait for 2 GPUs"}};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto waits = ask({"plan", "--gpus", "2"});
  EXPECT_EQ(waits.status, 1);
  EXPECT_EQ(waits.out,
            "It would wait, at place 3 of the queue\n  0 of 2 GPUs are free\n  what helps: wait for 2 "
            "GPUs\n");
  plan.victims = 2;
  plan.victim_ids = {"task-9"};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto preempts = ask({"plan", "--gpus", "2"});
  EXPECT_EQ(preempts.status, 1);
  EXPECT_THAT(preempts.out, HasSubstr("2 tasks have been ended to make room"));
  EXPECT_THAT(preempts.out, HasSubstr("would end: task-9"));
  EXPECT_EQ(json::parse(ask({"plan", "--gpus", "2", "--json"}).out).at("place"), 3);
  EXPECT_TRUE(server_.on_strand([this] { return server_.daemon().tasks(kRoot).records().empty(); }));
}

TEST_F(CommandsTest, QueuesAreSetListedAndRemoved) {
  ASSERT_EQ(ask({"queue", "set", "research/vision", "--gpus-guarantee", "4", "--gpus-limit", "8",
                 "--mem-limit", "64GiB", "--users", "ann,bob"})
                .status,
            0);
  ASSERT_EQ(ask({"queue", "set", "research/vision", "--weight", "3", "--mem-limit", "none"}).status, 0);
  const auto listing = ask({"queue"}).out;
  EXPECT_THAT(listing,
              HasSubstr("research/vision  1.5 GPUs, 2 CPUs, 3 GiB  4 GPUs     8 GPUs       3  ann,bob"));
  EXPECT_THAT(listing, ::testing::ContainsRegex("4 +research/vision +task-7 .gang of 2.  alice"));
  EXPECT_THAT(listing, HasSubstr("0 of 2 GPUs are free"));
  EXPECT_EQ(json::parse(ask({"queue", "--json"}).out).at("queues").size(), 1u);
  const auto told = ask({"queue", "set", "research/vision", "--users", "all"});
  EXPECT_EQ(told.out, "research/vision: guarantee 4 GPUs, limit 8 GPUs, weight 3, users all\n");
  EXPECT_THAT(told.err, HasSubstr("The guarantee of 'research/vision' cannot be kept: 4 GPUs of it"));
  EXPECT_THAT(ask({"queue"}).out, HasSubstr("3  all"));
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--gpus-limit", "many"},
                                                        {"--gpus-limit", "-1"},
                                                        {"--gpus-limit", "nan"},
                                                        {"--weight", "0"},
                                                        {"--mem-guarantee", "lots"}}) {
    const auto refused = ask({"queue", "set", "research/vision", flag, value});
    EXPECT_EQ(refused.status, 64) << flag;
    EXPECT_THAT(refused.err, HasSubstr(flag + ": "));
  }
  EXPECT_EQ(ask({"queue", "remove", "research/vision"}).out, "research/vision: removed\n");
  EXPECT_EQ(ask({"queue", "remove", "research/vision"}).status, 66);
}

TEST_F(CommandsTest, QuotasAreSetListedAndRemoved) {
  ASSERT_EQ(ask({"quota", "set", "user:ann", "--gpus", "2", "--cpus", "8", "--max-priority", "10"}).status,
            0);
  const auto told = ask({"quota", "set", "user:ann", "--cpus", "none"});
  EXPECT_EQ(told.out, "user:ann: limit 2 GPUs, highest priority 10\n");
  EXPECT_THAT(told.err, HasSubstr("There is no user 'ann' on this machine yet"));
  EXPECT_THAT(ask({"quota"}).out, HasSubstr("user:ann  0.5 GPUs  2 GPUs                10"));
  EXPECT_EQ(json::parse(ask({"quota", "--json"}).out).at("quotas").size(), 1u);
  EXPECT_EQ(ask({"quota", "set", "ann", "--gpus", "2"}).status, 64);
  EXPECT_THAT(ask({"quota", "set", "user:ann", "--max-priority", "5000"}).err, HasSubstr("--max-priority: "));
  EXPECT_EQ(ask({"quota", "remove", "user:ann"}).out, "user:ann: removed\n");
  EXPECT_EQ(ask({"quota", "remove", "user:ann"}).status, 66);
}

TEST_F(CommandsTest, EveryHolderOfASharedGpuIsListedAsNotEnforced) {
  server_.on_strand([this] {
    server_.daemon().holders_ =
        std::make_shared<std::vector<engine::Views::Holder>>(std::vector<engine::Views::Holder>{
            {"GPU-0", "task-1", "ann", 500, 0, "counted"}, {"GPU-0", "", "bob", 250, 0, "counted"}});
  });
  EXPECT_THAT(ask({"gpus"}).out, HasSubstr("  ann task-1 0.5, bob 0.25 (counted, not enforced)  GPU-0"));
}

TEST_F(CommandsTest, ListsTasks) {
  const auto id = submit();
  const auto running = ask({"ps"});
  EXPECT_THAT(running.out, HasSubstr("GPUS (simulated)"));
  EXPECT_THAT(running.out, HasSubstr(id));
  end(id, 3, control::TaskState::kFailed, "exited with status 3");
  EXPECT_THAT(ask({"ps"}).out, Not(HasSubstr(id)));
  EXPECT_THAT(ask({"ps", "-a"}).out, HasSubstr("exited with status 3"));
  EXPECT_EQ(json::parse(ask({"ps", "--all", "--json"}).out).at("tasks").size(), 1u);
  EXPECT_EQ(json::parse(ask({"inspect", id}).out).at("exit_status"), 3);
  EXPECT_EQ(ask({"rm", id}).status, 0);
  EXPECT_EQ(ask({"inspect", id}).status, 66);
}

TEST_F(CommandsTest, StopsManyAndGoesOnAfterAMistake) {
  const auto first = submit();
  const auto second = submit();
  const auto ran = ask({"stop", first, "nonsense", second});
  EXPECT_EQ(ran.status, 66);
  EXPECT_THAT(ran.err, HasSubstr("'nonsense'"));
  EXPECT_EQ(server_.daemon().stops.size(), 2u);
}

TEST_F(CommandsTest, GivesAnotherShareAndSaysWhichItIs) {
  const auto id = submit();
  EXPECT_EQ(ask({"resize", id, "--gpu-share", "3GiB"}).out, "Task " + id + " has 3 GiB of 0 (guarded)\n");
  EXPECT_EQ(ask({"resize", id, "--gpu-share", "0.5"}).out, "Task " + id + " has 0.5 of 0 (guarded)\n");
  const auto said = json::parse(ask({"resize", id, "--gpu-share", "0.5", "--json"}).out);
  EXPECT_EQ(said.at("task").at("gpu_share").at("milli"), 500);
  EXPECT_EQ(ask({"resize", "nonsense", "--gpu-share", "0.5"}).status, 66);
  for (const char* share : {"much", "-1", "2", "nan", ""}) {
    const auto refused = ask({"resize", id, "--gpu-share", share});
    EXPECT_EQ(refused.status, 64) << share;
    EXPECT_THAT(refused.err, HasSubstr("--gpu-share")) << share;
  }
  EXPECT_EQ(ask({"resize", id}).status, 64);
}

TEST_F(CommandsTest, PrintsLogs) {
  const auto id = submit();
  server_.append(id, "stdout", "one\ntwo\n");
  server_.append(id, "stderr", "oh\n");
  const auto both = ask({"logs", id});
  EXPECT_EQ(both.out, "one\ntwo\n");
  EXPECT_EQ(both.err, "oh\n");
  EXPECT_EQ(ask({"logs", "--stdout", "--tail", "1", id}).out, "two\n");
  EXPECT_EQ(ask({"logs", "--stderr", id}).out, "");
  end(id, 0, control::TaskState::kFinished);
  EXPECT_EQ(ask({"logs", "-f", id}).out, "one\ntwo\n");
  EXPECT_EQ(ask({"logs", "-f", "--tail", "1", "--stdout", id}).out, "two\n");
}

TEST_F(CommandsTest, ShowsTheMachine) {
  EXPECT_THAT(ask({"gpus"}).out, HasSubstr("simulated GPUs (profile fake), driver 390.30, CUDA up to 9.1\n"));
  EXPECT_THAT(ask({"gpus"}).out, ContainsRegex("11.2 GiB +- +- +ok +alice task-0 +GPU-1"));
  EXPECT_THAT(ask({"topo"}).out, HasSubstr("GPU1\tNV2\t X \t0-2,5"));
  EXPECT_THAT(ask({"node"}).out, HasSubstr("gpus(*):2; cpus(*):40"));
  for (const auto* command : {"gpus", "topo", "node"})
    EXPECT_TRUE(json::parse(ask({command, "--json"}).out).is_object()) << command;
}

TEST_F(CommandsTest, ExplainsAndTellsEvents) {
  const auto id = submit();
  EXPECT_EQ(ask({"explain", id}).out,
            "Task task-1 is running at place 3, queue default\n  with 1 CPU, 1 GiB\n  2 GPUs are wanted, 0 "
            "of 2 are free\n  what "
            "helps: ask for 1 GPU\n");
  EXPECT_THAT(ask({"events"}).out, HasSubstr("task_running"));
  EXPECT_EQ(json::parse(ask({"events", "--json"}).out).at("number"), 1);
}

TEST_F(CommandsTest, LooksIntoTheSandbox) {
  const auto id = submit();
  server_.append(id, "answer", "forty-two");
  EXPECT_THAT(ask({"files", "ls", id}).out, HasSubstr("answer"));
  EXPECT_EQ(ask({"files", "cat", id, "answer"}).out, "forty-two");
  const auto target = server_.folder() + "/copy";
  EXPECT_EQ(ask({"files", "get", id, "answer", "-o", target}).status, 0);
  EXPECT_EQ(read_file(target).value(), "forty-two");
  EXPECT_NE(ask({"files", "get", id, "answer", "-o", target}).status, 0);
  EXPECT_EQ(ask({"files", "get", id, "missing", "-o", target + "2"}).status, 66);
  EXPECT_FALSE(std::filesystem::exists(target + "2"));
}

}  // namespace
}  // namespace drover::cli
