// Calls beyond the way of one task, on the wire.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/mesos/testing/wire.h"

namespace drover::api::mesos {
namespace {

using api::testing::body_of;
using api::testing::status_of;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kSubscribe;
using testing::Subscription;
using CallsTest = testing::WireTest;

json with_operations(const json& offer, json operations) {
  return {{"type", "ACCEPT"},
          {"accept",
           {{"offer_ids", json::array({offer.at("id")})},
            {"operations", std::move(operations)},
            {"filters", {{"refuse_seconds", 0.0}}}}}};
}

json group(const json& infos, json executor) {
  return {{"type", "LAUNCH_GROUP"},
          {"launch_group", {{"executor", std::move(executor)}, {"task_group", {{"tasks", infos}}}}}};
}

TEST_F(CallsTest, OperationsAreDoneOneAfterTheOther) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  const auto reserve = [](const std::string& id) {
    json operation = {{"type", "RESERVE"}, {"reserve", {{"resources", json::array()}}}};
    if (!id.empty()) operation["id"] = {{"value", id}};
    return operation;
  };
  const auto launch = [&](const std::string& id, double gpus) {
    return json{{"type", "LAUNCH"}, {"launch", {{"task_infos", json::array({task_info(offer, id, gpus)})}}}};
  };
  const auto answer =
      call(stream, framework,
           with_operations(offer, json::array({reserve(""), reserve("r1"), launch("a", 1), launch("b", 0)})));
  EXPECT_EQ(status_of(answer), 202);
  const auto refused = stream.event("UPDATE_OPERATION_STATUS").at("update_operation_status").at("status");
  EXPECT_EQ(refused.at("operation_id").at("value"), "r1") << "one without an id is dropped in silence";
  EXPECT_EQ(refused.at("state"), "OPERATION_ERROR");
  EXPECT_THAT(refused.at("message").get<std::string>(), HasSubstr("type RESERVE are not supported"));
  for (const auto* id : {"a", "b"}) {
    const auto starting = status(stream);
    EXPECT_EQ(starting.at("task_id").at("value"), id);
    EXPECT_EQ(starting.at("state"), "TASK_STARTING");
  }

  call(stream, framework, with_operations(offer, json::array({reserve("r2")})));
  const auto dropped = stream.event("UPDATE_OPERATION_STATUS").at("update_operation_status").at("status");
  EXPECT_EQ(dropped.at("state"), "OPERATION_DROPPED");
  EXPECT_THAT(dropped.at("message").get<std::string>(), HasSubstr("is no longer valid"));

  const auto asked = call(
      stream, framework,
      {{"type", "RECONCILE_OPERATIONS"},
       {"reconcile_operations", {{"operations", json::array({{{"operation_id", {{"value", "r1"}}}}})}}}});
  EXPECT_EQ(status_of(asked), 200);
  EXPECT_EQ(body_of(asked), R"({"type":"RECONCILE_OPERATIONS","reconcile_operations":{"operation_statuses":)"
                            R"([{"operation_id":{"value":"r1"},"state":"OPERATION_UNKNOWN"}]}})");
}

TEST_F(CallsTest, WhereTheDaemonIsNotOnTcpExecutorsAreRefusedInWords) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  auto own = task_info(offer, "own", 0);
  own.erase("command");
  own["executor"] = {{"executor_id", {{"value", "e"}}}, {"command", {{"value", "./executor"}}}};
  const json custom = {
      {"type", "CUSTOM"}, {"executor_id", {{"value", "e"}}}, {"command", {{"value", "./executor"}}}};
  call(stream, framework,
       with_operations(
           offer,
           json::array({{{"type", "LAUNCH"}, {"launch", {{"task_infos", json::array({own})}}}},
                        group(json::array({task_info(offer, "x", 0)}), custom),
                        group(json::array(), {{"type", "DEFAULT"}, {"executor_id", {{"value", "e"}}}})})));
  const auto single = status(stream);
  EXPECT_EQ(single.at("state"), "TASK_ERROR");
  EXPECT_EQ(single.at("reason"), "REASON_TASK_INVALID");
  EXPECT_THAT(single.at("message").get<std::string>(), HasSubstr("start it with --listen"));
  const auto grouped = status(stream);
  EXPECT_EQ(grouped.at("reason"), "REASON_TASK_GROUP_INVALID");
  EXPECT_EQ(
      status_of(call(
          stream, framework,
          {{"type", "MESSAGE"},
           {"message",
            {{"agent_id", offer.at("agent_id")}, {"executor_id", {{"value", "e"}}}, {"data", "aGk="}}}})),
      202)
      << "a message to nobody is dropped";
}

