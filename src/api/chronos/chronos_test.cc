// Chronos' API on the wire: bytes as its clients send and read them.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/chronos/job_view.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"
#include "control/schedule_runs.h"

namespace drover::api {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::body_of;
using testing::ServerFixture;
using testing::status_of;

class Chronos : public ::testing::Test {
 protected:
  std::string ask(const std::string& method, const std::string& path, const std::string& body = "") {
    return server_.exchange(method, path, body, body.empty() ? "" : ServerFixture::kOfJson);
  }
  json get(const std::string& path) {
    const auto answer = ask("GET", "/v1/scheduler" + path);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return json::parse(body_of(answer));
  }
  int define(const json& job) {
    return status_of(ask(
        "POST", job.contains("parents") ? "/v1/scheduler/dependency" : "/v1/scheduler/iso8601", job.dump()));
  }
  static json job(const std::string& name) {
    return {{"name", name}, {"command", "echo " + name}, {"schedule", "R/2030-01-01T00:00:00Z/P1D"}};
  }

  ServerFixture server_;
};

TEST_F(Chronos, AJobIsShownInTheOrderOfChronos) {
  auto gpu = job("nightly");
  gpu["gpus"] = 0;
  gpu["retries"] = 4;
  const auto made = ask("POST", "/v1/scheduler/iso8601", gpu.dump());
  EXPECT_EQ(status_of(made), 204);
  EXPECT_EQ(body_of(made), "");
  const auto answer = ask("GET", "/scheduler/job/nightly");
  EXPECT_NE(answer.find("Content-Type: application/json\r\n"), answer.npos);
  EXPECT_NE(answer.find("Access-Control-Allow-Origin: *\r\n"), answer.npos);
  EXPECT_EQ(body_of(answer),
            R"({"name":"nightly","command":"echo nightly","shell":true,"executor":"","executorFlags":"",)"
            R"("taskInfoData":"","retries":4,"owner":"","ownerName":"","description":"","successCount":0,)"
            R"("errorCount":0,"lastSuccess":"","lastError":"","cpus":0.1,"disk":256.0,"mem":128.0,)"
            R"("disabled":false,"softError":false,"dataProcessingJobType":false,"errorsSinceLastSuccess":0,)"
            R"("fetch":[],"uris":[],"environmentVariables":[],"arguments":[],"highPriority":false,)"
            R"("runAsUser":"","concurrent":false,"maxCompletionTime":0,"constraints":[],)"
            R"("schedule":"R/2030-01-01T00:00:00.000Z/P1D","scheduleTimeZone":""})");
}

TEST_F(Chronos, WhatIsShownMayBeSentAgain) {
  auto given = job("a");
  given["uris"] = {"http://x/y.sh"};
  given["container"] = {{"type", "MESOS"}, {"image", "tensorflow/tensorflow:latest-gpu"}};
  given["environmentVariables"] = {{{"name", "A"}, {"value", "1"}}};
  given["epsilon"] = "PT15M";
  ASSERT_EQ(define(given), 204);
  const auto shown = get("/job/a");
  EXPECT_EQ(shown["fetch"][0]["uri"], "http://x/y.sh");
  EXPECT_EQ(shown["container"], given["container"]);
  ASSERT_EQ(define(shown), 204);
  EXPECT_EQ(get("/job/a"), shown);
}

TEST_F(Chronos, MistakesHaveTheShapeOfChronos) {
  const auto unknown = ask("GET", "/v1/scheduler/job/nobody");
  EXPECT_EQ(status_of(unknown), 400);
  EXPECT_EQ(body_of(unknown), R"({"status":"Bad Request","message":"Job 'nobody' not found"})");
  auto wrong = job("a");
  wrong["schedule"] = "every day";
  const auto refused = ask("POST", "/v1/scheduler/iso8601", wrong.dump());
  EXPECT_EQ(status_of(refused), 400);
  EXPECT_TRUE(json::parse(body_of(refused))["message"].get<std::string>().starts_with(
      "Cannot parse schedule 'every day'"));
  const auto orphan = ask("POST", "/v1/scheduler/dependency", R"({"name":"c","command":"x","parents":[]})");
  EXPECT_EQ(status_of(orphan), 500);
  EXPECT_TRUE(body_of(orphan).starts_with(
      R"({"status":"Internal Server Error","message":"Error, parent does not exist)"));
  EXPECT_EQ(status_of(ask("POST", "/v1/scheduler/iso8601", "{")), 400);
  EXPECT_EQ(status_of(ask("DELETE", "/v1/scheduler/job/nobody")), 400);
  EXPECT_EQ(status_of(ask("PUT", "/v1/scheduler/job/nobody")), 400);
}

TEST_F(Chronos, WhatThereIsNotAndWhatIsNoJsonHasAMessageToo) {
  for (const auto* path : {"/v1/scheduler/nothing", "/scheduler/nothing"}) {
    const auto answer = ask("GET", path);
    EXPECT_EQ(status_of(answer), 404);
    EXPECT_TRUE(json::parse(body_of(answer))["message"].is_string()) << answer;
  }
  EXPECT_EQ(status_of(ask("DELETE", "/v1/scheduler/jobs")), 405);
  EXPECT_EQ(body_of(ask("GET", "/v1/scheduler/jobs/")), "[]") << "a slash at the end does not count";
  EXPECT_EQ(body_of(ask("GET", "/scheduler/jobs/")), "[]");
}

TEST_F(Chronos, WhatOlderClientsSendIsTaken) {
  auto old = job("old");
  old["async"] = false;
  old["epsilon"] = "PT30M";
  for (const auto* method : {"POST", "PUT"})
    EXPECT_EQ(status_of(ask(method, "/scheduler/iso8601", old.dump())), 204);
  EXPECT_EQ(status_of(ask("PUT", "/scheduler/dependency",
                          R"({"name":"next","command":"x","parents":["old"],"async":false})")),
            204);
  EXPECT_EQ(status_of(ask("PUT", "/scheduler/job/old")), 204);
  EXPECT_EQ(status_of(ask("DELETE", "/scheduler/task/kill/old")), 204);
  for (const auto* name :
       {"99thPercentile", "98thPercentile", "95thPercentile", "75thPercentile", "median", "mean"})
    EXPECT_EQ(get(std::string("/stats/") + name),
              json({{{"jobNameLabel", "next"}, {"time", 0.0}}, {{"jobNameLabel", "old"}, {"time", 0.0}}}))
        << "they have not run";
  for (const auto* path : {"/leader", "/scheduler/leader", "/v1/scheduler/leader"})
    EXPECT_TRUE(json::parse(body_of(ask("GET", path)))["leader"].is_string());
}

TEST_F(Chronos, JobsAreFoundByPartsOfTheirNamesAndCommands) {
  for (const auto* name : {"Alpha", "beta", "gamma"}) ASSERT_EQ(define(job(name)), 204);
  const auto names = [&](const std::string& query) {
    std::vector<std::string> found;
    for (const auto& each : get("/jobs/search?" + query)) found.push_back(each["name"]);
    return found;
  };
  EXPECT_EQ(names("name=ALP"), std::vector<std::string>{"Alpha"});
  EXPECT_EQ(names("command=echo%20b"), std::vector<std::string>{"beta"});
  EXPECT_EQ(names("any=gam"), std::vector<std::string>{"gamma"});
  EXPECT_EQ(names("limit=1&offset=1"), std::vector<std::string>{"beta"});
  EXPECT_EQ(status_of(ask("GET", "/v1/scheduler/jobs/search?limit=x")), 400);
  EXPECT_EQ(get("/jobs").size(), 3U);
}

TEST_F(Chronos, RunsAreShownAndCounted) {
  ASSERT_EQ(define(job("a")), 204);
  ASSERT_EQ(define({{"name", "child"}, {"command", "x"}, {"parents", {"a"}}}), 204);
  EXPECT_EQ(ask("GET", "/v1/scheduler/graph/csv").substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_EQ(body_of(ask("GET", "/v1/scheduler/graph/csv")),
            "node,a,fresh,idle\nnode,child,fresh,idle\nlink,a,child\n");
  EXPECT_EQ(
      body_of(ask("GET", "/v1/scheduler/graph/dot")),
      "digraph G {\n  \"a\" [ label=\"a\" ];\n  \"child\" [ label=\"child\" ];\n  \"a\" -> \"child\";\n}\n");
  ASSERT_EQ(status_of(ask("PUT", "/v1/scheduler/job/a?arguments=-v%20now")), 204);
  const auto summary = get("/jobs/summary")["jobs"];
  EXPECT_EQ(summary[0], json({{"name", "a"},
                              {"status", "fresh"},
                              {"state", "1 running"},
                              {"schedule", "R/2030-01-01T00:00:00.000Z/P1D"},
                              {"parents", json::array()},
                              {"disabled", false}}));
  EXPECT_EQ(summary[1]["parents"], json({"a"}));
  EXPECT_EQ(summary[1]["schedule"], "");
  const std::string run = "ct:1700000000000:0:a:-v now";
  EXPECT_EQ(status_of(ask("POST", "/v1/scheduler/job/a/task/ct:1700000000000:0:a:-v%20now/progress",
                          R"({"numAdditionalElementsProcessed":5})")),
            204);
  const auto agent = json::parse(body_of(ask("GET", "/slaves")))["slaves"][0]["id"];
  const auto statistics = get("/job/stat/a");
  EXPECT_EQ(statistics["taskStatHistory"], json({{{"taskId", run},
                                                  {"jobName", "a"},
                                                  {"slaveId", agent},
                                                  {"startTime", "N/A"},
                                                  {"endTime", "N/A"},
                                                  {"duration", "N/A"},
                                                  {"status", "Idle"},
                                                  {"numElementsProcessed", 5}}}));
  EXPECT_EQ(statistics["histogram"]["count"], 0);
  EXPECT_EQ(get("/stats/median"),
            json({{{"jobNameLabel", "a"}, {"time", 0.0}}, {{"jobNameLabel", "child"}, {"time", 0.0}}}));
  EXPECT_EQ(status_of(ask("GET", "/v1/scheduler/stats/mode")), 400);
  EXPECT_EQ(status_of(ask("DELETE", "/v1/scheduler/task/kill/a")), 204);
  const auto marked = ask("PUT", "/v1/scheduler/job/success/a");
  EXPECT_EQ(status_of(marked), 200);
  EXPECT_EQ(body_of(marked), "marked job a as successful: true");
  EXPECT_EQ(get("/job/a")["successCount"], 1);
  EXPECT_EQ(status_of(ask("DELETE", "/v1/scheduler/job/a")), 204);
  const auto child = get("/job/child");
  EXPECT_FALSE(child.contains("parents"));
  EXPECT_EQ(child["schedule"], "R/2030-01-01T00:00:00.000Z/P1D");
}

TEST(ChronosView, TimesAndSpansAreWrittenAsChronosDoes) {
  control::ScheduleRecord record;
  record.schedule.name = "a";
  const auto at = *parse_time("2026-11-20T12:00:00.000Z");
  control::ScheduleEntry entry;
  entry.run.origin_id = "ct:1:0:a:";
  entry.started_at = at;
  entry.at = at + std::chrono::seconds(3723);
  record.history.push_back(entry);
  record.durations = {1000, 2000, 3000, 4000};
  const auto shown = json::parse(
      chronos::encode_statistics(control::restore({}, placement::Node{.name = "fake"}), record, at));
  EXPECT_EQ(shown["taskStatHistory"][0]["startTime"], "11/20/26 12:00:00");
  EXPECT_EQ(shown["taskStatHistory"][0]["duration"], "1h2m3s");
  EXPECT_EQ(shown["taskStatHistory"][0]["status"], "Success");
  EXPECT_EQ(shown["histogram"]["median"], 2000);
  EXPECT_EQ(shown["histogram"]["75thPercentile"], 3000);
  EXPECT_EQ(shown["histogram"]["99thPercentile"], 4000);
  EXPECT_EQ(shown["histogram"]["mean"], 2500);
  EXPECT_EQ(shown["taskStatHistory"][0]["slaveId"], "-S0");
  EXPECT_FALSE(shown.contains("skippedRuns"));
}

TEST(ChronosView, WhatWasLeftOutIsShown) {
  control::ScheduleRecord record;
  const auto at = *parse_time("2026-11-20T12:00:00.000Z");
  control::note_skipped(record, at, 2, at, "the run before was still going on");
  const auto shown = json::parse(
      chronos::encode_statistics(control::restore({}, placement::Node{.name = "fake"}), record, at));
  EXPECT_EQ(shown["taskStatHistory"], json::array());
  EXPECT_EQ(shown["skippedRuns"], json({{{"lastDue", "2026-11-20T12:00:00.000Z"},
                                         {"count", 2},
                                         {"reason", "the run before was still going on"}}}));
}

}  // namespace
}  // namespace drover::api
