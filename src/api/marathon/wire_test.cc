// The Marathon API as bytes: paths, statuses, headers and bodies, over a daemon whose containers never come.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/testing/marathon_wire.h"

namespace drover::api {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kWeb;
using testing::MarathonWire;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(MarathonWire, WhatCannotBeKeptIsRefusedAndIsNotThere) {
  const auto fill = [this](bool full) {
    server_.on_strand([&] { server_.daemon().journal_is_full = full; });
  };
  fill(true);
  const auto refused = ask("POST", "/v2/apps", kWeb);
  EXPECT_EQ(refused.status, 507) << refused.text;
  EXPECT_THAT(refused.message(), HasSubstr("The disk is full"));
  fill(false);
  EXPECT_EQ(ask("GET", "/v2/apps//shop/web").status, 404);
  ASSERT_EQ(ask("POST", "/v2/apps", kWeb).status, 201);
  fill(true);
  EXPECT_EQ(ask("DELETE", "/v2/apps//shop/web").status, 507);
  EXPECT_EQ(ask("PUT", "/v2/groups?force=true", R"({"id": "/shop", "apps": []})").status, 507);
  fill(false);
  EXPECT_EQ(ask("GET", "/v2/apps//shop/web").status, 200);
}

TEST_F(MarathonWire, AnAppIsCreatedShownAndDeleted) {
  const auto created = ask("POST", "/v2/apps", kWeb);
  ASSERT_EQ(created.status, 201) << created.text;
  EXPECT_THAT(created.head, HasSubstr("\r\nLocation: /v2/apps/shop/web\r\n"));
  EXPECT_EQ(created.body()["tasksRunning"], 0);
  EXPECT_EQ(created.body()["tasks"], json::array());
  const std::string deployment = created.body()["deployments"][0]["id"];
  EXPECT_THAT(created.head, HasSubstr("\r\nMarathon-Deployment-Id: " + deployment + "\r\n"));
  EXPECT_THAT(created.head, HasSubstr("\r\nCache-Control: no-cache, no-store, must-revalidate\r\n"));
  EXPECT_THAT(created.head, HasSubstr("\r\nX-Marathon-Leader: "));

  EXPECT_EQ(ask("POST", "/v2/apps", kWeb).message(), "An app with id [/shop/web] already exists.");
  EXPECT_EQ(ask("POST", "/v2/apps", kWeb).status, 409);
  server_.start_all();
  for (const auto* path : {"/v2/apps/shop/web", "/v2/apps//shop/web", "/v2/apps/shop/web?embed=app.counts"}) {
    const auto app = ask("GET", path).body()["app"];
    EXPECT_EQ(app["id"], "/shop/web") << path;
    EXPECT_EQ(app["tasksRunning"], 1);
    EXPECT_EQ(app["deployments"], json::array());
    ASSERT_THAT(app["tasks"], SizeIs(1));
    const auto& task = app["tasks"][0];
    EXPECT_THAT(task["id"].get<std::string>(), MatchesRegex("shop_web\\.instance-[-0-9a-f]{36}\\._app\\.1"));
    EXPECT_EQ(task["state"], "TASK_RUNNING");
    EXPECT_EQ(task["appId"], "/shop/web");
    EXPECT_EQ(task["version"], app["version"]);
    EXPECT_EQ(task["servicePorts"], json({10000}));
  }
  EXPECT_EQ(ask("GET", "/v2/tasks").body()["tasks"], ask("GET", "/v2/apps/shop/web/tasks").body()["tasks"]);
  EXPECT_THAT(ask("GET", "/v2/tasks?status=staging").body()["tasks"], IsEmpty());
  EXPECT_THAT(ask("GET", "/v2/apps/shop/*/tasks").body()["tasks"], SizeIs(1));
  EXPECT_THAT(ask("GET", "/v2/apps/shop/*").body()["*"], SizeIs(1));

  const auto deleted = ask("DELETE", "/v2/apps//shop/web");
  EXPECT_EQ(deleted.status, 200);
  EXPECT_THAT(deleted.body()["deploymentId"].get<std::string>(), SizeIs(36));
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web").message(), "App '/shop/web' does not exist");
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web").status, 404);
  EXPECT_THAT(ask("GET", "/v2/deployments").body(), SizeIs(1)) << "its instance has not ended";
  end_instances();
  EXPECT_THAT(ask("GET", "/v2/deployments").body(), IsEmpty());
}

TEST_F(MarathonWire, ChangesWaitForDeploymentsUnlessForced) {
  const std::string first = ask("POST", "/v2/apps", kWeb).body()["deployments"][0]["id"];
  const auto locked = ask("PUT", "/v2/apps/shop/web", R"({"instances": 2})");
  EXPECT_EQ(locked.status, 409);
  EXPECT_EQ(
      locked.body(),
      json({{"message",
             "App is locked by one or more deployments. Override with the option '?force=true'. View details "
             "at '/v2/deployments/<DEPLOYMENT_ID>'."},
            {"deployments", {{{"id", first}}}}}));
  const auto deployment = ask("GET", "/v2/deployments").body()[0];
  EXPECT_EQ(deployment["affectedApps"], json({"/shop/web"}));
  EXPECT_EQ(deployment["steps"],
            json::parse(R"([{"actions": [{"action": "StartApplication", "app": "/shop/web"}]},
                                                 {"actions": [{"action": "ScaleApplication", "app": "/shop/web"}]}])"));
  EXPECT_EQ(deployment["currentStep"], 2);
  EXPECT_EQ(deployment["totalSteps"], 2);
  EXPECT_EQ(deployment["currentActions"][0]["readinessCheckResults"], json::array());
  later();
  const auto forced = ask("PUT", "/v2/apps/shop/web?force=true", R"({"instances": 2})");
  EXPECT_EQ(forced.status, 200) << forced.text;
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web").body()["app"]["version"], forced.body()["version"]);

  EXPECT_EQ(ask("DELETE", "/v2/deployments/nothing").message(), "DeploymentPlan nothing does not exist");
  const auto cancelled =
      ask("DELETE", "/v2/deployments/" + forced.body()["deploymentId"].get<std::string>() + "?force=true");
  EXPECT_EQ(cancelled.status, 202);
  EXPECT_EQ(cancelled.text, "");
}

TEST_F(MarathonWire, WhatIsNotUpMakesWayForThoseWhoSaySo) {
  const auto web = [](int instances) { return json{{"instances", instances}, {"cmd", "x"}}.dump(); };
  ask("POST", "/v2/apps", kWeb);
  EXPECT_EQ(ask("PUT", "/v2/apps/shop/web", web(2)).status, 409);
  EXPECT_EQ(ask("PUT", "/v2/apps/shop/web?force=unlessUp", web(2)).status, 200);
  EXPECT_EQ(ask("POST", "/v2/apps/shop/web/restart?force=unlessUp").status, 200);
  EXPECT_EQ(ask("PUT", "/v2/groups/shop?force=unlessUp", R"({"scaleBy": 2})").status, 200);
  end_instances();
  server_.start_all();
  EXPECT_THAT(ask("GET", "/v2/deployments").body(), IsEmpty());
  EXPECT_EQ(ask("PUT", "/v2/apps/shop/web", R"({"instances": 50})").status, 200);
  EXPECT_EQ(ask("PUT", "/v2/apps/shop/web?force=unlessUp", web(3)).status, 409) << "four are up";
  EXPECT_EQ(ask("DELETE", "/v2/apps/shop/web?force=unlessUp").status, 409);
  EXPECT_EQ(ask("DELETE", "/v2/apps/shop/web").status, 200) << "as Marathon does";
}

TEST_F(MarathonWire, VersionsCanBeReadAndComeBack) {
  const std::string before = ask("POST", "/v2/apps", kWeb).body()["version"];
  server_.start_all();
  later();
  const auto updated = ask("PATCH", "/v2/apps/shop/web", R"({"env": {"A": "1"}})");
  ASSERT_EQ(updated.status, 200) << updated.text;
  const std::string after = updated.body()["version"];
  EXPECT_EQ(ask("GET", "/v2/apps//shop/web/versions").body()["versions"], json({after, before}));
  EXPECT_EQ(ask("GET", "/v2/apps//shop/web/versions/" + before).body()["env"], json::object());
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web/versions/2001-01-01T00:00:00.000Z").message(),
            "App '/shop/web' does not exist in version 2001-01-01T00:00:00.000Z");
  later();
  const auto body = json({{"version", before}}).dump();
  EXPECT_EQ(ask("PUT", "/v2/apps/shop/web?force=true", body).status, 200);
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web").body()["app"]["env"], json::object());
  const auto mixed = ask("PUT", "/v2/apps/shop/web", R"({"version": "x", "cpus": 1})");
  EXPECT_EQ(mixed.status, 422);
  EXPECT_THAT(mixed.text, HasSubstr("The 'version' field may only be combined with the 'id' field."));
}

