// What the Marathon API tells as it happens, as bytes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/testing/marathon_wire.h"

namespace drover::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::kWeb;
using testing::MarathonWire;
using ::testing::Not;
using testing::RawConnection;

TEST_F(MarathonWire, EventsComeInOrderToThoseWhoAskForThem) {
  auto all = RawConnection::to_unix(server_.socket());
  all.send("GET /v2/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
  const auto attached = all.receive("event_stream_attached\",\"remoteAddress");
  EXPECT_THAT(attached, HasSubstr("Content-Type: text/event-stream"));
  auto some = RawConnection::to_unix(server_.socket());
  some.send(
      "GET /v2/events?event_type=status_update_event&event_type=deployment_success HTTP/1.1\r\nHost: "
      "x\r\n\r\n");
  some.receive("\r\n\r\n");
  // The stream of `some` begins when it is attached: nothing tells it, so wait until the other hears of more.
  ask("POST", "/v2/apps", kWeb);
  server_.start_all();
  const auto text = all.receive("event: deployment_success");
  std::size_t at = 0;
  for (const auto* part :
       {"event: api_post_event\n", "event: group_change_success\ndata: {", "event: deployment_info\ndata: {",
        "event: deployment_step_success\n", "event: deployment_info\n", R"("taskStatus":"TASK_STARTING")",
        "event: instance_changed_event\n", R"("taskStatus":"TASK_RUNNING")",
        "event: deployment_step_success\n", "event: deployment_success\n"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in " << text;
    ++at;
  }
  EXPECT_THAT(text, Not(HasSubstr("affectedApps"))) << "the Python client knows no such field of a plan";
  const auto chosen = some.receive("event: deployment_success");
  EXPECT_THAT(chosen, HasSubstr("event: status_update_event"));
  EXPECT_THAT(chosen, Not(HasSubstr("event: deployment_info")));
  EXPECT_THAT(chosen, Not(HasSubstr("event: event_stream_attached")));
}

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(MarathonWire, InstancesTellWhereTheyAreAndHowTheyEnded) {
  auto all = RawConnection::to_unix(server_.socket());
  all.send("GET /v2/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
  all.receive("event_stream_attached\",\"remoteAddress");
  ask("POST", "/v2/apps", kWeb);
  const auto addresses = [&] {
    return ask("GET", "/v2/apps/shop/web/tasks").body()["tasks"][0]["ipAddresses"];
  };
  EXPECT_EQ(addresses(), json::array()) << "it has not started";
  server_.start_all();
  const auto here = R"([{"ipAddress":"127.0.0.1","protocol":"IPv4"}])";
  EXPECT_EQ(addresses().dump(), here);
  end_instances(control::TaskState::kRunning, 3);
  const auto failure = ask("GET", "/v2/apps/shop/web").body()["app"]["lastTaskFailure"];
  EXPECT_EQ(failure["message"], "Command exited with status 3");
  const auto text = all.receive(R"("taskStatus":"TASK_FAILED")");
  const auto last = text.substr(text.rfind("event: status_update_event"));
  EXPECT_THAT(last, HasSubstr(R"("message":"Command exited with status 3")"));
  EXPECT_THAT(last, HasSubstr(std::string(R"("ipAddresses":)") + here));
}

TEST_F(MarathonWire, AnInstanceThatNeverStartedHasNoStatus) {
  auto all = RawConnection::to_unix(server_.socket());
  all.send("GET /v2/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
  all.receive("event_stream_attached\",\"remoteAddress");
  ask("POST", "/v2/apps", R"({"id": "/wide", "cmd": "x", "instances": 2, "cpus": 40, "mem": 16})");
  server_.start_all();
  EXPECT_EQ(ask("DELETE", "/v2/apps/wide?force=true").status, 200);
  end_instances();
  const auto text = all.receive("event: app_terminated_event\n");
  EXPECT_EQ(count_of(R"("condition":"Killed")", text), 2U) << text;
  EXPECT_EQ(count_of(R"("taskStatus":"TASK_KILLED")", text), 1U) << text;
}

TEST_F(MarathonWire, EventsTellOfWhatDidNotHappenToo) {
  auto all = RawConnection::to_unix(server_.socket());
  all.send("GET /v2/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n");
  all.receive("event_stream_attached\",\"remoteAddress");
  ask("POST", "/v2/apps", R"({"id": "/a", "cmd": "x", "healthChecks": [{"protocol": "TCP"}]})");
  EXPECT_EQ(ask("PUT", "/v2/apps/a", R"({"cmd": "y"})").status, 409);
  EXPECT_EQ(ask("PUT", "/v2/apps/a?force=true", R"({"cmd": "y", "healthChecks": []})").status, 200);
  const auto deployments = ask("GET", "/v2/deployments").body();
  const auto id = deployments.at(0)["id"].get<std::string>();
  EXPECT_EQ(ask("DELETE", "/v2/deployments/" + id + "?force=true").status, 202);
  const auto text = all.receive(R"("eventType":"deployment_failed","id":")" + id);
  std::size_t at = 0;
  for (const auto* part : {"event: add_health_check_event\n", "event: group_change_failed\n",
                           R"("groupId":"/a")", "locked by the", "event: deployment_step_failure\n",
                           "event: deployment_failed\n", "event: remove_health_check_event\n",
                           "event: deployment_step_failure\n", "event: deployment_failed\n"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " in " << text;
    ++at;
  }
  EXPECT_EQ(text.find("event: add_health_check_event", at), text.npos);
}

}  // namespace
}  // namespace drover::api