TEST_F(CallsTest, TheEndOfAGroupIsTheEndOfItsExecutor) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework,
       with_operations(offer,
                       json::array({group(json::array({task_info(offer, "x", 1), task_info(offer, "y", 0)}),
                                          {{"type", "DEFAULT"}, {"executor_id", {{"value", "e"}}}})})));
  const auto first = status(stream);
  ASSERT_EQ(first.at("state"), "TASK_STARTING") << first.dump();
  EXPECT_EQ(first.at("executor_id").at("value"), "e");
  std::vector<std::string> ids;
  server_.on_strand([&] {
    for (const auto& [id, record] : server_.daemon().state().tasks) ids.push_back(id);
    return true;
  });
  ASSERT_EQ(ids.size(), 2u);
  happens(control::event::Ended{ids[0], {}});
  happens(control::event::Ended{ids[1], {}});
  EXPECT_EQ(stream.event("FAILURE").at("failure").dump(),
            fmt::format(R"({{"agent_id":{{"value":{}}},"executor_id":{{"value":"e"}},"status":0}})",
                        offer.at("agent_id").at("value").dump()));
}

TEST_F(CallsTest, ATaskThatMakesRoomIsGoneAndNotStartedAgain) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework, accept(offer, json::array({task_info(offer, "low", 1)})));
  const auto low = task();
  happens(control::event::Started{low, TimePoint(std::chrono::seconds(1))});
  for (const auto* state : {"TASK_STARTING", "TASK_RUNNING"}) {
    const auto update = status(stream);
    EXPECT_EQ(update.at("state"), state);
    call(stream, framework, acknowledge(update));
  }
  workload::Task high;
  high.id = "high";
  high.command = {"true"};
  high.owner_name = "root";
  high.priority = 10;
  high.resources.gpus = {{2, {}}};
  happens(control::event::Submitted{{high}});
  happens(control::event::Ended{low, {.exit_status = 143, .stopped = true}});
  const auto gone = status(stream);
  EXPECT_EQ(gone.at("task_id").at("value"), "low");
  EXPECT_EQ(gone.at("state"), "TASK_GONE") << "it is PARTITION_AWARE";
  EXPECT_EQ(gone.at("reason"), "REASON_CONTAINER_PREEMPTED");
  EXPECT_EQ(gone.at("source"), "SOURCE_AGENT");
  EXPECT_EQ(gone.at("message"), "Container preempted by work of higher priority, for 'high'");
  EXPECT_THAT(body_of(get("/tasks")), HasSubstr(R"("state":"TASK_GONE")"));

  stream.close();
  auto again = subscribe(fmt::format(
      R"({{"type":"SUBSCRIBE","framework_id":{{"value":"{0}"}},"subscribe":{{"framework_info":{{"id":)"
      R"({{"value":"{0}"}},"user":"root","name":"test","failover_timeout":60.0,"capabilities":)"
      R"([{{"type":"GPU_RESOURCES"}},{{"type":"PARTITION_AWARE"}}]}}}}}})",
      framework));
  const auto repeated = status(again);
  EXPECT_EQ(repeated.at("uuid"), gone.at("uuid")) << "until it is acknowledged";
  EXPECT_EQ(repeated.at("state"), "TASK_GONE");
  call(again, framework, acknowledge(repeated));
  EXPECT_TRUE(server_.on_strand([&] { return server_.daemon().state().framework_tasks.empty(); }));
  happens(control::event::Ended{"high", {}});
  EXPECT_TRUE(server_.on_strand([&] { return server_.daemon().state().active.empty(); }));
}