TEST_F(MarathonWire, PutCreatesAndPatchDoesNot) {
  const auto created = ask("PUT", "/v2/apps/a", R"({"cmd": "x"})");
  EXPECT_EQ(created.status, 201) << created.text;
  EXPECT_THAT(created.body()["version"].get<std::string>(), SizeIs(24));
  EXPECT_EQ(ask("PATCH", "/v2/apps/b", R"({"cmd": "x"})").status, 404);
  const auto list =
      ask("PUT", "/v2/apps?force=true", R"([{"id": "/a", "cpus": 2}, {"id": "/c", "cmd": "y"}])");
  EXPECT_EQ(list.status, 200) << list.text;
  EXPECT_THAT(ask("GET", "/v2/apps").body()["apps"], SizeIs(2));
  EXPECT_EQ(ask("GET", "/v2/apps/a").body()["app"]["cmd"], "x") << "an update keeps what it does not name";
  EXPECT_EQ(ask("PUT", "/v2/apps/a?force=true&partialUpdate=false",
                R"({"args": ["z"], "container": {"type": "MESOS",
      "docker": {"image": "i"}}})")
                .status,
            200);
  EXPECT_FALSE(ask("GET", "/v2/apps/a").body()["app"].contains("cmd"));
  EXPECT_EQ(ask("PATCH", "/v2/apps", R"([{"id": "/nobody", "cpus": 2}])").status, 404);
  const auto wrong = ask("PUT", "/v2/apps?force=true", R"([{"id": "/a", "cpus": "2"}])");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_THAT(wrong.text, HasSubstr(R"("path":"/(0)/cpus")"));
}

