// 'drover apply' and 'app': what reaches Marathon's API, and what people read.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/files.h"
#include "cli/testing/services_fixture.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using testing::app_json;
using ::testing::ElementsAre;
using testing::FakeApi;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::Ran;

const std::string kDefinitions = DROVER_SOURCE_DIR "/tests/data/definitions/";

class ServicesTest : public testing::ServicesFixture {};

TEST_F(ServicesTest, ApplySaysWhatIsNewAndSendsTheWholeTruth) {
  const auto path = kDefinitions + "marathon-tensorflow-gpus-3.json";
  const auto text = read_file(path).value();
  after_change_ = [&] { there_is_app(app_json(text)); };
  const auto ran = ask({"apply", path});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "/tensorflow-gpus: new, 1 instance with 1 GPU\n/tensorflow-gpus: 1/1 up\n");
  EXPECT_THAT(api_.changes(), ElementsAre("PUT /v2/apps?partialUpdate=false&force=unlessUp " +
                                          json::array({json::parse(text)}).dump()));
}

TEST_F(ServicesTest, ApplyOfWhatIsThereChangesNothing) {
  const auto path = kDefinitions + "marathon-tensorflow-app-4.json";
  there_is_app(app_json(read_file(path).value()));
  const auto ran = ask({"apply", path});
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "/tensorflow-app: unchanged\n");
  EXPECT_TRUE(api_.changes().empty());
}

TEST_F(ServicesTest, ApplyNamesEachChangeAndNoSecret) {
  there_is_app(app_json(R"({"id":"web","cmd":"x","mem":64,"env":{"A":"old-secret"},
                            "container":{"type":"MESOS","docker":{"image":"a"}}})"));
  const auto path = file("web.yaml",
                         "id: web\ncmd: x\nmem: 128\ninstances: 3\nenv: {A: new-secret}\n"
                         "container: {type: MESOS, docker: {image: b}}\n");
  const auto ran = ask({"apply", "--dry-run", path});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "/web: image a → b, env.A changed, instances 1 → 3, mem 64 → 128\n");
  ASSERT_EQ(api_.changes().size(), 1u);
  EXPECT_THAT(api_.changes().front(), HasSubstr(R"(POST /v1/dry-run {"requests":[{"body":[{"cmd":"x",)"));
  EXPECT_THAT(api_.changes().front(),
              HasSubstr(R"("method":"PUT","target":"/v2/apps?partialUpdate=false&force=unlessUp"}]})"));
  const auto told = json::parse(ask({"apply", "--dry-run", "--json", path}).out);
  EXPECT_EQ(told.at("changes").at(0).at("change"), "changed");
}

TEST_F(ServicesTest, ADryRunIsRefusedAsTheChangeWouldBe) {
  const json refused = {{"message", "Object is not valid"},
                        {"details", {{{"path", "/gpus"}, {"errors", {"there are 8"}}}}}};
  const auto path = file("many.yaml", "id: web\ncmd: x\ngpus: 100\n");
  tried_ = {{"status", 422}, {"body", refused}};
  const auto dry = ask({"apply", "--dry-run", path});
  refusal_ = {422, refused.dump()};
  const auto real = ask({"apply", path});
  EXPECT_EQ(dry.status, 64);
  EXPECT_THAT(dry.err, HasSubstr("there are 8"));
  EXPECT_EQ(std::tuple(dry.status, dry.out, dry.err), std::tuple(real.status, real.out, real.err));
}

TEST_F(ServicesTest, ApplySendsNothingWhenOneFileIsWrong) {
  const auto right = file("right.yaml", "id: web\ncmd: x\n");
  const auto wrong = file("wrong.yaml", "id: web2\ncmd: x\nmem: lots\n");
  const auto ran = ask({"apply", right, wrong});
  EXPECT_EQ(ran.status, 64);
  EXPECT_THAT(ran.err, HasSubstr("wrong.yaml:3:6: /mem: expected a number"));
  EXPECT_TRUE(api_.changes().empty());
}