TEST_F(CallsTest, AFrameworkIsDescribedAnewWithoutANewStream) {
  auto stream =
      subscribe(R"({"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"old"}}})");
  const auto framework = id_of(stream);
  stream.event("HEARTBEAT");
  const json info = {{"user", "root"},
                     {"name", "new"},
                     {"id", {{"value", framework}}},
                     {"roles", json::array({"x", "y"})},
                     {"capabilities", {{{"type", "GPU_RESOURCES"}}, {{"type", "MULTI_ROLE"}}}}};
  const auto answer =
      call(stream, framework,
           {{"type", "UPDATE_FRAMEWORK"},
            {"update_framework", {{"framework_info", info}, {"suppressed_roles", json::array({"x"})}}}});
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(body_of(answer), "");
  const auto offer = offer_of(stream);
  EXPECT_EQ(offer.at("allocation_info").at("role"), "y") << "now it knows GPUs, and several roles";
  EXPECT_THAT(body_of(get("/frameworks")), HasSubstr(R"("name":"new")"));

  call(stream, framework, {{"type", "REVIVE"}, {"revive", {{"roles", json::array({"x"})}}}});
  call(stream, framework,
       {{"type", "DECLINE"},
        {"decline",
         {{"offer_ids", json::array({offer.at("id")})}, {"filters", {{"refuse_seconds", 3600.0}}}}}});
  EXPECT_EQ(offer_of(stream).at("allocation_info").at("role"), "x") << "what y refused is offered to x";

  auto other = info;
  other["id"]["value"] = "other";
  EXPECT_EQ(body_of(call(stream, framework,
                         {{"type", "UPDATE_FRAMEWORK"}, {"update_framework", {{"framework_info", other}}}})),
            "Failed to validate scheduler::Call: 'framework_id' differs from "
            "'update_framework.framework_info.id'");
  other = info;
  other["role"] = "x";
  EXPECT_EQ(
      status_of(call(stream, framework,
                     {{"type", "UPDATE_FRAMEWORK"}, {"update_framework", {{"framework_info", other}}}})),
      400);
}

TEST_F(CallsTest, WhatWasOfferedForARoleThatIsLeftIsRescinded) {
  auto stream = subscribe(
      R"({"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"n","roles":["x","y"],)"
      R"("capabilities":[{"type":"GPU_RESOURCES"},{"type":"MULTI_ROLE"}]}}})");
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  ASSERT_EQ(offer.at("allocation_info").at("role"), "x");
  const auto now_in = [&](const json& roles) {
    const json info = {{"user", "root"},
                       {"name", "n"},
                       {"id", {{"value", framework}}},
                       {"roles", roles},
                       {"capabilities", {{{"type", "GPU_RESOURCES"}}, {{"type", "MULTI_ROLE"}}}}};
    EXPECT_EQ(
        status_of(call(stream, framework,
                       {{"type", "UPDATE_FRAMEWORK"}, {"update_framework", {{"framework_info", info}}}})),
        200);
  };
  now_in({"z", "x"});
  now_in({"z", "y"});
  const auto rescinded = stream.event();
  EXPECT_EQ(rescinded.at("type"), "RESCIND") << "only once x is left, and before anything else is offered";
  EXPECT_EQ(rescinded.at("rescind").at("offer_id"), offer.at("id"));
  const auto next = offer_of(stream);
  EXPECT_EQ(next.at("allocation_info").at("role"), "z");
  call(stream, framework, accept(offer, json::array({task_info(offer, "t", 0)})));
  EXPECT_EQ(status(stream).at("reason"), "REASON_INVALID_OFFERS");
}

TEST_F(CallsTest, RolesThatAreSuppressedFromTheStartGetNoOffers) {
  auto stream = subscribe(
      R"({"type":"SUBSCRIBE","subscribe":{"suppressed_roles":["x"],"framework_info":{"user":"root","name":"n",)"
      R"("roles":["x"],"capabilities":[{"type":"GPU_RESOURCES"},{"type":"MULTI_ROLE"}]}}})");
  const auto framework = id_of(stream);
  auto other = subscribe();
  const auto its_id = id_of(other);
  const auto offer = offer_of(other);
  EXPECT_EQ(offer.at("framework_id").at("value"), its_id) << "it would have come first";
  call(stream, framework, {{"type", "REVIVE"}});
  call(
      other, its_id,
      {{"type", "DECLINE"},
       {"decline", {{"offer_ids", json::array({offer.at("id")})}, {"filters", {{"refuse_seconds", 60.0}}}}}});
  EXPECT_EQ(offer_of(stream).at("allocation_info").at("role"), "x");
  EXPECT_THAT(body_of(get("/roles")), HasSubstr(R"("name":"x")"));
}

