#include "chronos/job.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace drover::chronos {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

const TimePoint kNow = *parse_time("2026-11-20T12:00:00.000Z");
const Attributes kMachine = {{"hostname", {"gpu7"}}, {"rack", {"r7"}}};

Result<JobRequest> decoded(const json& job, JobKind kind = JobKind::kScheduled) {
  return decode_job(job.dump(), kind, &kMachine, kNow);
}

json minimal() {
  return {{"name", "j"}, {"command", "true"}, {"schedule", "R/2030-01-01T00:00:00Z/P1D"}};
}

json with(const json& more) {
  auto job = minimal();
  job.update(more);
  return job;
}

workload::Schedule schedule_of(const json& job) {
  const auto request = decoded(job);
  EXPECT_TRUE(request) << to_string(request.error());
  return request ? request->schedule : workload::Schedule{};
}

std::string mistake_of(const json& job, JobKind kind = JobKind::kScheduled) {
  const auto request = decoded(job, kind);
  return request ? "" : request.error().message;
}

TEST(Job, HasTheDefaultsOfChronos) {
  const auto schedule = schedule_of(minimal());
  EXPECT_EQ(schedule.task.command, (std::vector<std::string>{"/bin/sh", "-c", "true"}));
  EXPECT_EQ(schedule.task.resources.milli_cpus, 100);
  EXPECT_EQ(schedule.task.resources.memory_bytes, 128ULL << 20);
  EXPECT_EQ(schedule.retries, 2);
  EXPECT_EQ(schedule.epsilon, 60s);
  EXPECT_FALSE(schedule.concurrent || schedule.disabled || schedule.soft_error || schedule.task.timeout);
  EXPECT_EQ(schedule.repetition, "R/2030-01-01T00:00:00.000Z/P1D");
}

class RealFile : public ::testing::TestWithParam<std::string> {};

TEST_P(RealFile, IsReadUnchanged) {
  std::ifstream file(std::string(DROVER_SOURCE_DIR) + "/tests/data/definitions/" + GetParam());
  std::stringstream text;
  text << file.rdbuf();
  const auto request = decode_job(text.str(), JobKind::kScheduled, &kMachine, kNow);
  ASSERT_TRUE(request) << to_string(request.error());
  const auto& schedule = request->schedule;
  EXPECT_EQ(request->run_as_user, "root");
  EXPECT_EQ(schedule.task.resources.gpu_count(), 1);
  EXPECT_EQ(schedule.task.resources.milli_cpus, 4000);
  EXPECT_EQ(schedule.task.resources.memory_bytes, 4096ULL << 20);
  ASSERT_EQ(schedule.task.fetch.size(), 1U);
  EXPECT_TRUE(schedule.task.fetch[0].uri.ends_with("/gpu_demo.sh"));
  EXPECT_TRUE(schedule.task.image.value().starts_with("tensorflow/tensorflow:"));
  EXPECT_EQ(schedule.retries, 2);
  EXPECT_EQ(schedule.repetition, "R/2018-03-05T23:00:00.000Z/PT24H");
}
INSTANTIATE_TEST_SUITE_P(Given, RealFile,
                         ::testing::Values("chronos-test-gpu-1.json", "chronos-test2-gpu-2.json"));

TEST(Job, TakesNumbersAndTruthAsText) {
  const auto schedule = schedule_of(with({{"cpus", "0.5"},
                                          {"mem", "64"},
                                          {"retries", "5"},
                                          {"gpus", "2"},
                                          {"concurrent", "true"},
                                          {"maxCompletionTime", 90.0},
                                          {"disk", ""}}));
  EXPECT_EQ(schedule.task.resources.milli_cpus, 500);
  EXPECT_EQ(schedule.task.resources.memory_bytes, 64ULL << 20);
  EXPECT_EQ(schedule.retries, 5);
  EXPECT_EQ(schedule.task.resources.gpu_count(), 2);
  EXPECT_TRUE(schedule.concurrent);
  EXPECT_EQ(schedule.task.timeout, 90s);
}

TEST(Job, ZeroIsTheDefault) {
  const auto schedule = schedule_of(with({{"cpus", 0}, {"mem", 0}, {"gpus", 0}}));
  EXPECT_EQ(schedule.task.resources.milli_cpus, 100);
  EXPECT_EQ(schedule.task.resources.memory_bytes, 128ULL << 20);
  EXPECT_TRUE(schedule.task.resources.gpus.empty());
}

