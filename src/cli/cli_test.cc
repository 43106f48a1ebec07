#include "cli/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/testing/fake_daemon.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

Hooks hooks() {
  Hooks result;
  result.version = "1.2.3";
  result.serve = [](const ServeOptions& options) -> Status {
    auto told = options.state + " " + options.socket + " " + options.simulate + " " + options.placement;
    for (const auto& [name, values] : options.attributes)
      for (const auto& value : values) told += " " + name + "=" + value;
    return fail(ErrorKind::kUnavailable, told);
  };
  result.doctor = [] {
    return std::vector<Check>{{"kernel", Check::State::kFound, "Linux", ""},
                              {"runtime", Check::State::kMissing, "no runc", "install runc"}};
  };
  return result;
}

int run_words(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"drover"};
  for (const auto& word : words) argv.push_back(word.c_str());
  return run_cli(static_cast<int>(argv.size()), argv.data(), hooks());
}

Ran drover(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.status = run_words(words);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

TEST(Usage, UnknownWordsAreNamedWithWhatWasProbablyMeant) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"run", "--gpu", "1", "--", "true"}, "did you mean '--gpus'?"},
      {{"gpsu"}, "did you mean 'gpus'?"},
      {{"ps", "--jsno"}, "did you mean '--json'?"},
      {{"serve", "--sate", "/tmp"}, "did you mean '--state'?"},
      {{"run", "echo", "-n", "x"}, "after '--'"},
      {{"files", "lss", "x"}, "did you mean 'ls'?"}};
  for (const auto& [words, hint] : wrong) {
    const auto ran = drover(words);
    EXPECT_EQ(ran.status, 64) << words.front();
    EXPECT_THAT(ran.err, HasSubstr(hint));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Usage, MissingArgumentsAndHelp) {
  EXPECT_EQ(drover({}).status, 64);
  EXPECT_EQ(drover({"logs"}).status, 64);
  const auto help = drover({"run", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("--gpus"));
  EXPECT_THAT(drover({"help"}).out, HasSubstr("explain"));
  EXPECT_THAT(drover({"help", "run"}).out, HasSubstr("--gpus"));
  EXPECT_THAT(drover({"help", "runn"}).err, HasSubstr("did you mean 'run'?"));
  EXPECT_THAT(drover({"version"}).out, HasSubstr("1.2.3"));
  EXPECT_EQ(json::parse(drover({"version", "--json"}).out).at("version"), "1.2.3");
}

TEST(Usage, RefusesValuesBeforeItAsksTheDaemon) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--gpus", "nan"}, "'nan'"},
      {{"--gpus", "1e9"}, "'1e9'"},
      {{"--gpus", "0x"}, "'0x'"},
      {{"--gpus", "2xA100,"}, "'2xA100,'"},
      {{"--gpus", "A100"}, "--gpus 2xA100"},
      {{"--gpus="}, "--gpus"},
      {{"--gpus", "2xA100", "--gpu-model", "T4"}, "--gpu-model: the models are named twice"},
      {{"--gpu-ecc", "maybe"}, "--gpu-ecc: 'maybe'"},
      {{"--constraint", "rack"}, "--constraint: 'rack'"},
      {{"--gang", "two"}, "--gang: 'two'"},
      {{"--gang", "99999999999999999999"}, "--gang: '99999999999999999999'"},
      {{"--gang", "500"}, "add --detach"},
      {{"--arrangement", "pack"}, "add --gang N"},
      {{"--priority", "high"}, "--priority: 'high'"},
      {{"--gpus", "many"}, "'many'"},
      {{"--gpus=-1"}, "'-1'"},
      {{"--mem", "plenty"}, "--mem: 'plenty'"},
      {{"--cpus", "0"}, "--cpus: '0'"},
      {{"--timeout", "soon"}, "--timeout: 'soon'"},
      {{"--env", "=x"}, "'=x'"},
      {{"--label", "x"}, "'x'"}};
  for (const auto& [options, words] : wrong) {
    std::vector<std::string> all = {"--socket", "/no/such/socket", "run"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "true"});
    const auto ran = drover(all);
    EXPECT_EQ(ran.status, 64) << options.front();
    EXPECT_THAT(ran.err, HasSubstr(words));
  }
  EXPECT_EQ(drover({"--socket", "/no/such/socket", "run"}).status, 64);
}

TEST(Usage, ADaemonThatIsNotThere) {
  const auto ran = drover({"--socket", "/no/such/socket", "ps"});
  EXPECT_EQ(ran.status, 69);
  EXPECT_THAT(ran.err,
              HasSubstr("Failed to reach the daemon at '/no/such/socket': No such file or directory"));
  EXPECT_THAT(ran.err, HasSubstr("drover serve"));
  EXPECT_EQ(drover({"--host", "nonsense", "ps"}).status, 64);
}

