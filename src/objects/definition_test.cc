#include "objects/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::objects {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimePoint kNow{seconds(1'800'000'000)};

json object(json spec, json more = json::object()) {
  json made = {{"metadata", {{"namespace", "drover-ann"}, {"name", "web"}, {"uid", "U"}, {"generation", 3}}},
               {"spec", std::move(spec)}};
  made.merge_patch(more);
  return made;
}
json accepted(int generation, json more = json::object()) {
  json status = {{"conditions",
                  {{{"type", "Accepted"},
                    {"status", "True"},
                    {"reason", "Accepted"},
                    {"message", "It is as the object says"},
                    {"lastTransitionTime", format_time(kNow)},
                    {"observedGeneration", generation}}}}};
  status.merge_patch(more);
  return {{"status", status}};
}
json deleted(bool held) {
  return {{"metadata",
           {{"deletionTimestamp", "2026-01-01T00:00:00Z"},
            {"finalizers", held ? json{kFinalizer} : json::array()}}}};
}
json app(const std::string& mark, const std::string& version = "V1") {
  return {{"app",
           {{"id", "/web"},
            {"labels", {{kMarkLabel, mark}}},
            {"instances", 2},
            {"tasksRunning", 1},
            {"tasksHealthy", 1},
            {"deployments", {{{"id", "D"}}}},
            {"version", version}}}};
}
json task(const std::string& state, json more = json::object()) {
  json record = {{"state", state}, {"task", {{"id", "t-" + state}}}, {"reason", ""}};
  record.merge_patch(more);
  return record;
}
Known known_of(const Definition& definition, const json& body, int status = 200) {
  const auto known = read_known(definition, {status, body});
  EXPECT_TRUE(known);
  return known.value_or(Known{});
}
constexpr const char* kMark = "drover-ann/web/U";

TEST(Definition, IsCalledAsItsObjectUnlessItSaysAnother) {
  EXPECT_EQ(read_definition(Kind::kApp, object({{"cmd", "x"}})).id, "/web");
  EXPECT_EQ(read_definition(Kind::kApp, object({{"id", "team/api"}})).id, "/team/api");
  EXPECT_EQ(read_definition(Kind::kApp, object({{"id", std::string(5000, 'a')}})).id, "/web");
  EXPECT_EQ(read_definition(Kind::kSchedule, object({{"name", "nightly"}})).id, "nightly");
  EXPECT_EQ(read_definition(Kind::kJob, object({{"name", "train"}})).id, kMark);
  for (const auto& strange : {json(5), json("text"), json::array(), json()})
    EXPECT_EQ(read_definition(Kind::kApp, object(strange)).id, "/web") << strange;
}

TEST(Definition, WhatIsNewIsSubmittedWithItsMark) {
  const auto definition = read_definition(Kind::kApp, object({{"cmd", "x"}}));
  EXPECT_EQ(decide(definition, known_of(definition, {{"message", "none"}}, 404)).deed, Deed::kCreate);
  const auto call = submit(definition, {{"cmd", "x"}, {"labels", {{"a", "b"}}}}, true);
  EXPECT_EQ(call, (Call{"POST",
                        "/v2/apps",
                        {{"cmd", "x"}, {"id", "/web"}, {"labels", {{"a", "b"}, {kMarkLabel, kMark}}}}}));
  const auto again = submit(definition, {{"cmd", "x"}}, false);
  EXPECT_EQ(again.method + " " + again.target, "PUT /v2/apps/%2Fweb?partialUpdate=false&force=true");
  // What is no map stays, and the daemon says so.
  EXPECT_EQ(submit(definition, {{"labels", 5}}, true).body["labels"], 5);

  const auto job = read_definition(Kind::kJob, object({}));
  EXPECT_EQ(ask_for(job).target, "/v1/tasks?own=true&label=drover.dev%2Fobject%3Ddrover-ann%2Fweb%2FU");
  EXPECT_EQ(submit(job, {{"command", {"x"}}}, true).body["name"], "web");

  const auto schedule = read_definition(Kind::kSchedule, object({}));
  const auto forged = json{{"name", kMarkVariable}, {"value", "another"}};
  const auto defined =
      submit(schedule, {{"schedule", "* * * * *"}, {"environmentVariables", {forged}}}, true);
  EXPECT_EQ(defined.target, "/v1/scheduler/iso8601");
  EXPECT_EQ(defined.body["environmentVariables"], json({{{"name", kMarkVariable}, {"value", kMark}}}));
  EXPECT_EQ(submit(schedule, {{"parents", {"a"}}}, false).target, "/v1/scheduler/dependency");
}