TEST_F(ServicesTest, ApplyTakesGroupsAndJobs) {
  const auto path = file("all.yaml",
                         "id: shop\napps:\n  - {id: web, cmd: x, instances: 2, gpus: 1}\n---\n"
                         "{name: nightly, command: x, schedule: R/2030-01-31T02:30:00Z/P1D}\n---\n"
                         "{name: after, command: x, parents: [nightly]}\n");
  const auto old = app_json(R"({"id":"/shop/old","cmd":"x"})");
  there_is("/v2/groups/shop", {{"id", "/shop"}, {"apps", {old}}, {"groups", json::array()}});
  const auto ran = ask({"apply", "--detach", "--force", path});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "/shop/web: new, 2 instances with 1 GPU each\n/shop/old: removed\n"
            "nightly: new, R/2030-01-31T02:30:00Z/P1D\nafter: new, after nightly\nd-1\n");
  const auto changes = api_.changes();
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_THAT(changes[0], HasSubstr("PUT /v2/groups/shop?force=true {"));
  EXPECT_THAT(changes[0], HasSubstr(R"("id":"/shop")"));
  EXPECT_THAT(changes[1], HasSubstr("POST /v1/scheduler/iso8601 {"));
  EXPECT_THAT(changes[2], HasSubstr("POST /v1/scheduler/dependency {"));
}

TEST_F(ServicesTest, ApplySaysWhatItWaitsForAndFailsWhenTheDeploymentDoes) {
  const auto path = file("web.yaml", "id: web\ncmd: x\ngpus: 2\n");
  looks_under_way_ = 1;
  there_is(
      "/v2/queue",
      {{"queue",
        {{{"app", {{"id", "/web"}}}, {"processedOffersSummary", {{"reasons", {"0 of 2 GPUs are free"}}}}}}}});
  there_is_app(app_json(R"({"id":"web","cmd":"x"})", {{"tasksRunning", 0}}));
  const auto ran = ask({"apply", path});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("/web: 0/1 up; waits: 0 of 2 GPUs are free\n"));
  EXPECT_THAT(ran.err, HasSubstr("/web: its deployment has ended, and not all of its instances are up"));
}

TEST_F(ServicesTest, ApplySaysHowAnInstanceFailed) {
  const auto path = file("web.yaml", "id: web\ncmd: x\nmem: 64\n");
  looks_under_way_ = 4;
  const auto failed = [&](int number) {
    const auto task = "web." + std::to_string(number);
    there_is_app(app_json(R"({"id":"web","cmd":"x"})", {{"tasksRunning", number % 2},
                                                        {"lastTaskFailure",
                                                         {{"taskId", task},
                                                          {"message", "Command exited with status 2"},
                                                          {"timestamp", "2026-01-02T00:00:00.000Z"},
                                                          {"version", "2026-01-02T00:00:00.000Z"}}}}));
    there_["/v1/tasks/" + task + "/logs?stream=stderr&tail=5"] = fmt::format("no /t{}/a.py\n", number);
  };
  failed(0);
  on_look_ = [&] { failed(std::max(looks_under_way_, 0)); };
  const auto ran = ask({"apply", path});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, MatchesRegex("/web: mem 128 → 64\n/web: 0/1 up\n"
                                    "/web: web.4 failed [0-9dhms ]+ ago: exited with status 2\n"
                                    "  \\| no /t4/a.py\n/web: 1/1 up\n"))
      << "what fails again as before, and was up before, is no news";
  const auto last = "ago: exited with status 2\n  | no /t0/a.py\n";
  EXPECT_THAT(ran.err, HasSubstr(last));
  EXPECT_THAT(ask({"app", "inspect", "web"}).out, HasSubstr(last));
}

TEST_F(ServicesTest, AFolderOfASandboxLeadsNobodyElsewhere) {
  const json file = {{"name", "../../evil"}, {"kind", "file"}, {"size", 0}};
  there_is("/v1/tasks/t/files/browse?path=r", {{"files", {file, {{"name", ".."}, {"kind", "directory"}}}}});
  const auto ran = ask({"files", "get", "t", "r", "-o", "-"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, ::testing::Not(HasSubstr("evil")));
  EXPECT_THAT(ran.err, HasSubstr("'r/../../evil' and 1 more"));
}

/// One that runs, without health checks, that was started so long ago.
json running_since(std::chrono::milliseconds ago) {
  const json task = {
      {"state", "TASK_RUNNING"}, {"startedAt", format_time(wall_clock() - ago)}, {"version", "2026"}};
  return app_json(R"({"id":"web","cmd":"x"})", {{"tasks", {task}}});
}

TEST_F(ServicesTest, ApplyTellsOfAnInstanceThatEndsRightAfterItWasUp) {
  const auto path = file("web.yaml", "id: web\ncmd: x\nmem: 64\n");
  int looks = 0;
  on_look_ = [&] {
    const json failure = {
        {"taskId", "web.1"}, {"message", "Command exited with status 2"}, {"version", "2026"}};
    there_is_app(++looks < 3 ? running_since(std::chrono::milliseconds(0))
                             : app_json(R"({"id":"web","cmd":"x"})",
                                        {{"tasksRunning", 0}, {"lastTaskFailure", failure}}));
  };
  there_is_app(running_since(std::chrono::milliseconds(0)));
  there_["/v1/tasks/web.1/logs?stream=stderr&tail=5"] = "no file a.py\n";
  const auto ran = ask({"apply", path});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err,
              HasSubstr("/web: its deployment has ended, and an instance ended right after its start\n"));
  EXPECT_THAT(ran.err, HasSubstr("exited with status 2\n  | no file a.py\n"));
  EXPECT_EQ(looks, 3);
}