TEST(Serve, GetsItsOptions) {
  const auto ran = drover({"serve", "--state", "/s", "--socket", "/x", "--simulate", "k80"});
  EXPECT_EQ(ran.status, 69);
  EXPECT_THAT(ran.err, HasSubstr("/s /x k80 pack"));
}

TEST(Serve, TakesPlacementAndAttributes) {
  const auto ran = drover({"serve", "--placement", "spread", "--attribute", "rack=r7", "--attribute",
                           "rack=r8", "--attribute", "site=a=b"});
  EXPECT_THAT(ran.err, HasSubstr("spread rack=r7 rack=r8 site=a=b"));
  for (const auto& words : {std::vector<std::string>{"serve", "--attribute", "rack"},
                            {"serve", "--attribute", "=r7"},
                            {"serve", "--placement", "tight"}})
    EXPECT_EQ(drover(words).status, 64);
}

TEST(Doctor, SaysHowToMendAndFailsWhenSomethingIsMissing) {
  const auto ran = drover({"--socket", "/no/such/socket", "doctor"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("found    kernel   Linux\n"));
  EXPECT_THAT(ran.out, HasSubstr("missing  runtime  no runc\n"));
  EXPECT_THAT(ran.out, HasSubstr("→ install runc\n"));
  const auto checks = json::parse(drover({"--socket", "/no/such/socket", "doctor", "--json"}).out);
  EXPECT_EQ(checks.at("well"), false);
  EXPECT_EQ(checks.at("checks").back().at("name"), "daemon");
}

class CliTest : public ::testing::Test {
 protected:
  Ran ask(std::vector<std::string> words) {
    words.insert(words.begin(), {"--socket", server_.socket()});
    return drover(words);
  }
  std::string submit() {
    auto id = ask({"run", "--detach", "--", "sleep", "9"}).out;
    id.pop_back();
    return id;
  }
  void end(const std::string& id, int status, control::TaskState state, const std::string& reason = "") {
    server_.on_strand([&] { server_.daemon().end(id, status, state, reason); });
  }
  /// Ends the next task as soon as it is there, and does `before` first.
  std::thread end_next_task(
      int status, control::TaskState state, const std::string& reason, std::function<void()> before = [] {}) {
    return std::thread([=, this] {
      wait_for([&] { return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).empty(); }); });
      before();
      end("task-1", status, state, reason);
    });
  }
  static void wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  const engine::Caller kRoot{};
  api::testing::ServerFixture server_;
};

TEST_F(CliTest, RunStreamsBothOutputsAndExitsAsTheTask) {
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

TEST_F(CliTest, RunHandsOnWhatWasAsked) {
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

TEST_F(CliTest, RunSaysWhyItWaits) {
  server_.on_strand([this] { server_.daemon().start_state = control::TaskState::kQueued; });
  auto ending = end_next_task(0, control::TaskState::kFinished, "",
                              [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
  const auto ran = ask({"run", "--gpus", "2", "--", "anything"});
  ending.join();
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err, "drover: waiting: 2 GPUs are wanted, 0 of 2 are free\n");
}

TEST_F(CliTest, RunThatCouldNotBeStartedIs125WithTheReason) {
  auto ending = std::thread([this] {
    wait_for([&] { return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).empty(); }); });
    server_.on_strand([this] { server_.daemon().fail_to_start("task-1", "There is no image 'x'"); });
  });
  const auto ran = ask({"run", "--image", "x"});
  ending.join();
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.err, "drover: the task failed: There is no image 'x'\n");
}