TEST_F(CallsTest, UnknownTasksAreKnownToNobody) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  const json task = {{"task_id", {{"value", "t"}}}};
  auto here = task;
  here["agent_id"] = offer.at("agent_id");
  call(stream, framework, {{"type", "RECONCILE"}, {"reconcile", {{"tasks", json::array({task, here})}}}});
  auto unknown = status(stream);
  EXPECT_EQ(unknown.at("state"), "TASK_UNKNOWN");
  EXPECT_EQ(unknown.at("message"), "Reconciliation: Task is unknown");
  unknown = status(stream);
  EXPECT_EQ(unknown.at("state"), "TASK_GONE");
  EXPECT_EQ(unknown.at("message"), "Reconciliation: Task is unknown to the agent");
  EXPECT_EQ(unknown.at("source"), "SOURCE_MASTER");

  call(stream, framework, accept(offer, json::array({task_info(offer, "t", 0)})));
  EXPECT_EQ(status(stream).at("state"), "TASK_STARTING");
  call(stream, framework, {{"type", "RECONCILE"}, {"reconcile", json::object()}});
  const auto latest = status(stream);
  EXPECT_EQ(latest.at("message"), "Reconciliation: Latest task state");
  EXPECT_FALSE(latest.contains("uuid"));
  call(stream, framework,
       {{"type", "KILL"}, {"kill", {{"task_id", {{"value", "t"}}}, {"agent_id", {{"value", "other"}}}}}});
  EXPECT_FALSE(server_.on_strand([&] {
    return server_.daemon().state().tasks.begin()->second.stop_requested;
  })) << "it is not there";
  call(stream, framework, {{"type", "KILL"}, {"kill", {{"task_id", {{"value", "t"}}}}}});
  EXPECT_TRUE(
      server_.on_strand([&] { return server_.daemon().state().tasks.begin()->second.stop_requested; }));
}

TEST_F(CallsTest, CallsThatLackTheirPartAreRefused) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  for (const auto& [type, part] :
       std::map<std::string, std::string>{{"ACCEPT", "accept"},
                                          {"ACCEPT_INVERSE_OFFERS", "accept_inverse_offers"},
                                          {"DECLINE_INVERSE_OFFERS", "decline_inverse_offers"},
                                          {"ACKNOWLEDGE_OPERATION_STATUS", "acknowledge_operation_status"},
                                          {"RECONCILE_OPERATIONS", "reconcile_operations"},
                                          {"UPDATE_FRAMEWORK", "update_framework"},
                                          {"MESSAGE", "message"},
                                          {"REQUEST", "request"}}) {
    const auto answer = call(stream, framework, {{"type", type}});
    EXPECT_EQ(status_of(answer), 400);
    EXPECT_EQ(body_of(answer),
              fmt::format("Failed to validate scheduler::Call: Expecting '{}' to be present", part));
  }
  EXPECT_EQ(status_of(call(stream, framework, {{"type", "REQUEST"}, {"request", json::object()}})), 202)
      << "and ignored, as by the allocator of Mesos";
}

TEST_F(CallsTest, WhatToolsReadOfTheAgentAndOfRoles) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework, accept(offer, json::array({task_info(offer, "t1", 1)})));
  EXPECT_EQ(status(stream).at("state"), "TASK_STARTING");
  const auto agent = json::parse(body_of(get("/slave(1)/state")));
  EXPECT_EQ(agent.at("id"), offer.at("agent_id").at("value"));
  const auto executor = agent.at("frameworks").at(0).at("executors").at(0);
  EXPECT_EQ(executor.at("id"), "t1");
  EXPECT_EQ(executor.at("tasks").at(0).at("id"), "t1");
  EXPECT_EQ(executor.at("directory"), executor.at("tasks").at(0).at("directory"));
  const auto containers = json::parse(body_of(get("/containers")));
  ASSERT_EQ(containers.size(), 1u);
  EXPECT_EQ(containers.at(0).at("container_id"), executor.at("container"));
  const auto role = json::parse(body_of(get("/master/roles"))).at("roles").at(0);
  EXPECT_EQ(role.at("name"), "*");
  EXPECT_EQ(role.at("frameworks").at(0), framework);
  EXPECT_EQ(role.at("allocated").at("gpus"), 1.0);
  const auto summary = json::parse(body_of(get("/master/state-summary")));
  EXPECT_EQ(summary.at("slaves").at(0).at("TASK_STARTING"), 1);
  EXPECT_EQ(summary.at("frameworks").at(0).at("TASK_STARTING"), 1);
  EXPECT_THAT(summary.at("slaves").at(0).at("framework_ids"), ElementsAre(framework));
  EXPECT_FALSE(summary.at("frameworks").at(0).contains("tasks"));
  happens(control::event::Ended{task(), {}});
  const auto later = json::parse(body_of(get("/state-summary"))).at("frameworks").at(0);
  EXPECT_EQ(later.at("TASK_STARTING"), 0);
  EXPECT_EQ(later.at("TASK_FINISHED"), 1);
  EXPECT_EQ(later.at("slave_ids"), json::array());
  EXPECT_EQ(status_of(get("/master/health")), 200);
  EXPECT_THAT(body_of(get("/flags")), HasSubstr(R"("filter_gpu_resources":"true")"));
}