TEST(Job, IgnoresWhatItDoesNotKnowAndTakesWhatClientsMustSend) {
  const auto schedule = schedule_of(with(
      {{"epsilon", "PT15M"}, {"async", false}, {"successCount", 5}, {"lastSuccess", ""}, {"x", {1, 2}}}));
  EXPECT_EQ(schedule.epsilon, 15min);
  const auto shown = json::parse(schedule.definition);
  EXPECT_EQ(shown["epsilon"], "PT15M");
  EXPECT_EQ(shown["async"], false);
  EXPECT_FALSE(shown.contains("x"));
}

TEST(Job, NamesTheUrlThatIsToldHowItsRunsEnded) {
  const auto schedule = schedule_of(with({{"notificationUrl", "https://example.org/runs"}}));
  EXPECT_EQ(schedule.webhook, "https://example.org/runs");
  EXPECT_EQ(json::parse(schedule.definition)["notificationUrl"], "https://example.org/runs");
  EXPECT_FALSE(
      json::parse(schedule_of(with({{"notificationUrl", ""}})).definition).contains("notificationUrl"));
}

TEST(Job, OwnVariablesDoNotHideThoseOfChronos) {
  const auto schedule = schedule_of(
      with({{"owner", "a@b.c"},
            {"environmentVariables",
             {{{"name", "CHRONOS_JOB_NAME"}, {"value", "lie"}}, {{"name", "N"}, {"value", 5}}}}}));
  EXPECT_EQ(schedule.task.environment.at("CHRONOS_JOB_NAME"), "j");
  EXPECT_EQ(schedule.task.environment.at("CHRONOS_JOB_OWNER"), "a@b.c");
  EXPECT_EQ(schedule.task.environment.at("CHRONOS_RESOURCE_CPU"), "0.1");
  EXPECT_EQ(schedule.task.environment.at("CHRONOS_RESOURCE_MEM"), "128");
  EXPECT_EQ(schedule.task.environment.at("N"), "5");
}

TEST(Job, WithoutAShellTheArgumentsAreWords) {
  EXPECT_EQ(schedule_of(with({{"shell", false}, {"command", "/bin/echo"}, {"arguments", {"a b", "c"}}}))
                .task.command,
            (std::vector<std::string>{"/bin/echo", "a b", "c"}));
  EXPECT_EQ(schedule_of(with({{"shell", false}, {"command", "/bin/echo"}, {"arguments", {"/bin/echo", "c"}}}))
                .task.command,
            (std::vector<std::string>{"/bin/echo", "c"}));
}

TEST(Job, TakesFetchOrUrisAndBothWhenTheySayTheSame) {
  const json fetch = {{{"uri", "http://x/a.tgz"}, {"executable", true}, {"extract", false}, {"cache", true}}};
  const auto schedule = schedule_of(with({{"fetch", fetch}, {"uris", {"http://x/a.tgz"}}}));
  ASSERT_EQ(schedule.task.fetch.size(), 1U);
  EXPECT_EQ(schedule.task.fetch[0], (workload::Fetch{"http://x/a.tgz", false, true, true, ""}));
  EXPECT_EQ(json::parse(schedule.definition)["uris"], json({"http://x/a.tgz"}));
  EXPECT_EQ(mistake_of(with({{"fetch", fetch}, {"uris", {"http://x/b"}}})),
            "Tried to add both uri (deprecated) and fetch parameters on j");
}

TEST(Job, ReadsContainers) {
  const auto schedule = schedule_of(with(
      {{"container",
        {{"type", "DOCKER"},
         {"image", "busybox"},
         {"network", "BRIDGE"},
         {"networkInfos",
          {{{"name", "n"}, {"portMappings", {{{"hostPort", "0"}, {"containerPort", "80"}}}}}}},
         {"volumes", {{{"hostPath", "/data"}, {"containerPath", "/in"}, {"mode", "RO"}}}},
         {"forcePullImage", true},
         {"parameters", {{{"key", "env"}, {"value", "A=b=c"}}, {{"key", "workdir"}, {"value", "/w"}}}}}}}));
  EXPECT_EQ(schedule.task.image, "busybox");
  EXPECT_EQ(schedule.task.pull, PullPolicy::kAlways);
  EXPECT_EQ(schedule.task.network.mode, workload::NetworkMode::kBridge);
  ASSERT_EQ(schedule.task.network.ports.size(), 1U);
  EXPECT_EQ(schedule.task.network.ports[0].container_port, 80);
  ASSERT_EQ(schedule.task.volumes.size(), 1U);
  EXPECT_TRUE(schedule.task.volumes[0].read_only);
  EXPECT_EQ(schedule.task.environment.at("A"), "b=c");
  EXPECT_EQ(schedule.task.working_directory, "/w");
  EXPECT_NE(mistake_of(with({{"container",
                              {{"type", "DOCKER"},
                               {"image", "busybox"},
                               {"parameters", {{{"key", "runtime"}, {"value", "nvidia"}}}}}}})),
            "");
}