TEST_F(MarathonWire, ListsAreFiltered) {
  ask("POST", "/v2/apps", R"({"id": "/shop/web", "cmd": "serve Pages", "labels": {"tier": "web"}})");
  ask("POST", "/v2/apps", R"({"id": "/shop/db", "cmd": "store", "labels": {"tier": "db"}})");
  const auto ids = [&](const std::string& query) {
    std::vector<std::string> found;
    const auto body = ask("GET", "/v2/apps?" + query).body();
    for (const auto& app : body["apps"]) found.push_back(app["id"]);
    return found;
  };
  EXPECT_THAT(ids(""), ElementsAre("/shop/db", "/shop/web"));
  EXPECT_THAT(ids("id=WEB"), ElementsAre("/shop/web"));
  EXPECT_THAT(ids("cmd=pages"), ElementsAre("/shop/web"));
  EXPECT_THAT(ids("label=tier%3D%3Ddb"), ElementsAre("/shop/db"));
  EXPECT_THAT(ids("label=tier+in+(db,web)&id=db"), ElementsAre("/shop/db"));
  EXPECT_EQ(ask("GET", "/v2/apps?label==").status, 422);
  for (const auto* embed : {"embed=apps.tasks&embed=apps.taskStats", "embed=app.tasks&embed=app.taskStats",
                            "embed=app.tasks,apps.taskStats"}) {
    const auto app = ask("GET", std::string("/v2/apps?") + embed).body()["apps"][0];
    EXPECT_TRUE(app.contains("tasks")) << "the Python client asks for app.tasks of many, too: " << embed;
    EXPECT_TRUE(app.contains("taskStats")) << embed;
  }
  EXPECT_FALSE(ask("GET", "/v2/apps").body()["apps"][0].contains("tasks"));
  EXPECT_TRUE(ask("GET", "/v2/apps/shop/db?embed=apps.taskStats").body()["app"].contains("taskStats"));
}

