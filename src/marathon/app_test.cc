#include "marathon/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace drover::marathon {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

App decoded(const json& body, const Options& options = {}) {
  auto app = decode_app(body, options);
  if (!app) throw std::runtime_error(to_json_text(app.error()));
  return std::move(*app);
}

Refusal refused(const json& body, const Options& options = {}) {
  const auto app = decode_app(body, options);
  if (app) throw std::runtime_error("accepted: " + app->service.definition);
  return app.error();
}

json shown(const App& app) {
  return json::parse(show(app.service));
}

json file(const std::string& name) {
  std::ifstream stream(std::string(DROVER_SOURCE_DIR) + "/tests/data/definitions/" + name);
  return json::parse(stream);
}

TEST(App, HasTheDefaultsOfMarathon) {
  const auto app = decoded({{"id", "sleep"}, {"cmd", "sleep 1000"}});
  EXPECT_EQ(shown(app), json::parse(R"({
    "id": "/sleep", "cmd": "sleep 1000", "instances": 1, "cpus": 1, "mem": 128, "disk": 0, "gpus": 0,
    "acceptedResourceRoles": ["*"], "role": "*", "executor": "", "requirePorts": false,
    "backoffSeconds": 1, "backoffFactor": 1.15, "maxLaunchDelaySeconds": 300,
    "constraints": [], "dependencies": [], "env": {}, "fetch": [], "healthChecks": [], "labels": {},
    "readinessChecks": [], "networks": [{"mode": "host"}],
    "portDefinitions": [{"port": 10000, "protocol": "tcp", "name": "default", "labels": {}}],
    "upgradeStrategy": {"minimumHealthCapacity": 1, "maximumOverCapacity": 1},
    "killSelection": "YOUNGEST_FIRST",
    "unreachableStrategy": {"inactiveAfterSeconds": 0, "expungeAfterSeconds": 0},
    "version": "1970-01-01T00:00:00.000Z",
    "versionInfo": {"lastScalingAt": "1970-01-01T00:00:00.000Z",
                    "lastConfigChangeAt": "1970-01-01T00:00:00.000Z"}})"));
  const auto& service = app.service;
  EXPECT_EQ(service.id, "/sleep");
  EXPECT_EQ(service.task.name, "sleep");
  EXPECT_THAT(*service.task.command, ElementsAre("/bin/sh", "-c", "sleep 1000"));
  EXPECT_EQ(service.task.resources.milli_cpus, 1000);
  EXPECT_EQ(service.task.resources.memory_bytes, 128ULL << 20);
  EXPECT_THAT(service.task.resources.gpus, IsEmpty());
  EXPECT_EQ(service.backoff, workload::Backoff());
  EXPECT_EQ(app.user, std::nullopt);
}

TEST(App, OfUsersReadsUnchanged) {
  const auto old_docker = decoded(file("marathon-tensorflow-app-4.json"));
  EXPECT_EQ(old_docker.service.task.image, "tensorflow/tensorflow:latest");
  EXPECT_EQ(old_docker.service.task.pull, PullPolicy::kAlways);
  EXPECT_EQ(old_docker.service.task.network.mode, workload::NetworkMode::kBridge);
  ASSERT_EQ(old_docker.service.task.network.ports.size(), 1U);
  EXPECT_EQ(old_docker.service.task.network.ports[0].container_port, 8888);
  EXPECT_EQ(old_docker.service.task.environment.at("PASSWORD"), "s3cret");
  EXPECT_EQ(shown(old_docker)["container"], json::parse(R"({
    "type": "DOCKER", "volumes": [],
    "docker": {"image": "tensorflow/tensorflow:latest", "privileged": false, "forcePullImage": true,
               "parameters": []},
    "portMappings": [{"containerPort": 8888, "hostPort": 0, "servicePort": 10000, "protocol": "tcp",
                      "labels": {}}]})"));
  EXPECT_EQ(shown(old_docker)["networks"], json::parse(R"([{"mode": "container/bridge"}])"));

  const auto plain = decoded(file("marathon-tensorflow-gpus-3.json"));
  EXPECT_EQ(plain.service.id, "/tensorflow-gpus");
  EXPECT_EQ(plain.service.task.resources.gpu_count(), 1);
  EXPECT_THAT(*plain.service.task.command, IsEmpty()) << "the image says what runs";

  const auto host = decoded(file("marathon-tensorflow-gpus-5.json"));
  ASSERT_EQ(host.service.task.network.ports.size(), 1U);
  EXPECT_EQ(host.service.task.network.ports[0].name, "http");
  EXPECT_EQ(host.service.task.network.ports[0].host_port, 0) << "requirePorts is false";
  EXPECT_EQ(shown(host)["portDefinitions"][0]["port"], 10000);
}