TEST(Definition, WhatIsThereIsLeftAsItIsUntilOneOfTheTwoChanges) {
  const auto decide_at = [](int generation, const char* fingerprint) {
    const auto definition =
        read_definition(Kind::kApp, object({}, accepted(generation, {{"fingerprint", fingerprint}})));
    return decide(definition, known_of(definition, app(kMark))).deed;
  };
  EXPECT_EQ(decide_at(3, "V1"), Deed::kNothing);
  EXPECT_EQ(decide_at(2, "V1"), Deed::kChange) << "the object has changed";
  EXPECT_EQ(decide_at(3, "V0"), Deed::kChange) << "somebody has changed the app";
  const auto unwritten = read_definition(Kind::kApp, object({}));
  EXPECT_EQ(decide(unwritten, known_of(unwritten, app(kMark))).deed, Deed::kChange)
      << "killed before the status";
}

TEST(Definition, WhatOthersMadeIsNeverTouched) {
  for (const auto* mark : {"", "drover-ann/web/ANOTHER", "drover-bob/web/U"}) {
    const auto definition = read_definition(Kind::kApp, object({}));
    const auto decision = decide(definition, known_of(definition, app(mark)));
    EXPECT_EQ(decision.deed, Deed::kNothing);
    ASSERT_TRUE(decision.refusal);
    EXPECT_EQ(decision.refusal->reason, "Exists");
    const auto leaving = read_definition(Kind::kApp, object({}, deleted(true)));
    EXPECT_EQ(decide(leaving, known_of(leaving, app(mark))).deed, Deed::kRelease);
  }
}

TEST(Definition, AMarkOnWhatIsAnotherUsersIsForged) {
  const auto definition = read_definition(Kind::kApp, object({}));
  const auto known = read_known(definition, {200, app(kMark), true});
  ASSERT_TRUE(known);
  EXPECT_EQ(decide(definition, *known).refusal.value_or(Refusal{}).reason, "Exists");
}

TEST(Definition, WhatIsDeletedIsRemovedAndThenLetGo) {
  for (const auto kind : {Kind::kApp, Kind::kSchedule}) {
    auto definition = read_definition(kind, object({}, deleted(true)));
    const auto shown =
        kind == Kind::kApp
            ? app(kMark)
            : json{{"name", "web"}, {"environmentVariables", {{{"name", kMarkVariable}, {"value", kMark}}}}};
    const auto known = known_of(definition, shown);
    EXPECT_EQ(decide(definition, known).deed, Deed::kRemove);
    EXPECT_THAT(withdraw(definition, known), ElementsAre(Field(&Call::method, "DELETE")));
    EXPECT_EQ(decide(definition, known_of(definition, {}, 404)).deed, Deed::kRelease);
    definition.held = false;
    EXPECT_EQ(decide(definition, known).deed, Deed::kNothing);
  }
  const auto job = read_definition(Kind::kJob, object({}, deleted(true)));
  const auto mixed = known_of(
      job, {{"tasks", {task("running"), task("failed"), task("stopping", {{"stop_requested", true}})}}});
  EXPECT_THAT(withdraw(job, mixed), ElementsAre(Call{"POST", "/v1/tasks/t-running/stop"}));
  const auto ended = known_of(job, {{"tasks", {task("killed")}}});
  EXPECT_THAT(withdraw(job, ended), ElementsAre(Call{"DELETE", "/v1/tasks/t-killed"}));
}