TEST_F(CallsTest, WhatATaskMayUseIsTold) {
  auto stream = subscribe();
  const auto id = id_of(stream);
  const auto offer = offer_of(stream);
  auto info = task_info(offer, "t", 1);
  info["limits"] = {{"cpus", {{"value", "Infinity"}}}, {"mem", {{"value", 1024}}}};
  call(stream, id, accept(offer, {info}));
  server_.start_all();
  const auto statistics = json::parse(body_of(get("/containers"))).at(0).at("statistics");
  EXPECT_EQ(statistics.at("mem_limit_bytes"), 1ULL << 30);
  EXPECT_FALSE(statistics.contains("cpus_limit")) << "there is none";
  const auto told = json::parse(body_of(get("/tasks"))).at("tasks").at(0);
  EXPECT_EQ(told.at("limits"), (json{{"cpus", "Infinity"}, {"mem", 1024.0}}));
  EXPECT_LT(told.at("resources").at("mem"), 1024);
}

TEST_F(CallsTest, NobodyUsesMoreThanHeAskedForWhereThatHasALimit) {
  auto stream = subscribe();
  const auto id = id_of(stream);
  const auto offer = offer_of(stream);
  control::event::RulesChanged change;
  change.rules.queues["default"] = {.path = "default", .limit = {.memory_bytes = 1ULL << 40}};
  happens(change);
  auto info = task_info(offer, "t", 1);
  info["limits"] = {{"cpus", {{"value", "Infinity"}}}, {"mem", {{"value", "Infinity"}}}};
  call(stream, id, accept(offer, {info}));
  const auto refused = status(stream);
  EXPECT_EQ(refused.at("state"), "TASK_ERROR");
  EXPECT_EQ(refused.at("message"),
            "the queue 'default' has a limit on memory, so its tasks may use no more than they ask for");
}

TEST_F(CallsTest, WhatACheckFindsIsToldWithEachUpdate) {
  auto stream = subscribe();
  const auto id = id_of(stream);
  const auto offer = offer_of(stream);
  auto info = task_info(offer, "t", 1);
  info["check"] = {{"type", "HTTP"}, {"http", {{"port", 31000}}}};
  call(stream, id, accept(offer, {info}));
  server_.start_all();
  const auto next = [&] {
    const auto told = status(stream);
    call(stream, id, acknowledge(told));
    return told;
  };
  const json nothing = {{"type", "HTTP"}, {"http", json::object()}};
  EXPECT_EQ(next().at("check_status"), nothing);
  EXPECT_EQ(next().at("check_status"), nothing);
  happens(control::event::Checked{{.task = task(), .check = control::kGeneralCheck, .status = 503}});
  const auto found = next();
  EXPECT_EQ(found.at("reason"), "REASON_TASK_CHECK_STATUS_UPDATED");
  EXPECT_EQ(found.at("check_status"), (json{{"type", "HTTP"}, {"http", {{"status_code", 503}}}}));
  call(stream, id, {{"type", "RECONCILE"}, {"reconcile", {{"tasks", json::array()}}}});
  EXPECT_EQ(status(stream).at("check_status"), found.at("check_status"));
  happens(control::event::Checked{{.task = task(), .check = control::kGeneralCheck}});
  EXPECT_EQ(next().at("check_status"), nothing) << "it does not answer any more";
}

}  // namespace
}  // namespace drover::api::mesos