TEST(App, KeepsTheTypeAndThePrivilegesOfItsContainer) {
  json app = {{"id", "a"}, {"container", {{"docker", {{"image", "x"}, {"privileged", true}}}}}};
  EXPECT_EQ(decoded(app).service.task.container_type, workload::ContainerType::kDocker)
      << "as Marathon has it";
  EXPECT_TRUE(decoded(app).service.task.privileged) << "whether it may is the daemon's to say";
  EXPECT_EQ(shown(decoded(app))["container"]["docker"]["privileged"], true);
  app["container"]["type"] = "MESOS";
  EXPECT_EQ(decoded(app).service.task.container_type, workload::ContainerType::kMesos);
}

TEST(App, MayHaveGpusInDockerUnlessStrict) {
  json app = {{"id", "a"}, {"gpus", 2}, {"container", {{"type", "DOCKER"}, {"docker", {{"image", "x"}}}}}};
  EXPECT_EQ(decoded(app).service.task.resources.gpu_count(), 2);
  const auto refusal = refused(app, {.strict = true, .service_ports = {}});
  EXPECT_EQ(to_json_text(refusal),
            R"({"details":[{"errors":["GPU resources only work with the Mesos containerizer"],"path":"/"}],)"
            R"("message":"Object is not valid"})");
  EXPECT_EQ(refusal.status, 422);
  app["container"]["type"] = "MESOS";
  EXPECT_TRUE(decode_app(app, {.strict = true, .service_ports = {}}));
}

TEST(App, SaysHowItIsRun) {
  const auto both = refused({{"id", "a"}, {"cmd", "x"}, {"args", {"y"}}});
  EXPECT_THAT(both.details,
              ElementsAre(Detail{"/",
                                 {"AppDefinition must either contain one of 'cmd' or 'args', and/or a "
                                  "'container'."}}));
  EXPECT_EQ(refused({{"id", "a"}}).details, both.details);
  const auto args = decoded(json::parse(R"({"id": "a", "args": ["run", "me"], "container":
      {"docker": {"image": "x"}}})"));
  EXPECT_THAT(*args.service.task.command, ElementsAre("run", "me"));
  EXPECT_FALSE(args.service.task.bypass_entrypoint);
  EXPECT_TRUE(decoded({{"id", "a"}, {"cmd", "x"}}).service.task.bypass_entrypoint);
}

TEST(App, TellsEveryWrongTypeWithItsPath) {
  const auto refusal = refused(json::parse(R"({
    "id": 12, "cmd": ["x"], "instances": 1.5, "cpus": "2", "mem": -1, "gpus": 0.5, "env": {"A": 1},
    "labels": [], "healthChecks": [{"protocol": "SMTP"}, 3], "upgradeStrategy": {"minimumHealthCapacity": 1.1},
    "constraints": [["hostname"], "x"], "killSelection": "ANY", "requirePorts": "yes"})"));
  EXPECT_EQ(refusal.message, "Invalid JSON");
  EXPECT_EQ(refusal.status, 422);
  EXPECT_THAT(
      refusal.details,
      IsSupersetOf({Detail{"/id", {"error.expected.jsstring"}}, Detail{"/cmd", {"error.expected.jsstring"}},
                    Detail{"/instances", {"error.expected.int"}},
                    Detail{"/cpus", {"error.expected.jsnumber"}}, Detail{"/mem", {"error.min"}},
                    Detail{"/gpus", {"error.expected.int"}}, Detail{"/env/A", {"error.expected.jsstring"}},
                    Detail{"/labels", {"error.expected.jsobject"}},
                    Detail{"/healthChecks(0)/protocol", {"error.unknown.enum.literal"}},
                    Detail{"/healthChecks(1)", {"error.expected.jsobject"}},
                    Detail{"/upgradeStrategy/minimumHealthCapacity", {"is greater than 1"}},
                    Detail{"/constraints(0)", {"Each constraint must have either 2 or 3 fields"}},
                    Detail{"/constraints(1)", {"error.expected.jsarray"}},
                    Detail{"/killSelection", {"error.unknown.enum.literal"}},
                    Detail{"/requirePorts", {"error.expected.jsboolean"}}}));
  EXPECT_EQ(refused(json::array()).details, (std::vector{Detail{"/", {"error.expected.jsobject"}}}));
  EXPECT_THAT(refused({{"cmd", "x"}}).details, ElementsAre(Detail{"/id", {"error.path.missing"}}));
}

