// Changes that are tried and not made, and the schemas, over the API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"
#include "base/json_text.h"
#include "schemas/schemas.h"

namespace drover::api {
namespace {

using nlohmann::json;
using testing::body_of;
using ::testing::HasSubstr;
using testing::status_of;

const json kWeb = {{{"id", "web"}, {"cmd", "x"}, {"mem", 64}}};

json job(const std::string& name, const json& more) {
  json value = {{"name", name}, {"command", "x"}};
  value.update(more);
  return value;
}

json request(const std::string& method, const std::string& target, const json& body) {
  return {{"method", method}, {"target", target}, {"body", body}};
}

json scheduled(const std::string& name) {
  return request("POST", "/v1/scheduler/iso8601", job(name, {{"schedule", "R/2030-01-31T02:30:00Z/P1D"}}));
}

json dependent(const std::string& name, const std::string& parent) {
  return request("POST", "/v1/scheduler/dependency", job(name, {{"parents", {parent}}}));
}

class DryRunTest : public ::testing::Test {
 protected:
  std::string ask(const json& body) { return server_.exchange("POST", "/v1/dry-run", to_text(body)); }
  json answers(const std::vector<json>& requests) {
    const auto answer = ask({{"requests", requests}});
    EXPECT_EQ(status_of(answer), 200) << answer;
    return json::parse(body_of(answer)).at("answers");
  }
  testing::ServerFixture server_;
};

TEST_F(DryRunTest, EachSeesWhatThoseBeforeItWouldChangeAndNothingIsChanged) {
  const auto told = answers({request("PUT", "/v2/apps?partialUpdate=false", kWeb), scheduled("first"),
                             dependent("second", "first")});
  EXPECT_EQ(told, json::parse(R"([{"status":200},{"status":204},{"status":204}])"));
  server_.on_strand([this] {
    EXPECT_TRUE(server_.daemon().state().services.empty());
    EXPECT_TRUE(server_.daemon().state().schedules.empty());
    EXPECT_TRUE(server_.daemon().state().deployments.empty());
  });
}

TEST_F(DryRunTest, WhateverMayBeTriedNeedsNothingButDecisions) {
  const json task = {{"command", {"true"}}};
  const auto told = answers({request("PUT", "/v2/groups/some", {{"id", "/some"}, {"apps", kWeb}}),
                             request("PUT", "/v1/queues", {{"queues", {{{"queue", "a"}}}}}),
                             request("PUT", "/v1/quotas", {{"quotas", {{{"user", "ann"}}}}}),
                             request("POST", "/v1/tasks", task),
                             request("POST", "/v1/tasks", {{"command", {"true"}}, {"gang", {{"size", 2}}}})});
  EXPECT_EQ(told,
            json::parse(R"([{"status":200},{"status":200},{"status":200},{"status":201},{"status":201}])"));
  server_.on_strand([this] { EXPECT_TRUE(server_.daemon().state().rules.queues.empty()); });
}

TEST_F(DryRunTest, TheFirstThatIsRefusedIsTheLast) {
  const auto told = answers({dependent("second", "first"), scheduled("first")});
  ASSERT_EQ(told.size(), 1u);
  const auto real =
      server_.exchange("POST", "/v1/scheduler/dependency", to_text(dependent("second", "first").at("body")));
  EXPECT_EQ(told[0].at("status"), status_of(real));
  EXPECT_EQ(told[0].at("body"), json::parse(body_of(real)));
}

TEST_F(DryRunTest, RefusalsAreThoseOfTheApiItself) {
  const json wrong = {{{"id", "web"}, {"cmd", "x"}, {"mem", "lots"}}};
  const auto told = answers({request("PUT", "/v2/apps", wrong)});
  EXPECT_EQ(told.at(0).at("body"), json::parse(body_of(server_.exchange("PUT", "/v2/apps", to_text(wrong)))));
  EXPECT_EQ(status_of(server_.exchange("PUT", "/v2/apps", to_text(kWeb))), 200);
  const auto locked = answers({request("PUT", "/v2/apps", {{{"id", "web"}, {"cmd", "y"}}})});
  EXPECT_EQ(locked.at(0).at("status"), 409) << "its deployment is under way";
}

TEST_F(DryRunTest, OnlyDefinitionsCanBeTried) {
  for (const auto& [method, target] :
       {std::pair("DELETE", "/v2/apps/web"), std::pair("PUT", "/v1/queues/q"),
        std::pair("POST", "/v1/tasks/a/stop"), std::pair("POST", "/v1/dry-run"),
        std::pair("PUT", "/v2/groups"), std::pair("PUT", "no path")}) {
    const auto answer = ask({{"requests", {request(method, target, {})}}});
    EXPECT_EQ(status_of(answer), 400) << target;
    EXPECT_EQ(json::parse(body_of(answer)).at("error").at("path"), "/requests/0/target");
  }
  EXPECT_EQ(status_of(ask({{"requests", std::vector<json>(1001, scheduled("a"))}})), 400);
  EXPECT_EQ(status_of(ask({{"request", json::array()}})), 400);
  EXPECT_EQ(status_of(ask({{"requests", 7}})), 400);
  EXPECT_EQ(answers({}), json::array());
}

TEST_F(DryRunTest, SchemasAreThereForEverybody) {
  for (const auto& [name, text] : schemas::texts()) {
    const auto answer = server_.exchange("GET", "/v1/schemas/" + std::string(name) + ".json");
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_THAT(answer, HasSubstr("application/schema+json"));
    EXPECT_EQ(body_of(answer), text);
  }
  EXPECT_EQ(status_of(server_.exchange("GET", "/v1/schemas/pod.json")), 404);
  EXPECT_EQ(status_of(server_.exchange("GET", "/v1/schemas/task")), 404);
}

}  // namespace
}  // namespace drover::api
