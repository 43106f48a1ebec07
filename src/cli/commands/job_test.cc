// 'drover job', and 'apply' of jobs: what reaches Chronos' API, and what people read.

#include <gmock/gmock.h>

#include "cli/testing/services_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Ran;

class JobsTest : public testing::ServicesFixture {};

TEST_F(JobsTest, AJobThatIsThereIsUnchangedThoughItsNextTimeHasMoved) {
  const auto path = std::string(DROVER_SOURCE_DIR "/tests/data/definitions/chronos-test-gpu-1.json");
  auto job = json::parse(read_file(path).value());
  job["schedule"] = "R/2026-03-05T23:00:00.000Z/PT24H";
  job["successCount"] = 7;
  there_is("/v1/scheduler/job/test-gpu", job);
  EXPECT_EQ(ask({"apply", path}).out, "test-gpu: unchanged\n");
  job["mem"] = 1;
  there_is("/v1/scheduler/job/test-gpu", job);
  EXPECT_EQ(ask({"apply", "--dry-run", path}).out, "test-gpu: mem 1 → 4096\n");
}

TEST_F(JobsTest, AJobByCronIsChangedWhenItsTimesAre) {
  const auto apply = [&](const std::string& schedule) {
    const auto path = file("job.yaml", "name: cron\ncommand: x\nschedule: '" + schedule + "'\n");
    return ask({"apply", "--dry-run", path}).out;
  };
  EXPECT_EQ(apply("*/10 8-18 * * mon-fri"), "cron: new, */10 8-18 * * mon-fri\n");
  there_is(
      "/v1/scheduler/job/cron",
      {{"name", "cron"}, {"command", "x"}, {"schedule", "*/10 8-18 * * mon-fri"}, {"scheduleTimeZone", ""}});
  EXPECT_EQ(apply("*/10 8-18 * * mon-fri"), "cron: unchanged\n");
  EXPECT_EQ(apply("5-55/10 8-18 * * mon-fri"),
            "cron: schedule */10 8-18 * * mon-fri → 5-55/10 8-18 * * mon-fri\n");
  EXPECT_EQ(apply("R/2030-01-31T02:30:00Z/P1D"),
            "cron: schedule */10 8-18 * * mon-fri → R/2030-01-31T02:30:00Z/P1D\n");
  EXPECT_EQ(apply("@daily"), "cron: schedule */10 8-18 * * mon-fri → @daily\n");
}

TEST_F(JobsTest, SaysWhenAJobByCronIsNext) {
  const json job = {{"name", "leap"},
                    {"command", "x"},
                    {"schedule", "*/10 2-4/2 29 2 *"},
                    {"scheduleTimeZone", "Asia/Kolkata"}};
  there_is("/v1/scheduler/jobs", json::array({job}));
  there_is("/v1/scheduler/jobs/summary", {{"jobs", {{{"name", "leap"}, {"state", "idle"}}}}});
  there_is("/v1/scheduler/job/leap", job);
  there_is("/v1/scheduler/job/stat/leap", {{"taskStatHistory", json::array()}});
  const auto next = "20[0-9]{2}-02-28T20:30:00.000Z";
  EXPECT_THAT(ask({"job", "list"}).out,
              ::testing::ContainsRegex(std::string("leap +idle +never ran +") + next));
  const auto shown = ask({"job", "show", "leap"}).out;
  EXPECT_THAT(shown, HasSubstr("  schedule: */10 2-4/2 29 2 *\n  time zone: Asia/Kolkata\n"));
  EXPECT_THAT(shown, ::testing::ContainsRegex(std::string("  next run: ") + next));
}

TEST_F(JobsTest, SaysWhyTheRunOfAJobWaits) {
  const json job = {{"name", "nightly"}, {"schedule", "R/2030-01-31T02:30:00.000Z/P1D"}};
  there_is("/v1/scheduler/jobs", json::array({job}));
  there_is("/v1/scheduler/jobs/summary", {{"jobs", {{{"name", "nightly"}, {"state", "queued"}}}}});
  const auto task = [](const char* state, const char* kind) {
    return json{
        {"task", {{"origin", {{"kind", kind}, {"name", "nightly"}}}}}, {"state", state}, {"reason", kind}};
  };
  there_is("/v1/tasks?active=true", {{"tasks", {task("failed", "schedule"), task("queued", "service")}}});
  EXPECT_THAT(ask({"job", "list"}).out, HasSubstr("its run is tried again later"));
  there_is("/v1/tasks?active=true", {{"tasks", {task("queued", "schedule")}}});
  EXPECT_THAT(ask({"job", "list"}).out, HasSubstr("its run waits: schedule"));
}

TEST_F(JobsTest, ListsShowsAndRunsJobs) {
  const json job = {{"name", "nightly"},
                    {"command", "x"},
                    {"schedule", "R/2030-01-31T02:30:00.000Z/P1D"},
                    {"lastError", "2020-01-01T00:00:00.000Z"}};
  const json disabled = {
      {"name", "weekly"}, {"schedule", "R/2030-01-31T02:30:00.000Z/P1W"}, {"disabled", true}};
  there_is("/v1/scheduler/jobs", {job, disabled});
  there_is("/v1/scheduler/jobs/summary", {{"jobs", {{{"name", "nightly"}, {"state", "1 running"}}}}});
  there_is("/v1/scheduler/job/nightly", job);
  there_is("/v1/scheduler/job/stat/nightly",
           {{"taskStatHistory",
             {{{"taskId", "ct:1:0:nightly:"},
               {"status", "failed"},
               {"startTime", "11/23/26 04:16:38"},
               {"endTime", "N/A"}}}},
            {"skippedRuns", {{{"lastDue", "2026-11-20T12:00:00.000Z"}, {"count", 3}, {"reason", "busy"}}}}});
  const auto listed = ask({"job", "list"});
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, ::testing::ContainsRegex("nightly +1 running +failed .* ago +2030-01-31T02:30:00"));
  EXPECT_THAT(listed.out, ::testing::ContainsRegex("weekly +disabled +never ran +it is disabled"));
  EXPECT_THAT(ask({"job", "show", "nightly"}).out, HasSubstr("ct:1:0:nightly:  failed"));
  EXPECT_THAT(ask({"job", "history", "nightly"}).out, HasSubstr("ct:1:0:nightly:  failed"));
  for (const auto* verb : {"show", "history"})
    EXPECT_THAT(ask({"job", verb, "nightly"}).out,
                HasSubstr("left out: 3 runs, the last of them that of 2026-11-20T12:00:00.000Z: busy"));
  EXPECT_THAT(ask({"job", "history", "nightly"}).out, HasSubstr("2026-11-23T04:16:38Z  N/A"));
  EXPECT_EQ(ask({"job", "run", "nightly", "--arguments", "a b"}).out,
            "nightly: a run was asked for; 'drover job history nightly' shows how it goes\n");
  EXPECT_EQ(ask({"job", "kill", "nightly"}).out, "nightly: the runs that were there are ended\n");
  EXPECT_EQ(ask({"job", "remove", "nightly"}).out, "nightly: forgotten, and its runs are ended\n");
  EXPECT_THAT(api_.changes(),
              ElementsAre("PUT /v1/scheduler/job/nightly?arguments=a%20b",
                          "DELETE /v1/scheduler/task/kill/nightly", "DELETE /v1/scheduler/job/nightly"));
  const auto unknown = ask({"job", "run", "nightli"});
  EXPECT_EQ(unknown.status, 66);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'nightly'?"));
}

}  // namespace
}  // namespace drover::cli