TEST_F(ServicesTest, ApplyDoesNotWaitForInstancesThatHaveProvedThemselves) {
  int looks = 0;
  on_look_ = [&] { ++looks; };
  there_is_app(running_since(std::chrono::hours(1)));
  (void)ask({"apply", file("web.yaml", "id: web\ncmd: x\nmem: 64\n")});
  EXPECT_EQ(looks, 1);
}

TEST_F(ServicesTest, ApplyDoesNotTellTheTime) {
  there_is_app(app_json(R"({"id":"web","cmd":"x"})", {{"tasksRunning", 0}}));
  looks_under_way_ = 3;
  on_look_ = [&] {
    const auto left = std::to_string(looks_under_way_ + 5);
    there_["/v2/queue"] = R"({"queue":[{"app":{"id":"/web"},"delay":{"timeLeftSeconds":)" + left +
                          R"(},"processedOffersSummary":{"reasons":["the next one is started in )" + left +
                          R"( s"]}}]})";
  };
  EXPECT_EQ(ask({"app", "restart", "web"}).out, "/web: 0/1 up; waits: the next one is started in 8 s\n");
}

TEST_F(ServicesTest, WaitingHasAnEnd) {
  const auto path = file("web.yaml", "id: web\ncmd: x\nmem: 64\n");
  looks_under_way_ = 1'000;
  there_is_app(app_json(R"({"id":"web","cmd":"x"})", {{"tasksRunning", 0}}));
  const auto ran = ask({"apply", "--timeout", "600ms", path});
  EXPECT_EQ(ran.status, 75);
  EXPECT_EQ(ran.err,
            "drover: the deployment has not ended within 600ms; it goes on\ndrover: /web: 0/1 up\n"
            "drover: 'drover app inspect /web' shows how it is, 'drover app cancel /web' takes it back\n");
  EXPECT_EQ(api_.changes().size(), 1u);
  EXPECT_EQ(ask({"apply", "--timeout", "soon", path}).status, 64);
  EXPECT_EQ(api_.changes().size(), 1u);
}

TEST_F(ServicesTest, ApplySaysWhenItWasTakenBack) {
  const auto path = file("web.yaml", "id: web\ncmd: x\nmem: 64\n");
  there_is_app(app_json(R"({"id":"web","cmd":"x"})"));
  const auto ran = ask({"apply", path});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("/web: it is not as the file says"));
}

TEST_F(ServicesTest, ListsAndShowsApps) {
  there_is_app(app_json(R"({"id":"web","cmd":"serve","gpus":1,"healthChecks":[{"path":"/"}],
                            "container":{"type":"MESOS","docker":{"image":"tf"}},"portDefinitions":[{"port":0}]})",
                        {{"tasksHealthy", 1},
                         {"tasks",
                          {{{"id", "web.1"},
                            {"state", "TASK_RUNNING"},
                            {"ports", {31001}},
                            {"healthCheckResults", {{{"alive", true}}}}}}}}));
  EXPECT_THAT(ask({"app", "list"}).out, HasSubstr("/web  1/1  1 healthy     1     1      128  tf"));
  EXPECT_EQ(json::parse(ask({"app", "list", "--json"}).out).at("apps").size(), 1u);
  for (const auto* id : {"web", "/web"}) {
    const auto ran = ask({"app", "show", id});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("TASK_RUNNING  healthy  31001"));
  }
  const auto unknown = ask({"app", "show", "wab"});
  EXPECT_EQ(unknown.status, 66);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean '/web'?"));
  EXPECT_EQ(ask({"app", "show", "NOT/OK"}).status, 64);
}