TEST_F(MarathonWire, InstancesAreKilledAndReplacedOrNot) {
  ask("POST", "/v2/apps", R"({"id": "/a", "cmd": "x", "instances": 3, "cpus": 0.1, "mem": 16})");
  server_.start_all();
  const std::string task = ask("GET", "/v2/apps/a/tasks").body()["tasks"][0]["id"];
  EXPECT_EQ(ask("DELETE", "/v2/apps/a/tasks?scale=true&wipe=true").message(),
            "You cannot use scale and wipe at the same time.");
  EXPECT_EQ(ask("DELETE", "/v2/apps/a/tasks?scale=true&wipe=true").status, 400);
  EXPECT_EQ(ask("DELETE", "/v2/apps/a/tasks/nothing").message(), "Task 'nothing' does not exist");
  EXPECT_THAT(ask("DELETE", "/v2/apps/a/tasks?host=elsewhere").body()["tasks"], IsEmpty());
  const auto killed = ask("DELETE", "/v2/apps/a/tasks/" + task);
  EXPECT_EQ(killed.body()["task"]["id"], task) << killed.text;
  EXPECT_EQ(ask("GET", "/v2/apps/a").body()["app"]["instances"], 3);
  end_instances();
  server_.start_all();
  const std::string of_go = ask("GET", "/v2/apps/a/tasks").body()["tasks"][2]["id"];
  const auto mangled = "/v2/apps/a." + of_go.substr(2, of_go.find("._app") - 2) + "./app/tasks/" + of_go;
  EXPECT_EQ(ask("DELETE", mangled).body()["task"]["id"], of_go) << "as the Go client writes it: " << mangled;
  EXPECT_EQ(ask("DELETE", "/v2/apps/b./app/tasks/" + of_go).status, 404);
  end_instances();
  server_.start_all();
  const std::string another = ask("GET", "/v2/apps/a/tasks").body()["tasks"][0]["id"];
  const auto scaled = ask("POST", "/v2/tasks/delete?scale=true", json({{"ids", {another}}}).dump());
  EXPECT_EQ(scaled.status, 200) << scaled.text;
  EXPECT_TRUE(scaled.body().contains("deploymentId"));
  EXPECT_EQ(ask("GET", "/v2/apps/a").body()["app"]["instances"], 2);
  EXPECT_THAT(ask("POST", "/v2/tasks/delete", R"({"ids": ["x"]})").message(),
              HasSubstr("Invalid task id 'x'. ["));
  EXPECT_EQ(ask("POST", "/v2/tasks/delete", R"({"ids": ["x"]})").status, 400);
  EXPECT_EQ(ask("POST", "/v2/tasks/delete", "{}").status, 422);
}

TEST_F(MarathonWire, GroupsHoldAppsAndGroups) {
  const auto created = ask("POST", "/v2/groups", R"({"id": "/shop", "groups": [
      {"id": "db", "apps": [{"id": "main", "cmd": "x"}]},
      {"id": "web", "dependencies": ["/shop/db"], "apps": [{"id": "front", "cmd": "y"}]}]})");
  ASSERT_EQ(created.status, 201) << created.text;
  EXPECT_THAT(created.head, HasSubstr("\r\nLocation: /v2/groups/shop\r\n"));
  EXPECT_THAT(created.head, HasSubstr("Marathon-Deployment-Id: "));
  const auto steps = ask("GET", "/v2/deployments").body()[0]["steps"];
  EXPECT_EQ(steps[1]["actions"], json::parse(R"([{"action": "ScaleApplication", "app": "/shop/db/main"}])"));
  EXPECT_EQ(steps[2]["actions"],
            json::parse(R"([{"action": "ScaleApplication", "app": "/shop/web/front"}])"));
  EXPECT_EQ(ask("POST", "/v2/groups", R"({"id": "/shop"})").message(),
            "Group /shop is already created. Use PUT to change this group.");
  EXPECT_EQ(ask("POST", "/v2/groups/shop/db/main", "{}").message(),
            "An app with the path /shop/db/main already exists.");
  const auto root = ask("GET", "/v2/groups").body();
  EXPECT_EQ(root["id"], "/");
  EXPECT_EQ(root["groups"][0]["id"], "/shop");
  EXPECT_EQ(root["groups"][0]["groups"][1]["dependencies"], json({"/shop/db"}));
  EXPECT_EQ(root["groups"][0]["groups"][1]["apps"][0]["id"], "/shop/web/front");
  EXPECT_EQ(ask("GET", "/v2/groups/nope").message(), "Group '/nope' does not exist");
  EXPECT_THAT(ask("GET", "/v2/groups//shop/versions").body(), Not(IsEmpty()));
  EXPECT_FALSE(ask("GET", "/v2/groups/shop?embed=group.groups").body().contains("apps"));
  later();
  const auto dry = ask("PUT", "/v2/groups/shop?dryRun=true&force=true", R"({"groups": [{"id": "db"}]})");
  EXPECT_EQ(dry.body()["steps"][0]["actions"][0]["action"], "StopApplication") << dry.text;
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web/front").status, 200) << "nothing was done";
  EXPECT_EQ(ask("PUT", "/v2/groups/shop?force=true", R"({"scaleBy": 3})").status, 200);
  EXPECT_EQ(ask("GET", "/v2/apps/shop/db/main").body()["app"]["instances"], 3);
  EXPECT_EQ(ask("PUT", "/v2/groups/shop?force=true", R"({"groups": [{"id": "db"}]})").status, 200);
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web/front").status, 404);
  EXPECT_EQ(ask("GET", "/v2/apps/shop/db/main").status, 200);
  EXPECT_EQ(ask("DELETE", "/v2/groups/shop?force=true").status, 200);
  EXPECT_EQ(ask("GET", "/v2/groups/shop").status, 404);
}

