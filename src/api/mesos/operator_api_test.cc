// The operator API v1, on the wire: each call is answered in both languages, as its messages have it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cctype>
#include <filesystem>

#include "api/mesos/operator_protocol.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/testing/operators.h"
#include "base/base64.h"

namespace drover::api::mesos {
namespace {

using api::testing::body_of;
using api::testing::status_of;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kApp;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kMasterPath = "/api/v1";
constexpr const char* kAgentPath = "/slave(1)/api/v1";

class OperatorApiTest : public testing::OperatorTest {
 protected:
  std::string raw_call(const json& body, const std::string& path = kMasterPath) {
    return ask(testing::post(body.dump(), "", path));
  }
  /// What stands in the field that is named after the call.
  json asked(const json& body, const std::string& path = kMasterPath) {
    const auto answer = raw_call(body, path);
    EXPECT_EQ(status_of(answer), 200) << answer;
    const auto value = json::parse(body_of(answer));
    EXPECT_EQ(value.at("type"), body.at("type"));
    std::string field = body.at("type");
    for (auto& c : field) c = static_cast<char>(std::tolower(c));
    return value.at(field);
  }
  json told(const std::string& type, const std::string& path = kMasterPath) {
    return asked({{"type", type}, {"get_metrics", json::object()}}, path);
  }
  std::string ask_in_protobuf(const std::string& body, const std::string& path) {
    return ask(
        fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
                    "Accept: application/x-protobuf\r\nContent-Length: {}\r\n\r\n{}",
                    path, body.size(), body));
  }
  /// An app with an instance that runs, and a framework with a task of the name "job" that does.
  void run_something(testing::Subscription& stream) {
    make_app(kApp);
    framework_id_ = id_of(stream);
    const auto offer = offer_of(stream);
    call(stream, framework_id_, accept(offer, {task_info(offer, "job", 1)}));
    server_.start_all();
  }
  /// Drover's id of the task of the app.
  std::string own_id() {
    return server_.on_strand([this] { return *server_.daemon().state().active.begin(); });
  }
  static std::vector<std::string> names_of(const google::protobuf::EnumDescriptor& types) {
    std::vector<std::string> names;
    for (int i = 0; i < types.value_count(); ++i) names.push_back(types.value(i)->name());
    return names;
  }
  static std::set<std::string> ids_of(const json& tasks) {
    std::set<std::string> ids;
    for (const auto& task : tasks) ids.insert(task.at("task_id").at("value"));
    return ids;
  }
  /// Every call that answers at all says the same in both languages.
  template <typename Call, typename Answer>
  int compare_languages(const std::string& path) {
    int answered = 0;
    for (const auto& name : names_of(*Call::Type_descriptor())) {
      if (name == "SUBSCRIBE" || name == "GET_METRICS") continue;  // has no end; has another load each time
      Call call;
      typename Call::Type type{};
      EXPECT_TRUE(Call::Type_Parse(name, &type));
      call.set_type(type);
      const auto in_json = ask(testing::post(to_json(call), "", path));
      const auto in_protobuf = ask_in_protobuf(call.SerializeAsString(), path);
      EXPECT_EQ(status_of(in_json), status_of(in_protobuf)) << name;
      if (status_of(in_json) != 200) continue;
      Answer answer;
      EXPECT_TRUE(answer.ParseFromString(body_of(in_protobuf))) << name;
      EXPECT_EQ(to_json(answer), body_of(in_json));
      EXPECT_THAT(in_protobuf, HasSubstr("Content-Type: application/x-protobuf\r\n"));
      ++answered;
    }
    return answered;
  }

