// What frameworks and operators are told of a cluster: each node is an agent.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/mesos/testing/wire.h"

namespace drover::api::mesos {
namespace {

using api::testing::body_of;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

placement::Node node(const std::string& name, const std::string& host) {
  placement::Node node{.name = name, .milli_cpus = 40'000, .memory_bytes = 8ULL << 30};
  node.attributes = {{"hostname", {host}}, {"rack", {"r-" + name}}};
  return node;
}

class ClusterTest : public testing::WireTest {
 protected:
  ClusterTest() {
    server_.on_strand([this] { server_.daemon().state_.placed_by_others = true; });
    happens(control::event::NodesChanged{std::make_shared<const std::vector<placement::Node>>(
        std::vector{node("n1", "n1.lan"), node("n2", "n2.lan")})});
  }
  std::string agent(const std::string& host) { return server_.daemon().state_.journal_id + "-S-" + host; }
  static json offers_of(Subscription& stream) { return stream.event("OFFERS").at("offers").at("offers"); }
};

TEST_F(ClusterTest, EachNodeIsOfferedByItself) {
  auto stream = subscribe();
  const auto offers = offers_of(stream);
  ASSERT_EQ(offers.size(), 2U) << offers;
  EXPECT_EQ(offers[0].at("agent_id").at("value"), agent("n1.lan"));
  EXPECT_EQ(offers[1].at("agent_id").at("value"), agent("n2.lan"));
  EXPECT_EQ(offers[1].at("hostname"), "n2.lan");
  EXPECT_THAT(offers[1].at("attributes").dump(), HasSubstr(R"("value":"r-n2")"));
}

TEST_F(ClusterTest, WhatIsLaunchedIsOfTheAgentWhoseOfferItTook) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offers = offers_of(stream);
  call(stream, framework, accept(offers[1], {task_info(offers[1], "t", 0)}));
  EXPECT_EQ(offers_of(stream).at(0).at("agent_id").at("value"), agent("n2.lan")) << "the rest of it";
  server_.on_strand([this] {
    const auto& state = server_.daemon().state();
    ASSERT_FALSE(state.tasks.empty());
    const auto& [id, record] = *state.tasks.begin();
    ASSERT_EQ(record.task.resources.attributes.size(), 1U);
    EXPECT_EQ(record.task.resources.attributes[0].name, "hostname");
    EXPECT_THAT(record.task.resources.attributes[0].any_of, ElementsAre("n2.lan"));
  });
  happens(control::event::Placed{task(), "n2", {}});
  happens(control::event::Started{task()});
  const auto told = status(stream);
  EXPECT_EQ(told.at("state"), "TASK_STARTING") << told;
  EXPECT_EQ(told.at("agent_id").at("value"), agent("n2.lan"));
  const auto tasks = json::parse(body_of(get("/tasks")))["tasks"];
  EXPECT_EQ(tasks.at(0).at("slave_id"), agent("n2.lan"));
}

TEST_F(ClusterTest, OffersOfTwoNodesAreDeclinedTogetherButNotAccepted) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offers = offers_of(stream);
  auto both = accept(offers[0], {task_info(offers[0], "t", 0)});
  both["accept"]["offer_ids"].push_back(offers[1].at("id"));
  call(stream, framework, both);
  EXPECT_THAT(status(stream).at("message").get<std::string>(),
              HasSubstr("Aggregated offers must belong to one single agent"));
  const auto again = offers_of(stream);
  ASSERT_EQ(again.size(), 2U);
  call(stream, framework,
       {{"type", "DECLINE"},
        {"decline",
         {{"offer_ids", {again[0].at("id"), again[1].at("id")}}, {"filters", {{"refuse_seconds", 0.0}}}}}});
  EXPECT_EQ(offers_of(stream).size(), 2U);
}

TEST_F(ClusterTest, ExecutorsOfFrameworksAreRefusedInWords) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offers = offers_of(stream);
  auto info = task_info(offers[0], "t", 0);
  info.erase("command");
  info["executor"] = {{"executor_id", {{"value", "e"}}}, {"command", {{"value", "./executor"}}}};
  call(stream, framework, accept(offers[0], {info}));
  const auto told = status(stream);
  EXPECT_EQ(told.at("state"), "TASK_ERROR");
  EXPECT_EQ(told.at("agent_id").at("value"), agent("n1.lan"));
  EXPECT_THAT(told.at("message").get<std::string>(), HasSubstr("does not listen there"));
}

TEST_F(ClusterTest, OperatorsSeeEveryNode) {
  const auto names = [&](const json& slaves) {
    std::vector<std::string> found;
    for (const auto& slave : slaves) found.push_back(slave.at("hostname"));
    return found;
  };
  EXPECT_THAT(names(json::parse(body_of(get("/slaves")))["slaves"]),
              UnorderedElementsAre("n1.lan", "n2.lan"));
  EXPECT_THAT(names(json::parse(body_of(get("/slaves?slave_id=" + agent("n2.lan"))))["slaves"]),
              ElementsAre("n2.lan"));
  const auto state = json::parse(body_of(get("/state")));
  EXPECT_THAT(names(state["slaves"]), UnorderedElementsAre("n1.lan", "n2.lan"));
  EXPECT_EQ(state["activated_slaves"], 2.0);
  EXPECT_THAT(names(json::parse(body_of(get("/state-summary")))["slaves"]),
              UnorderedElementsAre("n1.lan", "n2.lan"));
  EXPECT_EQ(json::parse(body_of(get("/metrics/snapshot")))["master/cpus_total"], 80.0) << "of all";
}

}  // namespace
}  // namespace drover::api::mesos