TEST(Definition, AJobIsSubmittedOnce) {
  const auto decide_with = [](const json& status, const json& tasks) {
    const auto definition = read_definition(Kind::kJob, object({}, status));
    return decide(definition, known_of(definition, {{"tasks", tasks}}));
  };
  const auto none = json::array(), one = json{task("queued")};
  EXPECT_EQ(decide_with(json::object(), none).deed, Deed::kCreate);
  EXPECT_EQ(decide_with(json::object(), one).deed, Deed::kNothing) << "killed before the status was written";
  const auto ran = accepted(3, {{"phase", "Succeeded"}, {"generation", 3}});
  EXPECT_EQ(decide_with(ran, none).deed, Deed::kNothing) << "its record is forgotten, and it has run";
  const auto changed = decide_with(accepted(2, {{"phase", "Running"}, {"generation", 2}}), one);
  EXPECT_EQ(changed.deed, Deed::kNothing);
  EXPECT_EQ(changed.refusal.value_or(Refusal{}).reason, "Immutable");
}

TEST(Definition, TheStatusOfAnAppSaysHowFarItIs) {
  const auto definition = read_definition(Kind::kApp, object({}));
  auto status = status_of(definition, known_of(definition, app(kMark)), std::nullopt, kNow);
  EXPECT_EQ(status["instances"], "1/2");
  EXPECT_EQ(status["deploying"], true);
  EXPECT_EQ(status["conditions"][0]["observedGeneration"], 3);
  const auto patch = status_patch(definition, status);
  ASSERT_TRUE(patch);
  const auto after = read_definition(Kind::kApp, object({}, {{"status", (*patch)["status"]}}));
  EXPECT_FALSE(status_patch(after, status)) << "what stands there is not written again";
  auto ready = app(kMark);
  ready["app"].merge_patch({{"tasksRunning", 2}, {"deployments", json::array()}});
  status = status_of(after, known_of(after, ready), std::nullopt, kNow);
  EXPECT_THAT(events_of(after, status), ElementsAre(kube::EventText{false, "Deployed", "2/2 instances run"}));
}

TEST(Definition, ARefusedChangeKeepsWhatRunsInTheStatus) {
  const auto definition =
      read_definition(Kind::kApp, object({}, accepted(2, {{"fingerprint", "V1"}, {"old", 1}})));
  const auto refusal = read_refusal(
      {422,
       {{"message", "Object is not valid"},
        {"details",
         {{{"path", "/cpus"}, {"errors", {"error.min"}}}, {{"path", "/cmd"}, {"errors", {"is no text"}}}}}}});
  ASSERT_TRUE(refusal && *refusal);
  EXPECT_EQ(**refusal, (Refusal{"Invalid", "Object is not valid: /cpus: error.min; /cmd: is no text"}));
  const auto status = status_of(definition, known_of(definition, app(kMark, "V2")), *refusal, kNow);
  EXPECT_EQ(status["instances"], "1/2");
  EXPECT_EQ(status["fingerprint"], "V1");
  EXPECT_EQ(status["conditions"][0]["status"], "False");
  EXPECT_EQ((*status_patch(definition, status))["status"]["old"], nullptr);
  EXPECT_EQ(events_of(definition, status).at(0).reason, "Refused");
}

