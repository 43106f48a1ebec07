// What the daemon's own parts ask as a user: the same routes, rights and mistakes as over a connection.

#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <string>

#include "api/testing/fake_daemon.h"

namespace drover::api {
namespace {

using nlohmann::json;

class AskTest : public ::testing::Test {
 protected:
  Response ask(const std::string& method, const std::string& target, const std::string& body = "") {
    std::promise<Response> answer;
    server_.on_strand([&] {
      server_.server().ask({User{.uid = 5, .name = "ann"}}, method, target, body,
                           [&](Response response) { answer.set_value(std::move(response)); });
    });
    return answer.get_future().get();
  }
  testing::ServerFixture server_{{.audit = [this](const std::string& line) { audit_ = line; }}};
  std::string audit_;
};

TEST_F(AskTest, IsAnsweredAndAuditedAsTheUsersOwnRequest) {
  const auto made = ask("POST", "/v1/tasks", R"({"command":["a"],"labels":{"from":"x=y"}})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(json::parse(made.body)["task"]["owner"], 5);
  EXPECT_EQ(server_.on_strand([&] { return audit_; }),
            "audit user=ann uid=5 method=POST path=/v1/tasks status=201");
  const auto refused = ask("POST", "/v1/tasks", R"({"command":5,"gpus":-1})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("/gpus"), std::string::npos) << refused.body;
  EXPECT_EQ(ask("GET", "/v1/nothing").status, 404);
  EXPECT_EQ(ask("GET", "/%zz").status, 400);
  EXPECT_EQ(ask("POST", "/v1/tasks", std::string(17'000'000, ' ')).status, 413);
}

TEST_F(AskTest, TasksAreFoundByALabel) {
  ask("POST", "/v1/tasks", R"({"command":["a"],"labels":{"from":"x=y"}})");
  ask("POST", "/v1/tasks", R"({"command":["a"]})");
  const auto count = [&](const std::string& query) {
    return json::parse(ask("GET", "/v1/tasks" + query).body)["tasks"].size();
  };
  EXPECT_EQ(count(""), 2U);
  EXPECT_EQ(count("?label=from%3Dx%3Dy"), 1U);
  EXPECT_EQ(count("?label=from%3Dx"), 0U);
  EXPECT_EQ(ask("GET", "/v1/tasks?label=from").status, 400);
}

}  // namespace
}  // namespace drover::api