TEST(App, TellsEveryBrokenRuleInMarathonsWords) {
  const auto rule = [](const char* more) {
    json app = {{"id", "a"}, {"cmd", "x"}};
    app.update(json::parse(more));
    const auto refusal = refused(app);
    EXPECT_EQ(refusal.message, "Object is not valid") << more;
    EXPECT_EQ(refusal.details.size(), 1U) << to_json_text(refusal);
    return refusal.details[0].path + " " + refusal.details[0].errors[0];
  };
  EXPECT_EQ(rule(R"({"upgradeStrategy": {"minimumHealthCapacity": 1.1}})"),
            "/upgradeStrategy/minimumHealthCapacity is greater than 1");
  EXPECT_EQ(rule(R"({"upgradeStrategy": {"maximumOverCapacity": -0.1}})"),
            "/upgradeStrategy/maximumOverCapacity is less than 0");
  EXPECT_THAT(rule(R"({"id": "/Big"})"), StartsWith("/id must fully match regular expression '"));
  EXPECT_EQ(rule(R"({"id": "/"})"), "/id must not be root");
  EXPECT_EQ(rule(R"({"portDefinitions": [{"name": "a"}, {"name": "a"}]})"),
            "/portDefinitions Port names must be unique.");
  EXPECT_EQ(rule(R"({"portDefinitions": [{"port": 7}, {"port": 7}]})"),
            "/portDefinitions Ports must be unique.");
  EXPECT_EQ(rule(R"({"ports": [7, 7]})"), "/ports ports must be unique");
  EXPECT_EQ(rule(R"({"ports": [7], "portDefinitions": [{"port": 7}]})"),
            "/ cannot specify both ports and port definitions");
  EXPECT_EQ(rule(R"({"uris": ["a"], "fetch": [{"uri": "b"}]})"),
            "/uris may not be set in conjunction with fetch");
  EXPECT_EQ(rule(R"({"networks": [{"mode": "host"}], "ipAddress": {}})"),
            "/ must not specify both networks and ipAddress");
  EXPECT_EQ(rule(R"({"networks": [{"mode": "host"}],
                     "container": {"docker": {"image": "x", "network": "HOST"}}})"),
            "/ must not specify both container.docker.network and networks");
  EXPECT_EQ(rule(R"({"networks": [{"mode": "host"}],
                     "container": {"docker": {"image": "x"}, "portMappings": [{}]}})"),
            "/container/portMappings portMappings are not allowed with host-networking");
  EXPECT_EQ(rule(R"({"networks": [{"mode": "container/bridge"}], "portDefinitions": [{}]})"),
            "/portDefinitions portDefinitions are only allowed with host-networking");
  EXPECT_EQ(rule(R"({"networks": [{"mode": "host", "name": "x"}]})"),
            "/networks(0) Host networks may not have names or labels");
  EXPECT_EQ(
      rule(R"({"healthChecks": [{"portIndex": 1}]})"),
      "/healthChecks(0) Health check port indices must address an element of the ports array or container "
      "port mappings.");
  EXPECT_EQ(rule(R"({"healthChecks": [{"protocol": "MESOS_TCP"}, {"protocol": "MESOS_HTTP"}]})"),
            "/healthChecks AppDefinition can contain at most one Mesos health check");
  EXPECT_EQ(rule(R"({"constraints": [["a", "NEAR"]]})"),
            "/constraints(0) operator must be one of the following UNIQUE, CLUSTER, GROUP_BY, LIKE, MAX_PER, "
            "UNLIKE or IS");
  EXPECT_EQ(rule(R"({"constraints": [["a", "MAX_PER", "x"]]})"),
            "/constraints(0) MAX_PER requires an integer value");
  EXPECT_EQ(rule(R"({"constraints": [["a", "UNIQUE", "x"]]})"),
            "/constraints(0) UNIQUE does not accept a value");
  EXPECT_EQ(rule(R"({"constraints": [["a", "LIKE", ""]]})"),
            "/constraints(0) LIKE and UNLIKE require a non-empty, regular expression value");
  EXPECT_EQ(rule(R"({"env": {"A": {"secret": "s"}}})"),
            "/env/A secrets are not supported: give the value itself");
  EXPECT_THAT(
      rule(
          R"({"container": {"docker": {"image": "x", "parameters": [{"key": "cap-add", "value": "ALL"}]}}})"),
      StartsWith("/container/docker/parameters(0)/key the parameter 'cap-add' of Docker cannot be kept"));
  EXPECT_THAT(
      rule(
          R"({"container": {"docker": {"image": "x", "parameters": [{"key": "device", "value": "/dev/fuse"}]}}})"),
      StartsWith("/container/docker/parameters(0)/value the device '/dev/fuse' of Docker cannot be kept"));
  EXPECT_THAT(rule(R"({"container": {"type": "MESOS", "volumes":
                     [{"containerPath": "x", "persistent": {"size": 1}}]}})"),
              StartsWith("/container/volumes(0)/persistent persistent volumes are not supported"));
  EXPECT_EQ(rule(R"({"dependencies": ["/a"]})"),
            "/dependencies(0) must not be the app itself, or a group that it is in");
}