TEST(Definition, RefusalsAreReadFromEveryApi) {
  const auto reason_and_text = [](int status, const json& body) {
    const auto refusal = read_refusal({status, body});
    return refusal && *refusal ? (*refusal)->reason + ": " + (*refusal)->message : "none";
  };
  EXPECT_EQ(reason_and_text(200, {}), "none");
  EXPECT_EQ(reason_and_text(
                400, {{"error", {{"message", "must be at least 1"}, {"path", "/cpus"}, {"hint", "try"}}}}),
            "Invalid: /cpus: must be at least 1 (try)");
  EXPECT_EQ(reason_and_text(403, {{"message", "no"}}), "Forbidden: no");
  EXPECT_EQ(reason_and_text(409, {{"message", "there"}}), "Exists: there");
  EXPECT_EQ(reason_and_text(500, json()), "Failed: The daemon answered with the status 500");
  EXPECT_FALSE(read_refusal({503, {{"message", "away"}}}));
  EXPECT_FALSE(read_known(read_definition(Kind::kApp, object({})), {504, {}})) << "silence is not absence";
}

TEST(Definition, AJobsPhaseIsThatOfAllItsTasks) {
  const auto definition = read_definition(Kind::kJob, object({}));
  const auto status = [&](const json& tasks) {
    return status_of(definition, known_of(definition, {{"tasks", tasks}}), std::nullopt, kNow);
  };
  EXPECT_EQ(status(json::array({task("queued", {{"reason", "no GPU is free"}})}))["reason"],
            "no GPU is free");
  EXPECT_EQ(status({task("queued"), task("queued")})["phase"], "Queued");
  EXPECT_EQ(status({task("running", {{"node", "b"}}), task("starting", {{"node", "a"}})})["nodes"], "a,b");
  EXPECT_EQ(status({task("finished", {{"exit_status", 0}}), task("finished")})["phase"], "Succeeded");
  const auto failed = status({task("killed", {{"cause", "gang"}, {"exit_status", 143}}),
                              task("failed", {{"exit_status", 7}, {"finished_at", "2026-01-01T00:00:00Z"}})});
  EXPECT_EQ(failed["phase"], "Failed");
  EXPECT_EQ(failed["exitStatus"], 7);
  EXPECT_EQ(failed["finished"], "2026-01-01T00:00:00Z");
  EXPECT_EQ(status({task("lost"), task("finished")})["phase"], "Lost");
  EXPECT_EQ(events_of(definition, failed).back(),
            (kube::EventText{true, "Failed", "It ended with the status 7"}));
}

TEST(Definition, WhatAJobCameToOutlivesItsRecord) {
  const auto status_after = [](const char* phase) {
    const auto definition =
        read_definition(Kind::kJob, object({}, accepted(3, {{"phase", phase}, {"exitStatus", 7}})));
    return status_of(definition, Known{}, std::nullopt, kNow);
  };
  EXPECT_EQ(status_after("Failed")["exitStatus"], 7);
  EXPECT_EQ(status_after("Failed")["phase"], "Failed");
  EXPECT_EQ(status_after("Running")["phase"], "Lost");
}

TEST(Definition, ASchedulesStatusSaysWhenItRuns) {
  const auto definition = read_definition(Kind::kSchedule, object({}));
  const auto mark = json{{{"name", kMarkVariable}, {"value", kMark}}};
  json shown = {{"name", "web"},
                {"schedule", "R/2027-01-15T08:01:00.000Z/PT1M"},
                {"environmentVariables", mark},
                {"successCount", 4},
                {"errorCount", 1},
                {"lastSuccess", "2027-01-15T07:59:00.000Z"},
                {"lastError", ""}};
  const auto known = known_of(definition, shown);
  EXPECT_TRUE(known.ours);
  const auto status = status_of(definition, known, std::nullopt, kNow);
  EXPECT_EQ(status["next"], "2027-01-15T08:01:00.000Z");
  EXPECT_EQ(status["last"], "Succeeded");
  EXPECT_EQ(status["successes"], 4);
  // That it ran is no change of it.
  shown.merge_patch({{"schedule", "R/2027-01-15T09:01:00.000Z/PT1M"}, {"successCount", 5}});
  EXPECT_EQ(known_of(definition, shown).fingerprint, known.fingerprint);
  shown["command"] = "another";
  EXPECT_NE(known_of(definition, shown).fingerprint, known.fingerprint);
}

}  // namespace
}  // namespace drover::objects
