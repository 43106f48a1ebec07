// Submission of gangs, plans, queues and quotas over the API, against a daemon that keeps what it is told.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api {
namespace {

using nlohmann::json;
using testing::body_of;
using testing::status_of;

class SharingTest : public ::testing::Test {
 protected:
  std::string ask(const std::string& method, const std::string& target, const std::string& body = "") {
    return server_.exchange(method, target, body);
  }
  json told(const std::string& method, const std::string& target, const std::string& body = "") {
    const auto answer = ask(method, target, body);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return json::parse(body_of(answer));
  }
  /// The path that a refusal names.
  std::string refused(const std::string& method, const std::string& target, const std::string& body,
                      int status = 400) {
    const auto answer = ask(method, target, body);
    EXPECT_EQ(status_of(answer), status) << answer;
    return json::parse(body_of(answer)).at("error").at("path");
  }
  testing::ServerFixture server_;
};

TEST_F(SharingTest, AQueueIsWrittenWholeOrChangedInPart) {
  told("PUT", "/v1/queues/research%2Fvision", R"({"limit":{"gpus":8,"memory":"1G"},"users":["ann"]})");
  const auto changed =
      told("PATCH", "/v1/queues/research%2Fvision", R"({"limit":{"gpus":null,"cpus":4},"weight":3})");
  EXPECT_EQ(changed, json::parse(R"({"queue":"research/vision","limit":{"cpus":4.0,"memory":1073741824},
                                     "guarantee":{},"weight":3,"users":["ann"]})"));
  EXPECT_EQ(told("PUT", "/v1/queues/research%2Fvision", R"({})").at("weight"), 1);
  EXPECT_EQ(status_of(ask("DELETE", "/v1/queues/research/vision")), 204);
  EXPECT_EQ(status_of(ask("DELETE", "/v1/queues/research%2Fvision")), 404);
}

TEST_F(SharingTest, WrongQueuesNameTheField) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"([])", "/"},
      {R"({"queue":"other"})", "/queue"},
      {R"({"limit":{"gpus":-1}})", "/limit/gpus"},
      {R"({"limit":{"gpus":1e300}})", "/limit/gpus"},
      {R"({"limit":{"memory":"lots"}})", "/limit/memory"},
      {R"({"guarantee":{"gpu":1}})", "/guarantee/gpu"},
      {R"({"weight":0})", "/weight"},
      {R"({"users":"ann"})", "/users"}};
  for (const auto& [body, path] : wrong) EXPECT_EQ(refused("PUT", "/v1/queues/q", body), path) << body;
  EXPECT_TRUE(told("GET", "/v1/queues").at("queues").empty());
}

TEST_F(SharingTest, SeveralQueuesAreWrittenTogetherOrNotAtAll) {
  told("PUT", "/v1/queues/stays", "{}");
  told("PUT", "/v1/queues/a", R"({"guarantee":{"gpus":1}})");
  // The child needs more than its parent has until both are changed.
  const auto both =
      R"({"queues":[{"queue":"a/b","guarantee":{"gpus":4}},{"queue":"a","guarantee":{"gpus":4},"weight":2}]})";
  EXPECT_EQ(told("PUT", "/v1/queues", both).at("queues").at(1),
            json::parse(R"({"queue":"a","limit":{},"guarantee":{"gpus":4.0},"weight":2,"users":[]})"));
  EXPECT_EQ(told("GET", "/v1/queues").at("queues").size(), 3u);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"([])", "/"},
      {R"({})", "/queues"},
      {R"({"queues":7})", "/queues"},
      {R"({"queues":[7]})", "/queues/0"},
      {R"({"queues":[{"queue":"c"},{"queue":"d","weight":0}]})", "/queues/1/weight"},
      {R"({"queues":[{"queue":"c"},{"weight":1}]})", "/queues/1/queue"},
      {R"({"queues":[{"queue":"c"},{"queue":"c"}]})", "/queues/1"},
      {R"({"queues":[{"queue":"c"},{"queue":"d e"}]})", "/queues/1"},
      {R"({"queues":[{"queue":"c","limit":{"gpus":1},"guarantee":{"gpus":2}}]})", "/queues/0/guarantee/gpus"},
      {R"({"queues":[{"queue":"c"}],"quotas":[]})", "/quotas"}};
  for (const auto& [body, path] : wrong) EXPECT_EQ(refused("PUT", "/v1/queues", body), path) << body;
  // What is broken by it is another's.
  EXPECT_EQ(refused("PUT", "/v1/queues", R"({"queues":[{"queue":"a/c","guarantee":{"gpus":1}}]})"), "");
  EXPECT_EQ(told("GET", "/v1/queues").at("queues").size(), 3u) << "nothing of what was refused is there";
}