TEST_F(ServicesTest, AnAppInAGroupIsFoundByItsName) {
  there_is_app(app_json(R"({"id":"/demo/web","cmd":"x"})"));
  there_is_app(app_json(R"({"id":"/wab","cmd":"x"})"));
  EXPECT_THAT(ask({"app", "show", "web"}).err, HasSubstr("did you mean '/demo/web'?"));
  there_is_app(app_json(R"({"id":"/shop/web","cmd":"x"})"));
  EXPECT_THAT(ask({"app", "show", "web"}).err, HasSubstr("did you mean '/wab'?")) << "there are two";
}

TEST_F(ServicesTest, ChangesApps) {
  there_is_app(app_json(R"({"id":"web","cmd":"x"})"));
  EXPECT_EQ(ask({"app", "scale", "web", "3", "--detach"}).out, "d-1\n");
  EXPECT_EQ(ask({"app", "restart", "web", "--force"}).status, 0);
  EXPECT_EQ(ask({"app", "remove", "web"}).status, 0);
  EXPECT_THAT(api_.changes(),
              ElementsAre(R"(PUT /v2/apps/web?force=unlessUp {"instances":3})",
                          "POST /v2/apps/web/restart?force=true", "DELETE /v2/apps/web?force=unlessUp"));
  EXPECT_EQ(ask({"app", "scale", "web", "-1"}).status, 64);
  EXPECT_EQ(ask({"app", "scale", "nobody", "1"}).status, 66);
}

TEST_F(ServicesTest, ALockedAppNamesTheDeploymentAndTheWayOut) {
  there_is_app(app_json(R"({"id":"web","cmd":"x"})"));
  refusal_ = {
      409,
      R"({"message":"App is locked by one or more deployments. Override with the option '?force=true'.",)"
      R"("deployments":[{"id":"d-0"}]})"};
  const auto ran = ask({"app", "scale", "web", "3"});
  EXPECT_EQ(ran.status, 73);
  EXPECT_EQ(ran.err,
            "drover: App is locked by one or more deployments d-0\n"
            "        wait until it has ended, or put this change in its place with --force\n");
  refusal_ = {422,
              R"({"message":"Object is not valid","details":[{"path":"/id","errors":["must be '/'"]}]})"};
  const auto invalid = ask({"app", "scale", "web", "3"});
  EXPECT_EQ(invalid.status, 64);
  EXPECT_EQ(invalid.err, "drover: Object is not valid\n  /id: must be '/'\n");
}

TEST_F(ServicesTest, GoesBackAndTellsTheHistory) {
  there_is_app(app_json(R"({"id":"web","cmd":"x","mem":64})"));
  there_is("/v2/apps/web/versions", {{"versions", {"2026-01-02T00:00:00.000Z", "2026-01-01T00:00:00.000Z"}}});
  there_is("/v2/apps/web/versions/2026-01-02T00:00:00.000Z", app_json(R"({"id":"web","cmd":"x","mem":64})"));
  there_is("/v2/apps/web/versions/2026-01-01T00:00:00.000Z", app_json(R"({"id":"web","cmd":"x"})"));
  EXPECT_THAT(ask({"app", "history", "web"}).out, HasSubstr("2026-01-02T00:00:00.000Z  *    mem 128 → 64\n"
                                                            "2026-01-01T00:00:00.000Z       the first\n"));
  EXPECT_EQ(ask({"app", "rollback", "web"}).status, 0);
  EXPECT_THAT(api_.changes(),
              ElementsAre(R"(PUT /v2/apps/web?force=unlessUp {"version":"2026-01-01T00:00:00.000Z"})"));
  EXPECT_EQ(ask({"app", "rollback", "web", "--to", "2020-01-01T00:00:00.000Z"}).status, 66);
}

