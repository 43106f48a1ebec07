// What programs made for Marathon send besides what its reference tells, as bytes, and what they have to get.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/marathon/endpoints.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api {
namespace {

using nlohmann::json;
using testing::body_of;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::RawConnection;
using testing::ServerFixture;
using ::testing::StartsWith;
using testing::status_of;

class MarathonClients : public ::testing::Test {
 protected:
  /// `headers`: every line of them that the request has besides its length.
  std::string say(const std::string& method, const std::string& target, const std::string& body = "",
                  const std::string& headers = "Content-Type: application/json\r\n") {
    return server_.exchange(method, target, body, headers);
  }
  json get(const std::string& target) { return json::parse(body_of(say("GET", target))); }

  ServerFixture server_;
};

TEST(PrefersText, OnlyWhereItIsWantedMoreThanJson) {
  using marathon_v2::prefers_text;
  for (const auto* accept : {"text/plain", "text/*", "text/plain;q=0.5", "application/json;q=0.1, text/plain",
                             "image/png,text/plain ; q=0.9,*/*;q=0.8", "text/plain, application/json;q=0"})
    EXPECT_TRUE(prefers_text(accept)) << accept;
  for (const auto* accept :
       {"", "*/*", "application/json", "text/plain, application/json", "text/plain, */*", "image/png",
        "text/plain;q=0", "text/plain;q=0.2, application/json;q=0.3", "text/html", "text/plain;q=x"})
    EXPECT_FALSE(prefers_text(accept)) << accept;
}

TEST_F(MarathonClients, ProxiesReadWhereAppsAreAsLines) {
  const auto lines = [&](const std::string& target, const std::string& accept) {
    const auto answer = say("GET", target, "", "Accept: " + accept + "\r\n");
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n")) << target;
    return body_of(answer);
  };
  EXPECT_EQ(lines("/v2/tasks", "text/plain"), "");
  say("POST", "/v2/apps",
      R"({"id": "/shop/web", "cmd": "x", "instances": 2, "mem": 16, "ports": [10007, 10009]})");
  say("POST", "/v2/apps", R"({"id": "/worker", "cmd": "x", "mem": 16, "ports": []})");
  EXPECT_EQ(lines("/v2/tasks", "text/plain"), "shop_web\t10007\t\nshop_web\t10009\t\nworker\t \t\n")
      << "none of them runs yet";
  server_.start_all();
  const auto tasks = get("/v2/apps/shop/web/tasks")["tasks"];
  std::string host;
  server_.on_strand([&] { host = server_.daemon().state().node; });
  const auto line = [&](int port, std::size_t index) {
    return fmt::format("shop_web\t{}\t{}:{}\t{}:{}\t\n", port, host, tasks[0]["ports"][index].get<int>(),
                       host, tasks[1]["ports"][index].get<int>());
  };
  const auto web = line(10007, 0) + line(10009, 1);
  EXPECT_EQ(lines("/v2/tasks", "text/plain"), web + "worker\t \t" + host + "\t\n");
  EXPECT_EQ(lines("/v2/apps/shop/web/tasks", "text/plain, application/json;q=0.5"), web);
  EXPECT_EQ(lines("/v2/apps/shop/*/tasks", "text/plain"), web);
  for (const auto* accept : {"Accept: */*\r\n", "Accept: application/json\r\n", ""}) {
    const auto answer = say("GET", "/v2/tasks", "", accept);
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n")) << accept;
    EXPECT_EQ(json::parse(body_of(answer))["tasks"].size(), 3U);
  }
  EXPECT_EQ(status_of(say("GET", "/v2/apps/none/tasks", "", "Accept: text/plain\r\n")), 404);
}

TEST_F(MarathonClients, ABodyWithoutATypeIsJsonAndOneOfAWrongTypeIsNot) {
  EXPECT_EQ(status_of(say("POST", "/v2/apps", R"({"id": "/a", "cmd": "x"})", "")), 201);
  EXPECT_EQ(status_of(say("PUT", "/v2/apps/a?force=true", R"({"cmd": "y"})", "Content-Type:\r\n")), 200);
  for (const auto* path : {"/v1/scheduler/iso8601", "/scheduler/iso8601"})
    EXPECT_EQ(
        status_of(say("POST", path,
                      R"({"name": "j", "command": "x", "schedule": "R/2030-01-01T00:00:00Z/P1D"})", "")),
        204);
  for (const auto* type : {"application/x-www-form-urlencoded", "text/plain", "multipart/form-data"}) {
    const auto header = fmt::format("Content-Type: {}\r\n", type);
    EXPECT_EQ(status_of(say("POST", "/v2/apps", R"({"id": "/b", "cmd": "x"})", header)), 415) << type;
    EXPECT_EQ(status_of(say("POST", "/scheduler/iso8601", "{}", header)), 415) << type;
  }
  EXPECT_EQ(status_of(say("POST", "/v1/tasks", R"({"command": ["x"]})", "")), 415) << "of our own API";
}

TEST_F(MarathonClients, TheIdOfAGroupsBodyIsSeenFromItsPath) {
  const std::string apps = R"(, "apps": [{"id": "web", "cmd": "x", "instances": 0}]})";
  EXPECT_EQ(status_of(say("PUT", "/v2/groups", R"({"id": "/ga")" + apps)), 200);
  EXPECT_EQ(status_of(say("PUT", "/v2/groups/", R"({"id": "gb")" + apps)), 200);
  EXPECT_EQ(status_of(say("PUT", "/v2/groups/gb", R"({"id": "/gb")" + apps)), 200);
  EXPECT_EQ(status_of(say("PUT", "/v2/groups/gb", R"({"id": "sub")" + apps)), 200);
  for (const auto* app : {"/ga/web", "/gb/web", "/gb/sub/web"})
    EXPECT_EQ(status_of(say("GET", std::string("/v2/apps") + app)), 200) << app;
  EXPECT_EQ(get("/v2/groups")["groups"].size(), 2U);
  EXPECT_EQ(status_of(say("PUT", "/v2/groups/gb", R"({"id": "/nope", "scaleBy": 2})")), 404);
  EXPECT_EQ(status_of(say("PUT", "/v2/groups", R"({"id": 5)" + apps)), 422);
  EXPECT_EQ(status_of(say("PUT", "/v2/groups", R"({"id": "/A B")" + apps)), 422);
}

TEST_F(MarathonClients, ThePathOfAnAppWinsOverTheIdInItsBody) {
  const auto made = say("PUT", "/v2/apps/prod/web", R"({"id": "web", "cmd": "x", "instances": 0})");
  EXPECT_EQ(status_of(made), 201) << made;
  EXPECT_THAT(made, HasSubstr("Location: /v2/apps/prod/web\r\n"));
  EXPECT_EQ(status_of(say("PUT", "/v2/apps/prod/web", R"({"id": "/test/web", "cmd": "y"})")), 200);
  EXPECT_EQ(status_of(say("PATCH", "/v2/apps/prod/web", R"({"id": "/other", "cpus": 2})")), 200);
  const auto whole = R"({"id": "web", "cmd": "z", "instances": 0})";
  EXPECT_EQ(status_of(say("PUT", "/v2/apps/prod/web?partialUpdate=false", whole)), 200);
  const auto apps = get("/v2/apps")["apps"];
  ASSERT_EQ(apps.size(), 1U);
  EXPECT_EQ(apps[0]["id"], "/prod/web");
  EXPECT_EQ(apps[0]["cmd"], "z");
}

TEST_F(MarathonClients, AGroupStaysWhenItsLastAppGoes) {
  say("PUT", "/v2/apps",
      R"([{"id": "/arr/in/one", "cmd": "x", "instances": 0}, {"id": "/arr/two", "cmd": "x", "instances": 0}])");
  EXPECT_EQ(status_of(say("DELETE", "/v2/apps/arr/in/one")), 200);
  EXPECT_EQ(status_of(say("DELETE", "/v2/apps/arr/two")), 200);
  const auto root = get("/v2/groups");
  ASSERT_EQ(root["groups"].size(), 1U) << root;
  EXPECT_EQ(root["groups"][0]["id"], "/arr");
  EXPECT_EQ(root["groups"][0]["groups"][0]["id"], "/arr/in");
  EXPECT_EQ(status_of(say("PUT", "/v2/groups/arr", R"({"scaleBy": 2})")), 200);
  EXPECT_EQ(status_of(say("DELETE", "/v2/groups/arr")), 200);
  EXPECT_EQ(status_of(say("GET", "/v2/groups/arr")), 404);
  EXPECT_EQ(status_of(say("GET", "/v2/groups/arr/in")), 404);
}

TEST_F(MarathonClients, ChangesOfGroupsAreToldByAGroup) {
  auto stream = RawConnection::to_unix(server_.socket());
  stream.send("GET /v2/events?event_type=group_change_success HTTP/1.1\r\nHost: x\r\n\r\n");
  stream.receive("\r\n\r\n");
  auto ready = RawConnection::to_unix(server_.socket());
  ready.send("GET /v2/events HTTP/1.1\r\nHost: x\r\n\r\n");
  ready.receive("event_stream_attached");
  const auto told = [&](const std::string& method, const std::string& target, const std::string& body) {
    EXPECT_LT(status_of(say(method, target, body)), 300) << target << body;
    const auto text = stream.receive("}\n\n");
    const auto begin = text.find("{");
    return json::parse(text.substr(begin, text.find("}\n\n", begin) + 1 - begin)).at("groupId");
  };
  EXPECT_EQ(told("POST", "/v2/apps", R"({"id": "/one", "cmd": "x", "instances": 0})"), "/");
  EXPECT_EQ(told("POST", "/v2/apps", R"({"id": "/s/a/one", "cmd": "x", "instances": 0})"), "/s/a");
  EXPECT_EQ(told("PUT", "/v2/groups/s",
                 R"({"groups": [{"id": "b", "apps": [{"id": "x", "cmd": "x"}, {"id": "y", "cmd": "x"}]},
                                {"id": "c", "apps": [{"id": "z", "cmd": "x"}]}]})"),
            "/s");
  EXPECT_EQ(told("DELETE", "/v2/groups/s/c?force=true", ""), "/s/c");
}