  std::string framework_id_;
};

TEST_F(OperatorApiTest, BothLanguagesSayTheSame) {
  auto stream = subscribe();
  run_something(stream);
  EXPECT_EQ((compare_languages<v1::master::Call, v1::master::Response>(kMasterPath)), 16);
  EXPECT_EQ((compare_languages<v1::agent::Call, v1::agent::Response>(kAgentPath)), 12);
}

TEST_F(OperatorApiTest, TheBytesAreThoseOfMesos) {
  // Call: type GET_HEALTH. Response: type GET_HEALTH, field 2 with field 1 true.
  for (const auto* path : {"/api/v1", "/master/api/v1", "/slave(1)/api/v1"})
    EXPECT_EQ(body_of(ask_in_protobuf("\x08\x01", path)), "\x08\x01\x12\x02\x08\x01") << path;
  // GET_OPERATIONS is 33, its answer 19 in field 20; the agent has 31, and 17 in field 18.
  EXPECT_EQ(body_of(ask_in_protobuf("\x08\x21", kMasterPath)), std::string("\x08\x13\xa2\x01\x00", 5));
  EXPECT_EQ(body_of(ask_in_protobuf("\x08\x1f", kAgentPath)), std::string("\x08\x11\x92\x01\x00", 5));
  EXPECT_EQ(body_of(raw_call({{"type", "GET_HEALTH"}})),
            R"({"type":"GET_HEALTH","get_health":{"healthy":true}})");
  EXPECT_EQ(body_of(raw_call({{"type", "GET_QUOTA"}})), R"({"type":"GET_QUOTA","get_quota":{"status":{}}})");
}

TEST_F(OperatorApiTest, TheMasterSaysWhatItIs) {
  EXPECT_EQ(told("GET_VERSION").at("version_info").at("version"), read("/version").at("version"));
  EXPECT_EQ(told("GET_LOGGING_LEVEL").at("level"), 0);
  EXPECT_EQ(told("GET_FLAGS").at("flags").at(0), (json{{"name", "filter_gpu_resources"}, {"value", "true"}}));
  const auto master = told("GET_MASTER");
  EXPECT_EQ(master.at("master_info").at("id"), read("/state").at("id"));
  EXPECT_EQ(master.at("start_time"), 1'700'000'000.0);
  std::map<std::string, double> metrics;
  const auto measured = told("GET_METRICS");
  for (const auto& metric : measured.at("metrics")) metrics[metric.at("name")] = metric.at("value");
  EXPECT_EQ(metrics.at("master/gpus_total"), 2.0);
  EXPECT_EQ(metrics.size(), read("/metrics/snapshot").size());
  EXPECT_EQ(told("GET_MAINTENANCE_STATUS"), (json{{"status", json::object()}}));
  EXPECT_EQ(told("GET_MAINTENANCE_SCHEDULE"), (json{{"schedule", json::object()}}));
  EXPECT_THAT(told("GET_WEIGHTS"), IsEmpty());
}

TEST_F(OperatorApiTest, TheAgentIsDescribed) {
  const auto agent = told("GET_AGENTS").at("agents").at(0);
  const auto slave = read("/slaves").at("slaves").at(0);
  EXPECT_EQ(agent.at("agent_info").at("id").at("value"), slave.at("id"));
  EXPECT_EQ(agent.at("agent_info").at("hostname"), slave.at("hostname"));
  EXPECT_EQ(agent.at("pid"), slave.at("pid"));
  EXPECT_EQ(agent.at("active"), true);
  EXPECT_EQ(agent.at("registered_time").at("nanoseconds"), 1'700'000'000'000'000'000);
  EXPECT_EQ(agent.at("agent_info").at("attributes").at(0).dump(),
            R"({"name":"gpu_model","text":{"value":"Tesla K40m"},"type":"TEXT"})");
  EXPECT_EQ(
      agent.at("total_resources").dump(),
      R"([{"name":"ports","ranges":{"range":[{"begin":31000,"end":32000}]},"role":"*","type":"RANGES"},)"
      R"({"name":"cpus","role":"*","scalar":{"value":40.0},"type":"SCALAR"},)"
      R"({"name":"disk","role":"*","scalar":{"value":1048576.0},"type":"SCALAR"},)"
      R"({"name":"gpus","role":"*","scalar":{"value":2.0},"type":"SCALAR"},)"
      R"({"name":"mem","role":"*","scalar":{"value":8192.0},"type":"SCALAR"}])");
  EXPECT_EQ(told("GET_AGENT", kAgentPath).at("agent_info"), agent.at("agent_info"));
  EXPECT_EQ(told("GET_AGENT").at("agent_info"), agent.at("agent_info")) << "only an agent has that call";
}

TEST_F(OperatorApiTest, TasksAreThoseOfTheState) {
  auto stream = subscribe();
  run_something(stream);
  const auto state = framework("/state", "marathon").at("tasks").at(0);
  const auto tasks = told("GET_TASKS").at("tasks");
  EXPECT_EQ(ids_of(tasks), (std::set<std::string>{"job", state.at("id")}));
  for (const auto& task : tasks) {
    EXPECT_EQ(task.at("state"), "TASK_RUNNING");
    EXPECT_EQ(task.at("agent_id").at("value"), state.at("slave_id"));
    const auto& status = task.at("statuses").at(0);
    EXPECT_EQ(status.at("state"), "TASK_RUNNING");
    EXPECT_EQ(status.at("task_id"), task.at("task_id"));
    if (task.at("task_id").at("value") == "job") continue;
    EXPECT_EQ(task.at("name"), "web.prod");
    EXPECT_EQ(task.at("framework_id").at("value"), state.at("framework_id"));
    EXPECT_EQ(task.at("labels").dump(), R"({"labels":[{"key":"tier","value":"front"}]})");
    EXPECT_EQ(task.at("discovery").at("ports").at("ports").size(), 3u);
    EXPECT_EQ(task.at("user"), "root");
  }
  EXPECT_EQ(ids_of(told("GET_TASKS", kAgentPath).at("launched_tasks")), ids_of(tasks));
  const auto all = told("GET_STATE");
  EXPECT_EQ(all.at("get_tasks").at("tasks"), tasks);
  EXPECT_EQ(all.at("get_agents"), told("GET_AGENTS"));
  EXPECT_EQ(all.at("get_frameworks"), told("GET_FRAMEWORKS"));
  EXPECT_EQ(all.at("get_executors"), told("GET_EXECUTORS"));
  EXPECT_EQ(told("GET_STATE", kAgentPath).at("get_executors").at("executors").size(), 2u);
  happens(control::event::Ended{own_id(), {}});
  EXPECT_EQ(told("GET_TASKS").at("completed_tasks").size(), 1u);
  EXPECT_EQ(told("GET_TASKS", kAgentPath).at("completed_tasks").size(), 1u);
}

TEST_F(OperatorApiTest, FrameworksExecutorsAndRolesAreThoseOfTheState) {
  auto stream = subscribe();
  run_something(stream);
  const auto frameworks = told("GET_FRAMEWORKS").at("frameworks");
  ASSERT_EQ(frameworks.size(), 3u);
  const auto& test = frameworks.at(0);
  EXPECT_EQ(test.at("framework_info").at("id").at("value"), framework_id_);
  EXPECT_EQ(test.at("framework_info").at("name"), "test");
  EXPECT_EQ(test.at("framework_info").at("failover_timeout"), 60.0);
  EXPECT_EQ(test.at("framework_info").at("capabilities").at(0).at("type"), "GPU_RESOURCES");
  EXPECT_EQ(test.at("connected"), true);
  EXPECT_EQ(test.at("recovered"), false);
  EXPECT_THAT(test.at("allocated_resources").dump(), HasSubstr(R"("name":"gpus")"));
  EXPECT_EQ(told("GET_FRAMEWORKS", kAgentPath).at("frameworks").at(0).at("framework_info"),
            test.at("framework_info"));
  const auto executors = told("GET_EXECUTORS").at("executors");
  ASSERT_EQ(executors.size(), 2u);
  EXPECT_EQ(executors.at(0).at("executor_info").at("executor_id").at("value"), "job");
  EXPECT_EQ(executors.at(0).at("executor_info").at("framework_id").at("value"), framework_id_);
  const auto roles = told("GET_ROLES").at("roles");
  ASSERT_EQ(roles.size(), 1u);
  EXPECT_EQ(roles.at(0).at("name"), "*");
  EXPECT_EQ(roles.at(0).at("frameworks").size(), 3u);
}

TEST_F(OperatorApiTest, ContainersAreThoseOfTheAgent) {
  auto stream = subscribe();
  run_something(stream);
  for (const auto* path : {kAgentPath, kMasterPath}) {  // only an agent has that call
    const auto containers = told("GET_CONTAINERS", path).at("containers");
    ASSERT_EQ(containers.size(), 2u);
    const auto& job = containers.at(0);
    EXPECT_EQ(job.at("framework_id").at("value"), framework_id_);
    EXPECT_EQ(job.at("executor_id").at("value"), "job");
    EXPECT_EQ(job.at("container_status").at("container_id"), job.at("container_id"));
    EXPECT_EQ(job.at("resource_statistics").dump(),
              R"({"cpus_limit":0.5,"mem_limit_bytes":33554432,"timestamp":1700000000.0})");
  }
  EXPECT_THAT(told("GET_RESOURCE_PROVIDERS", kAgentPath), IsEmpty());
}

TEST_F(OperatorApiTest, SandboxesAreRead) {
  make_app(kApp);
  server_.start_all();
  const std::string folder = framework("/state", "marathon").at("tasks").at(0).at("directory");
  std::filesystem::create_directories(server_.daemon().sandbox_of(own_id()) + "/data");
  const std::string bytes("caf\xc3\xa9 \xff\x00 end", 12);
  server_.append(own_id(), "stdout", bytes);
  for (const auto* path : {kMasterPath, kAgentPath}) {
    const auto files = asked({{"type", "LIST_FILES"}, {"list_files", {{"path", folder}}}}, path);
    ASSERT_EQ(files.at("file_infos").size(), 2u);
    const auto& data = files.at("file_infos").at(0);
    EXPECT_EQ(data.at("path"), folder + "/data");
    EXPECT_EQ(data.at("mode").get<unsigned>() & S_IFMT, static_cast<unsigned>(S_IFDIR));
    const auto& out = files.at("file_infos").at(1);
    EXPECT_EQ(out.at("path"), folder + "/stdout");
    EXPECT_EQ(out.at("size"), bytes.size());
    EXPECT_EQ(out.at("mode").get<unsigned>() & S_IFMT, static_cast<unsigned>(S_IFREG));
    EXPECT_EQ(out.at("uid"), read("/files/browse?path=" + folder).at(1).at("uid"));
    EXPECT_GT(out.at("mtime").at("nanoseconds").get<std::int64_t>(), 1'000'000'000'000'000'000);
    const auto piece = [&](json wanted) {
      wanted["path"] = folder + "/stdout";
      const auto value = asked({{"type", "READ_FILE"}, {"read_file", std::move(wanted)}}, path);
      EXPECT_EQ(value.at("size"), bytes.size());
      return decode_base64(value.at("data").get<std::string>()).value_or("no base64");
    };
    EXPECT_EQ(piece({{"offset", 0}}), bytes) << "bytes, whatever they are";
    EXPECT_EQ(piece({{"offset", 3}, {"length", 1}}), "\xc3") << "also half a character";
    EXPECT_EQ(piece({{"offset", 0}, {"length", 0}}), "");
    EXPECT_EQ(piece({{"offset", 1000}}), "");
    EXPECT_EQ(piece({{"offset", 5}, {"length", 18446744073709551615u}}), bytes.substr(5));
  }
  EXPECT_EQ(status_of(raw_call({{"type", "LIST_FILES"}, {"list_files", {{"path", folder + "/none"}}}})), 404);
  EXPECT_EQ(status_of(raw_call({{"type", "LIST_FILES"}, {"list_files", {{"path", "/etc"}}}})), 404);
  EXPECT_EQ(status_of(raw_call({{"type", "READ_FILE"}, {"read_file", {{"path", folder}, {"offset", 0}}}})),
            400);
}

TEST_F(OperatorApiTest, AFrameworkIsTornDown) {
  auto stream = subscribe();
  const auto id = id_of(stream);
  const json body = {{"type", "TEARDOWN"}, {"teardown", {{"framework_id", {{"value", id}}}}}};
  const auto answer = raw_call(body, "/master/api/v1");
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(body_of(answer), "");
  EXPECT_EQ(told("GET_FRAMEWORKS").at("completed_frameworks").at(0).at("framework_info").at("id").at("value"),
            id);
  EXPECT_EQ(status_of(raw_call(body)), 400) << "it is gone";
}

TEST_F(OperatorApiTest, WhatIsNotDoneIsRefused) {
  for (const auto* type :
       {"RESERVE_RESOURCES", "UNRESERVE_RESOURCES", "CREATE_VOLUMES", "DESTROY_VOLUMES", "GROW_VOLUME",
        "SET_QUOTA", "UPDATE_QUOTA", "REMOVE_QUOTA", "UPDATE_WEIGHTS", "SET_LOGGING_LEVEL", "DRAIN_AGENT",
        "MARK_AGENT_GONE", "START_MAINTENANCE", "LAUNCH_NESTED_CONTAINER_SESSION", "PRUNE_IMAGES"}) {
    const auto answer = raw_call({{"type", type}});
    EXPECT_EQ(status_of(answer), 501) << type;
    EXPECT_THAT(body_of(answer), StartsWith(fmt::format("The call '{}' is not implemented here", type)));
  }
  EXPECT_EQ(status_of(raw_call({{"type", "UNKNOWN"}})), 501);
  const auto refusal = [this](const json& body, const std::string& path = kMasterPath) {
    const auto answer = raw_call(body, path);
    EXPECT_EQ(status_of(answer), 400);
    return body_of(answer);
  };
  const std::string wrong = "Failed to validate master::Call: Expecting ";
  for (const auto& body : {json::object(), json{{"type", "DANCE"}}})
    EXPECT_EQ(refusal(body), wrong + "'type' to be present");
  for (const auto* field : {"get_metrics", "list_files", "read_file", "teardown"}) {
    std::string type = field;
    for (auto& c : type) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(refusal({{"type", type}}), fmt::format("{}'{}' to be present", wrong, field));
  }
  EXPECT_EQ(refusal({{"type", "GET_AGENTS"}}, kAgentPath),
            "Failed to validate agent::Call: Expecting 'type' to be present");
  EXPECT_EQ(refusal({{"type", "READ_FILE"}, {"read_file", {{"path", "x"}}}}),
            "Failed to convert JSON into Call protobuf: Missing required fields: read_file.offset");
  EXPECT_EQ(status_of(get(kMasterPath)), 405);
  EXPECT_EQ(status_of(form(kMasterPath, "type=GET_HEALTH")), 415);
  EXPECT_EQ(status_of(ask(testing::post(R"({"type":"GET_HEALTH"})", "Accept: text/html\r\n", kMasterPath))),
            406);
}

TEST_F(OperatorApiTest, ASubscriberHearsWhatChanges) {
  make_app(kApp);
  server_.start_all();
  testing::Subscription watcher(server_.socket(), R"({"type":"SUBSCRIBE"})", "", kMasterPath);
  EXPECT_THAT(watcher.head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(watcher.head, Not(HasSubstr("Mesos-Stream-Id"))) << "it calls nothing that needs it";
  const auto first = watcher.event();
  EXPECT_EQ(first.at("type"), "SUBSCRIBED");
  EXPECT_EQ(first.at("subscribed").at("heartbeat_interval_seconds"), 15.0);
  EXPECT_EQ(first.at("subscribed").at("get_state"), told("GET_STATE"));
  EXPECT_EQ(watcher.event().at("type"), "HEARTBEAT");

  auto stream = subscribe();
  const auto id = id_of(stream);
  const auto added = watcher.event();
  EXPECT_EQ(added.at("type"), "FRAMEWORK_ADDED");
  EXPECT_EQ(added.at("framework_added").at("framework").at("framework_info").at("id").at("value"), id);
  const auto offer = offer_of(stream);
  call(stream, id, accept(offer, {task_info(offer, "job", 1)}));
  const auto task = watcher.event("TASK_ADDED").at("task_added").at("task");
  EXPECT_EQ(task.at("task_id").at("value"), "job");
  server_.start_all();
  const auto is_now = [&](const std::string& state) {
    while (true) {
      const auto update = watcher.event("TASK_UPDATED").at("task_updated");
      EXPECT_EQ(update.at("framework_id").at("value"), id) << "what ran before did not change";
      EXPECT_EQ(update.at("status").at("state"), update.at("state"));
      EXPECT_EQ(update.at("status").at("task_id").at("value"), "job");
      EXPECT_EQ(update.at("status").at("agent_id"), task.at("agent_id"));
      if (update.at("state") == state) break;
    }
  };
  is_now("TASK_RUNNING");
  auto again = json::parse(testing::kSubscribe);
  again["framework_id"] = again["subscribe"]["framework_info"]["id"] = {{"value", id}};
  auto second = subscribe(again.dump());
  EXPECT_EQ(watcher.event().at("type"), "FRAMEWORK_UPDATED");
  raw_call({{"type", "TEARDOWN"}, {"teardown", {{"framework_id", {{"value", id}}}}}});
  const auto removed = watcher.event("FRAMEWORK_REMOVED").at("framework_removed");
  EXPECT_EQ(removed.at("framework_info").at("id").at("value"), id);
}

class OperatorStrangerTest : public testing::StrangerTest {};

TEST_F(OperatorStrangerTest, OthersSeeNothingOfIt) {
  make_app(kApp);
  server_.start_all();
  auto stream = subscribe();
  const auto id = id_of(stream);
  const auto own = server_.on_strand([this] { return *server_.daemon().state().active.begin(); });
  std::filesystem::create_directories(server_.daemon().sandbox_of(own));
  server_.append(own, "stdout", "zebra");
  const std::string folder = framework("/state", "marathon").at("tasks").at(0).at("directory");
  for (const auto& [path, types] : {std::pair(kMasterPath, v1::master::Call::Type_descriptor()),
                                    std::pair(kAgentPath, v1::agent::Call::Type_descriptor())})
    for (int i = 0; i < types->value_count(); ++i) {
      const auto& type = types->value(i)->name();
      if (type == "SUBSCRIBE") continue;  // has no end
      const json body = {{"type", type},
                         {"get_metrics", json::object()},
                         {"list_files", {{"path", folder}}},
                         {"read_file", {{"path", folder + "/stdout"}, {"offset", 0}}},
                         {"teardown", {{"framework_id", {{"value", id}}}}}};
      const auto answer = ask_as_nobody("POST", path, body.dump());
      for (const std::string& word : {std::string("web.prod"), std::string("zebra"), own, id})
        EXPECT_THAT(answer, Not(HasSubstr(word))) << type;
      const std::map<std::string, int> refused = {{"LIST_FILES", 404}, {"READ_FILE", 404}, {"TEARDOWN", 400}};
      if (const auto found = refused.find(type); found != refused.end())
        EXPECT_EQ(status_of(answer), found->second) << type;
      else
        EXPECT_EQ(status_of(answer), type.starts_with("GET_") ? 200 : 501) << type;
    }
  EXPECT_EQ(framework("/state", "test").at("id"), id) << "it is still there";
}

}  // namespace
}  // namespace drover::api::mesos