TEST_F(SharingTest, SeveralQuotasAreWrittenTogetherOrNotAtAll) {
  told("PUT", "/v1/quotas",
       R"({"quotas":[{"user":"ann","max_priority":5},{"namespace":"ann","limit":{"gpus":1}}]})");
  EXPECT_EQ(told("GET", "/v1/quotas").at("quotas").size(), 2u);
  EXPECT_EQ(refused("PUT", "/v1/quotas", R"({"quotas":[{"user":"bob"},{"user":"bob"}]})"), "/quotas/1");
  EXPECT_EQ(refused("PUT", "/v1/quotas", R"({"quotas":[{"user":"bob"},{"limit":{}}]})"), "/quotas/1/user");
  EXPECT_EQ(told("GET", "/v1/quotas").at("quotas").size(), 2u);
}

TEST_F(SharingTest, AQuotaIsOfAUserOrOfANamespace) {
  told("PUT", "/v1/quotas/user:ann", R"({"limit":{"gpus":2},"max_priority":10})");
  told("PATCH", "/v1/quotas/user:ann", R"({"limit":{"cpus":8}})");
  told("PUT", "/v1/quotas/namespace:team-a", R"({"limit":{"gpus":4}})");
  const auto quotas = told("GET", "/v1/quotas").at("quotas");
  ASSERT_EQ(quotas.size(), 2u);
  EXPECT_EQ(quotas[0], json::parse(R"({"user":"ann","limit":{"gpus":2.0,"cpus":8.0},"max_priority":10,
                                       "used":{"gpus":0.5,"cpus":0.0,"memory":0}})"));
  for (const auto* subject : {"ann", "group:ann", "user:", ":ann"})
    EXPECT_EQ(status_of(ask("PUT", fmt::format("/v1/quotas/{}", subject), "{}")), 400) << subject;
  EXPECT_EQ(refused("PUT", "/v1/quotas/namespace:a", R"({"max_priority":1})"), "/max_priority");
  EXPECT_EQ(refused("PUT", "/v1/quotas/user:a", R"({"max_priority":1001})"), "/max_priority");
  EXPECT_EQ(status_of(ask("DELETE", "/v1/quotas/user:ann")), 204);
}

TEST_F(SharingTest, AGangIsAcceptedWholeOrNotAtAll) {
  const auto answer = ask("POST", "/v1/tasks", R"({"command":["x"],"gpus":1,"gang":{"size":3}})");
  EXPECT_EQ(status_of(answer), 201);
  const auto gang = json::parse(body_of(answer));
  EXPECT_EQ(gang.at("gang"), "gang");
  ASSERT_EQ(gang.at("tasks").size(), 3u);
  EXPECT_EQ(gang["tasks"][2].at("task").at("gang").at("rank"), 2);
  server_.on_strand([this] {
    server_.daemon().gang_error =
        Error{ErrorKind::kInvalid, "9 GPUs are asked for", "", "/members/1/gpus/0/count"};
  });
  EXPECT_EQ(refused("POST", "/v1/tasks", R"({"command":["x"],"gpus":9,"gang":{"size":3}})"), "/gpus");
}

TEST_F(SharingTest, APlanNeedsNoCommand) {
  engine::PlanView plan;
  plan.place = 2;
  plan.reasons = {"0 of 2 GPUs are free"};
  server_.on_strand([&] { server_.daemon().plan_ = plan; });
  const auto shown = told("POST", "/v1/plan", R"({"gpus":2,"gang":{"size":2}})");
  EXPECT_EQ(shown.at("starts_now"), false);
  EXPECT_EQ(shown.at("place"), 2);
  EXPECT_EQ(shown.at("reasons"), json({"0 of 2 GPUs are free"}));
  EXPECT_EQ(server_.on_strand([this] { return server_.daemon().planned.members.size(); }), 2u);
  EXPECT_EQ(refused("POST", "/v1/plan", R"({"gpus":-1})"), "/gpus");
  EXPECT_EQ(refused("POST", "/v1/plan", R"({"gpu":1})"), "/gpu");
  server_.on_strand([this] {
    server_.daemon().plan_ =
        fail(ErrorKind::kInvalid, "this machine has no such model", "", "/gpus/0/filter/models");
  });
  EXPECT_EQ(refused("POST", "/v1/plan", R"({"gpu_model":"X"})"), "/gpu_model");
}

TEST_F(SharingTest, EveryHolderOfASharedGpuIsShown) {
  const auto gpus = told("GET", "/v1/gpus").at("gpus");
  EXPECT_EQ(gpus[1].at("holders").size(), 1u);
  EXPECT_EQ(gpus[1].at("used_by"), gpus[1].at("holders")[0]);
  EXPECT_EQ(gpus[1].at("used_by").at("milli"), 1000);
  EXPECT_TRUE(gpus[0].at("used_by").is_null());
  EXPECT_TRUE(gpus[0].at("holders").empty());
}

}  // namespace
}  // namespace drover::api