TEST(App, ReadsOlderSpellings) {
  const auto app = decoded(json::parse(R"({"id": "/shop/web", "cmd": "x", "ports": [0, 8080],
      "uris": ["http://h/a.tar.gz", "http://h/b"], "dependencies": ["../db"], "requirePorts": true})"));
  EXPECT_EQ(shown(app)["portDefinitions"], json::parse(R"([{"port": 0, "protocol": "tcp", "labels": {}},
                                                            {"port": 8080, "protocol": "tcp", "labels": {}}])"));
  EXPECT_EQ(app.service.task.network.ports[1].host_port, 8080);
  EXPECT_TRUE(app.service.task.fetch[0].extract);
  EXPECT_FALSE(app.service.task.fetch[1].extract);
  EXPECT_THAT(app.service.dependencies, ElementsAre("/shop/db"));
  EXPECT_FALSE(shown(app).contains("uris"));

  const auto own = decoded(json::parse(R"({"id": "a", "cmd": "x", "ipAddress":
      {"networkName": "dcos", "discovery": {"ports": [{"number": 80, "name": "http", "protocol": "tcp"}]}}})"));
  EXPECT_EQ(shown(own)["networks"], json::parse(R"([{"mode": "container", "name": "dcos"}])"));
  EXPECT_EQ(own.service.task.network.ports[0].container_port, 80);
  EXPECT_EQ(own.service.task.network.mode, workload::NetworkMode::kBridge);
}

TEST(App, KeepsWhatItDoesNotKnow) {
  const auto app = decoded({{"id", "a"}, {"cmd", "x"}, {"someday", {{"a", 1}}}, {"tasksRunning", 3}});
  EXPECT_EQ(shown(app)["someday"], json({{"a", 1}}));
  EXPECT_FALSE(shown(app).contains("tasksRunning")) << "what only answers have is no part of it";
}