TEST_F(MarathonWire, GroupsHaveVersionsThatCanBeReadAndComeBack) {
  const std::string first =
      ask("POST", "/v2/groups", R"({"id": "/shop", "apps": [{"id": "web", "cmd": "x", "instances": 2}]})")
          .body()["version"];
  later();
  const std::string second =
      ask("PUT", "/v2/groups/shop?force=true",
          R"({"apps": [{"id": "web", "cmd": "y"}], "groups": [{"id": "db", "apps": [{"id": "a", "cmd": "z"}]}]})")
          .body()["version"];
  EXPECT_EQ(ask("GET", "/v2/groups/shop/versions").body(), json({second, first}));
  const auto then = ask("GET", "/v2/groups//shop/versions/" + first).body();
  EXPECT_EQ(then["version"], first);
  ASSERT_THAT(then["apps"], SizeIs(1));
  EXPECT_EQ(then["apps"][0]["cmd"], "x");
  EXPECT_EQ(then["apps"][0]["instances"], 2);
  EXPECT_EQ(then["apps"][0]["version"], first);
  const auto now = ask("GET", "/v2/groups/shop/versions/" + second).body();
  EXPECT_EQ(now["apps"][0]["cmd"], "y");
  EXPECT_EQ(now["groups"][0]["apps"][0]["id"], "/shop/db/a");
  EXPECT_EQ(ask("GET", "/v2/groups/shop/versions/2001-01-01T00:00:00.000Z").message(),
            "Group '/shop' does not exist in version 2001-01-01T00:00:00.000Z");
  EXPECT_EQ(ask("GET", "/v2/groups/shop/versions/x").status, 404);
  later();
  EXPECT_EQ(ask("PUT", "/v2/groups/shop?force=true", json({{"version", first}}).dump()).status, 200);
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web").body()["app"]["cmd"], "x");
  EXPECT_EQ(ask("GET", "/v2/apps/shop/db/a").status, 404) << "it was not there";
}

TEST_F(MarathonWire, AppsThatStayDependOnWhatTheirGroupComesToDependOn) {
  ask("POST", "/v2/apps", R"({"id": "/db", "cmd": "x", "instances": 0})");
  ask("POST", "/v2/groups",
      R"({"id": "/shop", "apps": [{"id": "web", "cmd": "x", "dependencies": ["/cache"]}]})");
  const auto dependencies = [&] {
    std::vector<std::string> found;
    server_.on_strand([&] { found = server_.daemon().state().services.at("/shop/web").target.dependencies; });
    return found;
  };
  server_.start_all();
  later();
  EXPECT_EQ(ask("PUT", "/v2/groups/shop", R"({"dependencies": ["/db"]})").status, 200);
  EXPECT_THAT(dependencies(), ElementsAre("/cache", "/db"));
  EXPECT_THAT(ask("GET", "/v2/deployments").body(), IsEmpty()) << "nothing is started anew for it";
  EXPECT_EQ(ask("GET", "/v2/apps/shop/web").body()["app"]["dependencies"], json({"/cache"}));
  later();
  EXPECT_EQ(ask("PUT", "/v2/groups/shop", R"({"dependencies": []})").status, 200);
  EXPECT_THAT(dependencies(), ElementsAre("/cache"));
}