TEST_F(MarathonClients, TheMachineHasOneNameAsAnAgentEverywhere) {
  auto stream = RawConnection::to_unix(server_.socket());
  stream.send("GET /v2/events HTTP/1.1\r\nHost: x\r\n\r\n");
  stream.receive("event_stream_attached");
  const std::string agent = get("/slaves")["slaves"][0]["id"];
  EXPECT_THAT(agent, MatchesRegex("[-0-9a-f]{36}-S0"));
  say("POST", "/v2/apps", R"({"id": "/a", "cmd": "x", "mem": 16})");
  server_.start_all();
  EXPECT_EQ(get("/v2/tasks")["tasks"][0]["slaveId"], agent);
  const auto text = stream.receive("TASK_RUNNING");
  EXPECT_THAT(text, HasSubstr(fmt::format(R"("slaveId":"{}")", agent)));
  EXPECT_THAT(text, HasSubstr(fmt::format(R"("agentId":"{}")", agent)));
}

TEST_F(MarathonClients, TargetsAreTakenAsProgramsWriteThem) {
  say("POST", "/v2/apps", R"({"id": "/a", "cmd": "x", "mem": 16, "labels": {"tier": "web|db"}})");
  EXPECT_EQ(get("/v2/tasks?status[]=staging")["tasks"].size(), 1U);
  EXPECT_EQ(get("/v2/tasks?status[]=running")["tasks"].size(), 0U);
  EXPECT_EQ(get("/v2/apps?cmd=a|{b}")["apps"].size(), 0U);
  for (const auto* target :
       {"/v2//apps", "//v2/apps", "/v2/apps//", "http://anything:80/v2/apps", "http://x/v2/apps?id=a"})
    EXPECT_EQ(get(target)["apps"].size(), 1U) << target;
  EXPECT_EQ(get("/v2//apps//a")["app"]["id"], "/a");
  EXPECT_EQ(body_of(say("GET", "/v1//scheduler/jobs")), "[]");
  for (const auto* target : {"http://x", "http://x/", "http://x?a=b"})
    EXPECT_EQ(status_of(say("GET", target)), 200) << target;
  for (const auto* target : {"/v2/apps[]", "http:/v2/apps", "gopher://x/v2/apps", "/v2/apps?a=%", "*"})
    EXPECT_EQ(status_of(say("GET", target)), 400) << target;
  EXPECT_EQ(status_of(say("GET", "/v1//tasks")), 404) << "of our own API";
}