TEST(App, GetsServicePortsThatNoOtherHas) {
  const Options options{.strict = false, .service_ports = {10000, 10002}};
  const auto app = decoded(json::parse(R"({"id": "a", "cmd": "x", "ports": [0, 10001, 0]})"), options);
  EXPECT_THAT(service_ports(app.service), ElementsAre(10003, 10001, 10004));
  const auto again = update_app(app.service, json::parse(R"({"ports": [0, 0, 0, 0]})"), options);
  EXPECT_THAT(service_ports(again->service), ElementsAre(10003, 10001, 10004, 10005)) << "it keeps its own";
}

TEST(App, UpdatesTakeThePlaceOfWhatTheyName) {
  auto before = decoded(json::parse(R"({"id": "/a", "cmd": "x", "instances": 3, "env": {"A": "1", "B": "2"},
      "labels": {"l": "1"}, "user": "joe"})"));
  const auto after =
      update_app(before.service, json::parse(R"({"env": {"C": "3"}, "cpus": 0.5, "user": null})"), {});
  ASSERT_TRUE(after);
  EXPECT_THAT(*after->service.task.environment, UnorderedElementsAre(std::pair("C", "3")));
  EXPECT_EQ(after->service.instances, 3);
  EXPECT_EQ(after->service.task.resources.milli_cpus, 500);
  EXPECT_EQ(after->user, "joe");
  EXPECT_EQ(user_of(after->service), "joe");
  EXPECT_THAT(*after->service.task.command, Contains("x"));
  EXPECT_THAT(update_app(before.service, {{"id", "/b"}}, {}).error().details,
              ElementsAre(Detail{"/id", {"must be '/a': an app cannot be renamed"}}));
  EXPECT_TRUE(update_app(before.service, {{"id", "a"}}, {}));
  EXPECT_TRUE(
      same_configuration(before.service, update_app(before.service, {{"instances", 7}}, {})->service));
}

TEST(App, UpdatesMayChangeTheKindOfNetwork) {
  const auto host = decoded({{"id", "/a"}, {"cmd", "x"}});
  const auto bridge = update_app(host.service, json::parse(R"({"networks": [{"mode": "container/bridge"}],
      "container": {"docker": {"image": "y"}, "portMappings": [{"containerPort": 80}]}})"),
                                 {});
  ASSERT_TRUE(bridge) << to_json_text(bridge.error());
  EXPECT_FALSE(json::parse(bridge->service.definition).contains("portDefinitions"));
  const auto back = update_app(bridge->service, json::parse(R"({"networks": [{"mode": "host"}]})"), {});
  ASSERT_TRUE(back) << to_json_text(back.error());
  EXPECT_FALSE(json::parse(back->service.definition)["container"].contains("portMappings"));
}

TEST(App, ChecksAreAsWritten) {
  const auto app =
      decoded(json::parse(R"({"id": "a", "cmd": "x", "portDefinitions": [{}, {"name": "http-api"}],
      "healthChecks": [{"protocol": "MESOS_HTTP", "path": "/up", "portIndex": 1, "intervalSeconds": 5},
                       {"protocol": "TCP", "port": 80, "maxConsecutiveFailures": 0}],
      "readinessChecks": [{"path": "/ready", "httpStatusCodesForReady": [200, 302]}],
      "taskKillGracePeriodSeconds": 7})"));
  const auto& service = app.service;
  EXPECT_EQ(service.health_checks[0].kind, workload::CheckKind::kHttp);
  EXPECT_EQ(service.health_checks[0].port_index, 1);
  EXPECT_EQ(service.health_checks[0].interval, 5s);
  EXPECT_EQ(service.health_checks[1].port, 80);
  EXPECT_EQ(service.readiness->port_index, 1);
  EXPECT_THAT(service.readiness->ready_statuses, ElementsAre(200, 302));
  EXPECT_EQ(service.task.grace, 7s);
  const auto command = decoded(json::parse(R"({"id": "a", "cmd": "x",
      "healthChecks": [{"protocol": "COMMAND", "command": {"value": "true"}}]})"));
  EXPECT_THAT(command.service.health_checks[0].command, ElementsAre("/bin/sh", "-c", "true"));
}

}  // namespace
}  // namespace drover::marathon