TEST_F(MarathonWire, TheQueueSaysWhyAnAppWaits) {
  ask("POST", "/v2/apps", R"({"id": "/big", "cmd": "x", "gpus": 64})");
  const auto queue = ask("GET", "/v2/queue").body()["queue"];
  ASSERT_THAT(queue, SizeIs(1));
  EXPECT_EQ(queue[0]["app"]["id"], "/big");
  EXPECT_EQ(queue[0]["count"], 1);
  EXPECT_EQ(queue[0]["delay"], json({{"timeLeftSeconds", 0}, {"overdue", true}}));
  const auto& summary = queue[0]["processedOffersSummary"];
  EXPECT_THAT(summary["reasons"], Not(IsEmpty()));
  for (const auto& reason : summary["rejectSummaryLastOffers"])
    EXPECT_EQ(reason["declined"], reason["reason"] == "InsufficientGpus" ? 1 : 0) << reason;
  EXPECT_FALSE(queue[0].contains("lastUnusedOffers"));
  EXPECT_TRUE(ask("GET", "/v2/queue?embed=lastUnusedOffers").body()["queue"][0].contains("lastUnusedOffers"));
  EXPECT_EQ(ask("DELETE", "/v2/queue//big/delay").status, 204);
  EXPECT_EQ(ask("DELETE", "/v2/queue//none/delay").message(), "Application /none not found in tasks queue.");
}

TEST_F(MarathonWire, WrongRequestsAreRefusedInMarathonsWords) {
  const auto broken = ask("POST", "/v2/apps", "{nonsense");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(broken.message(), "Invalid JSON");
  EXPECT_TRUE(broken.body()["details"].is_string());
  EXPECT_EQ(ask("POST", "/v2/apps").message(), "Please specify data in JSON format");
  const auto wrong = ask("POST", "/v2/apps", R"({"id": 1, "cmd": "x"})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(wrong.text,
            R"({"details":[{"errors":["error.expected.jsstring"],"path":"/id"}],"message":"Invalid JSON"})");
  EXPECT_EQ(ask("POST", "/v2/apps", R"({"id": "/a", "cmd": "x", "dependencies": ["/b"]})").status, 201);
  const auto circle = ask("POST", "/v2/apps", R"({"id": "/b", "cmd": "x", "dependencies": ["/a"]})");
  EXPECT_EQ(circle.status, 422) << circle.text;
  const auto many = ask("POST", "/v2/apps", R"({"id": "/many", "cmd": "x", "gpus": 99})");
  EXPECT_EQ(many.status, 422);
  EXPECT_EQ(many.body()["details"][0]["path"], "/gpus") << many.text;
  const auto inside = ask("POST", "/v2/apps", R"({"id": "/a/c", "cmd": "x"})");
  EXPECT_EQ(inside.status, 422);
  EXPECT_EQ(inside.body()["details"][0]["path"], "/id");
  EXPECT_EQ(ask("GET", "/v2/nonsense").status, 404);
  EXPECT_THAT(ask("GET", "/v2/nonsense").message(), HasSubstr("/v2/nonsense"));
  EXPECT_EQ(ask("HEAD", "/v2/pods").status, 404);
  EXPECT_EQ(ask("GET", "/v2/eventSubscriptions").status, 404);
  EXPECT_EQ(ask("DELETE", "/v2/info").status, 405);
  EXPECT_EQ(ask("GET", "/v2/deployments/").status, 200) << "a slash at the end does not count";
  EXPECT_EQ(ask("POST", "/v2/apps/", R"({"id": "/slash", "cmd": "x"})").status, 201);
}

TEST_F(MarathonWire, TellsAboutItself) {
  EXPECT_EQ(ask("GET", "/ping").text, "pong");
  EXPECT_EQ(ask("GET", "/ping", "", "Accept: application/json\r\n").text, "\"pong\"");
  EXPECT_EQ(ask("GET", "/ping", "", "Accept: image/png\r\n").status, 204);
  const auto info = ask("GET", "/v2/info").body();
  EXPECT_EQ(info["name"], "marathon");
  EXPECT_EQ(info["elected"], true);
  EXPECT_EQ(info["leader"], ask("GET", "/v2/leader").body()["leader"]);
  EXPECT_EQ(ask("GET", "/v2/plugins").body(), json({{"plugins", json::array()}}));
  EXPECT_EQ(ask("GET", "/logging").text, "ROOT info\n");
  EXPECT_EQ(ask("GET", "/metrics").body()["gauges"]["marathon.apps.active.gauge"]["value"], 0);
}

}  // namespace
}  // namespace drover::api