TEST_F(CliTest, RunGoesOnAfterTheDaemonWasRestarted) {
  auto ending = end_next_task(0, control::TaskState::kFinished, "", [this] {
    server_.append("task-1", "stdout", "before\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    server_.stop();
    server_.append("task-1", "stdout", "meanwhile\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    server_.start();
    server_.append("task-1", "stdout", "after\n");
  });
  const auto ran = ask({"run", "--", "anything"});
  ending.join();
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "before\nmeanwhile\nafter\n");
  EXPECT_THAT(ran.err, HasSubstr("the daemon does not answer; the task goes on"));
}

TEST_F(CliTest, OneInterruptAsksAndTheSecondKills) {
  server_.on_strand([this] { server_.daemon().stop_ends = false; });
  const auto socket = server_.socket();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    ::_exit(run_words({"--socket", socket, "run", "--", "anything"}));
  }
  const auto stops = [&] { return server_.on_strand([&] { return server_.daemon().stops; }); };
  wait_for([&] { return server_.on_strand([&] { return !server_.daemon().tasks(kRoot).empty(); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
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

TEST_F(CliTest, AGangIsFollowedAsOne) {
  std::thread ending([this] {
    wait_for([&] { return server_.on_strand([&] { return server_.daemon().tasks(kRoot).size() == 3; }); });
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

TEST_F(CliTest, ADetachedGangPrintsItsIdsByRank) {
  EXPECT_EQ(ask({"run", "--gang", "2", "--detach", "--", "anything"}).out, "task-1\ntask-2\n");
  const auto all = json::parse(ask({"run", "--gang", "2", "--detach", "--json", "--", "anything"}).out);
  EXPECT_EQ(all.at("gang"), "gang");
  EXPECT_EQ(all.at("tasks").size(), 2u);
  EXPECT_THAT(ask({"ps"}).out, HasSubstr("anything[1]"));
}

TEST_F(CliTest, RefusalsOfTheDaemonNameTheFlag) {
  const auto one = ask({"run", "--gpus", "1", "--interconnect", "nvlink", "--", "x"});
  EXPECT_EQ(one.status, 64);
  EXPECT_THAT(one.err, HasSubstr("drover: --interconnect: "));
  const auto two = ask({"plan", "--gpus", "-0", "--gpu-share", "7", "--nic", "require"});
  EXPECT_EQ(two.status, 64);
  EXPECT_THAT(two.err, HasSubstr("\n  --gpu-share: "));
  EXPECT_THAT(two.err, HasSubstr("\n  --nic: "));
}

TEST_F(CliTest, PlansWithoutDoing) {
  engine::PlanView plan;
  plan.starts_now = true;
  plan.members = {{"here", {{"GPU-0", 500, 1ULL << 30}, {"GPU-1", 500, 1ULL << 30}}, {0, 1, 2}, {"eth0"}}};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto starts = ask({"plan", "--gpus", "2", "--gpu-share", "0.5"});
  EXPECT_EQ(starts.status, 0);
  EXPECT_THAT(starts.out, HasSubstr("simulated GPUs (profile fake)\nIt would start now\n"));
  EXPECT_THAT(starts.out,
              HasSubstr("  on here, GPU 0.5 of 0,1 (not enforced): 2 x Tesla K40m, joined by NV2, "
                        "CPU 0-2, network card eth0\n"));
  plan = {};
  plan.place = 3;
  plan.reasons = {"0 of 2 GPUs are free"};
  plan.remedies = {"wait for 2 GPUs"};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto waits = ask({"plan", "--gpus", "2"});
  EXPECT_EQ(waits.status, 1);
  EXPECT_EQ(waits.out,
            "It would wait, at place 3 of the queue\n  0 of 2 GPUs are free\n  to start sooner: wait for 2 "
            "GPUs\n");
  plan.victims = 2;
  plan.victim_ids = {"task-9"};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto preempts = ask({"plan", "--gpus", "2"});
  EXPECT_EQ(preempts.status, 1);
  EXPECT_THAT(preempts.out, HasSubstr("2 tasks have been ended to make room"));
  EXPECT_THAT(preempts.out, HasSubstr("would end: task-9"));
  EXPECT_EQ(json::parse(ask({"plan", "--gpus", "2", "--json"}).out).at("place"), 3);
  EXPECT_TRUE(server_.on_strand([this] { return server_.daemon().tasks(kRoot).empty(); }));
}

TEST_F(CliTest, QueuesAreSetListedAndRemoved) {
  ASSERT_EQ(ask({"queue", "set", "research/vision", "--gpus-guarantee", "4", "--gpus-limit", "8",
                 "--mem-limit", "64GiB", "--users", "ann,bob"})
                .status,
            0);
  ASSERT_EQ(ask({"queue", "set", "research/vision", "--weight", "3", "--mem-limit", "none"}).status, 0);
  const auto listing = ask({"queue"}).out;
  EXPECT_THAT(listing,
              HasSubstr("research/vision  1.5 GPUs, 2 CPUs, 3 GiB  4 GPUs     8 GPUs       3  ann,bob"));
  EXPECT_THAT(listing, HasSubstr("task-7 (gang of 2)  alice"));
  EXPECT_THAT(listing, HasSubstr("0 of 2 GPUs are free"));
  EXPECT_EQ(json::parse(ask({"queue", "--json"}).out).at("queues").size(), 1u);
  EXPECT_EQ(ask({"queue", "set", "research/vision", "--users", "all"}).status, 0);
  EXPECT_THAT(ask({"queue"}).out, HasSubstr("3  all"));
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--gpus-limit", "many"},
                                                        {"--gpus-limit", "-1"},
                                                        {"--weight", "0"},
                                                        {"--mem-guarantee", "lots"}}) {
    const auto refused = ask({"queue", "set", "research/vision", flag, value});
    EXPECT_EQ(refused.status, 64) << flag;
    EXPECT_THAT(refused.err, HasSubstr(flag + ": "));
  }
  EXPECT_EQ(ask({"queue", "remove", "research/vision"}).status, 0);
  EXPECT_EQ(ask({"queue", "remove", "research/vision"}).status, 66);
}

TEST_F(CliTest, QuotasAreSetListedAndRemoved) {
  ASSERT_EQ(ask({"quota", "set", "user:ann", "--gpus", "2", "--cpus", "8", "--max-priority", "10"}).status,
            0);
  ASSERT_EQ(ask({"quota", "set", "user:ann", "--cpus", "none"}).status, 0);
  EXPECT_THAT(ask({"quota"}).out, HasSubstr("user:ann  0.5 GPUs  2 GPUs                10"));
  EXPECT_EQ(json::parse(ask({"quota", "--json"}).out).at("quotas").size(), 1u);
  EXPECT_EQ(ask({"quota", "set", "ann", "--gpus", "2"}).status, 64);
  EXPECT_THAT(ask({"quota", "set", "user:ann", "--max-priority", "5000"}).err, HasSubstr("--max-priority: "));
  EXPECT_EQ(ask({"quota", "remove", "user:ann"}).status, 0);
  EXPECT_EQ(ask({"quota", "remove", "user:ann"}).status, 66);
}

TEST_F(CliTest, EveryHolderOfASharedGpuIsListedAsNotEnforced) {
  server_.on_strand([this] {
    server_.daemon().holders_ = {{"GPU-0", "task-1", "ann", 500, 0}, {"GPU-0", "", "bob", 250, 0}};
  });
  EXPECT_THAT(ask({"gpus"}).out, HasSubstr("ann task-1 0.5, bob 0.25 (not enforced)\n"));
}

TEST_F(CliTest, ListsTasks) {
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

TEST_F(CliTest, StopsManyAndGoesOnAfterAMistake) {
  const auto first = submit();
  const auto second = submit();
  const auto ran = ask({"stop", first, "nonsense", second});
  EXPECT_EQ(ran.status, 66);
  EXPECT_THAT(ran.err, HasSubstr("'nonsense'"));
  EXPECT_EQ(server_.daemon().stops.size(), 2u);
}

TEST_F(CliTest, PrintsLogs) {
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

TEST_F(CliTest, ShowsTheMachine) {
  EXPECT_THAT(ask({"gpus"}).out, HasSubstr("simulated GPUs (profile fake), driver 390.30, CUDA up to 9.1\n"));
  EXPECT_THAT(ask({"gpus"}).out, HasSubstr("11.2 GiB  GPU-1"));
  EXPECT_THAT(ask({"topo"}).out, HasSubstr("GPU1\tNV2\t X \t0-2,5"));
  EXPECT_THAT(ask({"node"}).out, HasSubstr("gpus(*):2; cpus(*):40"));
  for (const auto* command : {"gpus", "topo", "node"})
    EXPECT_TRUE(json::parse(ask({command, "--json"}).out).is_object()) << command;
}

TEST_F(CliTest, ExplainsAndTellsEvents) {
  const auto id = submit();
  EXPECT_EQ(
      ask({"explain", id}).out,
      "Task task-1 is running at place 3, queue default\n  2 GPUs are wanted, 0 of 2 are free\n  to start "
      "sooner: ask for 1 GPU\n");
  EXPECT_THAT(ask({"events"}).out, HasSubstr("task_running"));
  EXPECT_EQ(json::parse(ask({"events", "--json"}).out).at("number"), 1);
}

TEST_F(CliTest, LooksIntoTheSandbox) {
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

TEST(CliOverTcp, NeedsTheToken) {
  const std::string secret = "0123456789abcdef0123456789abcdef";
  api::ServerOptions options;
  options.listen = api::ListenAddress{"127.0.0.1", 0};
  options.credentials = {{"root", secret}};
  api::testing::ServerFixture server(options);
  const auto url = "http://" + api::to_string(*server.server().tcp_address());
  EXPECT_EQ(drover({"--host", url, "ps"}).status, 77);
  EXPECT_EQ(drover({"--host", url, "--token", secret, "ps"}).status, 0);
}

}  // namespace
}  // namespace drover::cli