TEST_F(ServicesTest, GoesBackToWhatWasDifferent) {
  there_is_app(app_json(R"({"id":"web","cmd":"x"})", {{"version", "2026-01-03T00:00:00.000Z"}}));
  json versions = json::array();
  const auto there_is_version = [&](const std::string& day, const char* definition) {
    const auto version = "2026-01-" + day + "T00:00:00.000Z";
    versions.push_back(version);
    there_is("/v2/apps/web/versions/" + version, app_json(definition, {{"version", version}}));
    there_is("/v2/apps/web/versions", {{"versions", versions}});
  };
  there_is_version("03", R"({"id":"web","cmd":"x"})");
  const auto first = ask({"app", "rollback", "web"});
  EXPECT_EQ(first.status, 73);
  EXPECT_THAT(first.err, HasSubstr("App 'web' has no version before this one"));
  there_is_version("02", R"({"id":"web","cmd":"x"})");
  EXPECT_THAT(ask({"app", "rollback", "web"}).err,
              HasSubstr("has no earlier version that says something else"));
  there_is_version("01", R"({"id":"web","cmd":"y"})");
  EXPECT_EQ(ask({"app", "rollback", "web"}).status, 0);
  EXPECT_THAT(api_.changes(),
              ElementsAre(R"(PUT /v2/apps/web?force=unlessUp {"version":"2026-01-01T00:00:00.000Z"})"));
  EXPECT_THAT(ask({"app", "history", "web"}).out,
              HasSubstr("2026-01-03T00:00:00.000Z  *     restarted, or brought again as it was\n"
                        "2026-01-02T00:00:00.000Z  same  cmd y → x\n"
                        "2026-01-01T00:00:00.000Z        the first\n"));
  const auto told = json::parse(ask({"app", "history", "web", "--json"}).out).at("versions");
  EXPECT_EQ(told.at(1).at("same_as_current"), true);
  EXPECT_EQ(told.at(2).at("same_as_current"), false);
}

TEST_F(ServicesTest, ListsDeploymentsAndTakesThemBack) {
  there_is_app(app_json(R"({"id":"web","cmd":"x"})"));
  there_is("/v2/deployments",
           {{{"id", "0a1b-2"},
             {"version", "2026-01-02T00:00:00.000Z"},
             {"affectedApps", {"/web"}},
             {"currentStep", 2},
             {"totalSteps", 2},
             {"currentActions", {{{"action", "ScaleApplication"}, {"app", "/web"}}}}},
            {{"id", "0a1b-3"}, {"version", "x"}, {"affectedApps", {"/gone"}}, {"currentActions", "x"}}});
  there_is("/v2/queue",
           {{"queue", {{{"app", {{"id", "/web"}}}, {"processedOffersSummary", {{"reasons", {"no GPU"}}}}}}}});
  EXPECT_THAT(ask({"app", "deployments"}).out,
              MatchesRegex("DEPLOYMENT +APPS +VERSION +STEP +AGE +WAITS FOR\n"
                           "0a1b-2 +/web +2026-01-02T00:00:00.000Z +2 of 2: scale /web +.*  no GPU\n"
                           "0a1b-3 .*\n"));
  const auto told = json::parse(ask({"app", "deployments", "--json"}).out).at("deployments").at(0);
  EXPECT_EQ(told.at("actions"), json::parse(R"([{"action":"scale","app":"/web"}])"));
  EXPECT_EQ(told.at("waits"), json::parse(R"([{"app":"/web","why":"no GPU"}])"));
  EXPECT_GT(told.at("age_seconds"), 0);

  for (const auto* what : {"0a1b-2", "/web", "web"})
    EXPECT_EQ(ask({"app", "cancel", what}).status, 0) << what;
  EXPECT_EQ(ask({"app", "cancel", "--detach", "web"}).out, "d-1\n");
  EXPECT_THAT(ask({"app", "cancel", "--force", "0a1b-2"}).out, HasSubstr("given up where it stood"));
  EXPECT_THAT(api_.changes(), ElementsAre("DELETE /v2/deployments/0a1b-2", "DELETE /v2/deployments/0a1b-2",
                                          "DELETE /v2/deployments/0a1b-2", "DELETE /v2/deployments/0a1b-2",
                                          "DELETE /v2/deployments/0a1b-2?force=true"));
  EXPECT_EQ(ask({"app", "cancel", "0a1b"}).status, 73) << "it may mean two";
  const auto unknown = ask({"app", "cancel", "/wob"});
  EXPECT_EQ(unknown.status, 66);
  EXPECT_THAT(unknown.err, HasSubstr("No deployment is under way for '/wob'"));
  EXPECT_EQ(ask({"complete", "bash", "--", "app", "cancel", ""}).out, "0a1b-2\n0a1b-3\n/gone\n/web\n");
}

}  // namespace
}  // namespace drover::cli