TEST_F(MarathonClients, VersionsAreMomentsAndNotTexts) {
  say("POST", "/v2/apps", R"({"id": "/g/a", "cmd": "x", "instances": 0})");
  const std::string version = get("/v2/apps/g/a")["app"]["version"];
  const auto text = version.substr(0, version.size() - 1);
  for (const auto& same : {text + "+00:00", text + "000Z"}) {
    EXPECT_EQ(get("/v2/apps/g/a/versions/" + same)["cmd"], "x") << same;
    EXPECT_EQ(get("/v2/groups/g/versions/" + same)["id"], "/g") << same;
    EXPECT_EQ(status_of(say("PUT", "/v2/apps/g/a", json({{"version", same}}).dump())), 200) << same;
  }
  EXPECT_EQ(status_of(say("GET", "/v2/apps/g/a/versions/" + text + "+01:00")), 404);
}

TEST_F(MarathonClients, TheFrontDoorSaysWhereThingsAre) {
  for (const auto* target : {"/", "/help"}) {
    const auto answer = say("GET", target);
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
    EXPECT_THAT(body_of(answer), HasSubstr("/v2/")) << target;
  }
  EXPECT_EQ(status_of(say("POST", "/", "{}")), 405);
}

}  // namespace
}  // namespace drover::api