TEST(Job, ConstraintsAreJudgedByTheMachine) {
  const auto attributes = [](const json& constraints) {
    return schedule_of(with({{"constraints", constraints}})).task.resources.attributes;
  };
  using workload::AttributeConstraint;
  EXPECT_EQ(attributes({{"rack", "EQUALS", "r9"}}), (std::vector{AttributeConstraint{"rack", {"r9"}}}));
  EXPECT_EQ(attributes({{"rack", "LIKE", "r.|x"}}), (std::vector{AttributeConstraint{"rack", {"r7"}}}));
  EXPECT_TRUE(attributes({{"color", "UNLIKE", "red"}}).empty());
  EXPECT_NE(mistake_of(with({{"constraints", {{"rack", "UNLIKE", "r.*"}}}})), "");
  EXPECT_NE(mistake_of(with({{"constraints", {{"rack", "NEAR", "r"}}}})), "");
  EXPECT_NE(mistake_of(with({{"constraints", {{"rack", "LIKE", "(a*)*b"}}}})), "");
}

TEST(Job, SaysWhatIsWrong) {
  EXPECT_EQ(mistake_of(with({{"name", "a/b"}})), "the job's name is invalid. Allowed names: '([\\w\\.-]+)'");
  EXPECT_TRUE(mistake_of(with({{"schedule", "daily"}})).starts_with("Cannot parse schedule 'daily'"));
  EXPECT_TRUE(mistake_of({{"name", "j"}, {"command", "x"}}).starts_with("Cannot parse schedule ''"));
  EXPECT_EQ(mistake_of(minimal(), JobKind::kDependent), "Error, parent does not exist");
  EXPECT_EQ(mistake_of(with({{"parents", json::array()}}), JobKind::kDependent),
            "Error, parent does not exist");
  EXPECT_NE(mistake_of(with({{"command", ""}})), "");
  const auto several = mistake_of(with({{"cpus", "many"}, {"retries", -1}}));
  EXPECT_NE(several.find("/cpus"), several.npos) << several;
  EXPECT_NE(several.find("/retries"), several.npos) << several;
}

TEST(Job, ADependentJobHasParentsAndNoTimes) {
  const auto request =
      decoded({{"name", "c"}, {"command", "x"}, {"parents", {"b", "a", "b"}}}, JobKind::kDependent);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->schedule.parents, (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(request->schedule.repetition, "");
}

TEST(Job, AStartThatIsLeftOutIsWrittenDown) {
  EXPECT_EQ(schedule_of(with({{"schedule", "R1//PT1M"}})).repetition, "R1/2026-11-20T11:59:59.000Z/PT1M");
}

TEST(Job, TakesCronAsItIsWritten) {
  const auto schedule =
      schedule_of(with({{"schedule", "30 2 * * mon-fri"}, {"scheduleTimeZone", "Europe/Berlin"}}));
  EXPECT_EQ(schedule.repetition, "30 2 * * mon-fri");
  EXPECT_EQ(schedule.time_zone, "Europe/Berlin");
  EXPECT_EQ(mistake_of(with({{"schedule", "0 25 * * *"}})),
            "Cannot parse schedule '0 25 * * *': the hour '25' is not between 0 and 23");
}

RC_GTEST_PROP(JobProperty, AnyFieldOfAnyTypeIsReadOrRefused, ()) {
  auto job = minimal();
  const auto name = *rc::gen::element<std::string>(
      "name", "command", "shell", "cpus", "mem", "gpus", "fetch", "uris", "container", "constraints",
      "schedule", "scheduleTimeZone", "environmentVariables", "arguments", "retries", "epsilon",
      "maxCompletionTime", "owner", "notificationUrl");
  const auto text = *rc::gen::arbitrary<std::string>();
  job[name] = *rc::gen::element<json>(
      nullptr, true, -1, 1e300, "x", json::array(), json::object(), json::array({1, "x", nullptr}),
      json({{"type", 5}, {"volumes", {1}}, {"networkInfos", {{{"portMappings", {{{"hostPort", {1}}}}}}}}}),
      json::array({json::array({"a", "LIKE", "["})}));
  (void)decode_job(job.dump(), JobKind::kScheduled, &kMachine, kNow);
  (void)decode_job(text, JobKind::kDependent, nullptr, kNow);
}

}  // namespace
}  // namespace drover::chronos
