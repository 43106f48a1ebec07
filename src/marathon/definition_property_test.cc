// Whatever is sent, it is either refused with paths, or read into a service whose definition reads the same
// again.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "marathon/app.h"
#include "marathon/group.h"

namespace drover::marathon {
namespace {

using nlohmann::json;

/// For every field: values that are right, values that are wrong, and absurd ones.
const json& values() {
  static const json all = json::parse(R"({
    "cmd": ["sleep 1", "true", "", 3, null], "args": [["a", "b"], [], [1], "x"],
    "instances": [0, 1, 7, -1, 1.5, 99999999999, "3", null], "cpus": [0.1, 1, 0, -1, 1e300, "1"],
    "mem": [0, 16, 128.5, 1e18, -1, []], "disk": [0, 1, 1e300], "gpus": [0, 1, 8, 0.5, 4000000000, -1, "1"],
    "env": [{}, {"A": "b", "C": "d"}, {"A": 1}, {"": "x"}, {"A": {"secret": "s"}}, []],
    "labels": [{}, {"a": "b"}, {"a": 1}, "x"], "user": ["joe", "ann", "", 0], "executor": ["", "//cmd", 1],
    "constraints": [[], [["hostname", "UNIQUE"]], [["a", "LIKE", "x.*"]], [["a"]], [[]], [1], "x",
                    [["rack", "GROUP_BY", "3"]], [["@hostname", "MAX_PER", "2"]], [["a", "IS", ""]]],
    "dependencies": [[], ["/db"], ["../x", "../x"], ["/Bad"], [1]],
    "fetch": [[], [{"uri": "http://h/a.tgz"}], [{}], [{"uri": "a", "destPath": "../b"}], [{"uri": ""}]],
    "uris": [[], ["http://h/a.zip"], "x", [1]],
    "ports": [[], [0], [0, 8080], [8080, 8080], [70000], ["x"], "x"],
    "portDefinitions": [[], [{"port": 0, "name": "http"}], [{"port": 8080, "labels": {"a": "b"}}], [{"port": -1}],
                        [{"name": "A"}], [{"protocol": "sctp"}], [1], {}],
    "requirePorts": [true, false, 1],
    "networks": [[], [{"mode": "host"}], [{"mode": "container/bridge"}], [{"mode": "container", "name": "n"}],
                 [{"mode": "x"}], [{"mode": "host"}, {"mode": "container"}], {}],
    "ipAddress": [{}, {"networkName": "n"}, {"discovery": {"ports": [{"number": 80}]}}, 1,
                  {"discovery": {"ports": [{"number": "x"}]}}],
    "container": [{"docker": {"image": "x"}}, {"type": "MESOS"}, {"type": "MESOS", "docker": {"image": "x"}},
                  {"type": "DOCKER"}, {"type": "LXC"}, {"docker": {}}, {"docker": {"image": "x", "network": "BRIDGE"}},
                  {"docker": {"image": "x", "network": "BRIDGE", "portMappings": [{"containerPort": 80}]}},
                  {"docker": {"image": "x", "network": "USER"}, "portMappings": [{"containerPort": 80, "hostPort": 1}]},
                  {"type": "MESOS", "volumes": [{"containerPath": "/a", "hostPath": "/b", "mode": "RO"}]},
                  {"type": "MESOS", "volumes": [{"containerPath": "a", "persistent": {"size": 1}}]},
                  {"docker": {"image": "x", "network": 4}}, {"docker": 3}, {"portMappings": 3}, "x"],
    "healthChecks": [[], [{}], [{"protocol": "TCP", "portIndex": 0}], [{"protocol": "COMMAND",
                     "command": {"value": "true"}}], [{"protocol": "COMMAND"}], [{"portIndex": 99}],
                     [{"path": "no slash", "intervalSeconds": -1}], [{"port": 70000}], "x", [[]]],
    "readinessChecks": [[], [{"portName": "default"}], [{"portName": "http", "httpStatusCodesForReady": [1e9]}],
                        [{}, {}], 1],
    "upgradeStrategy": [{}, {"minimumHealthCapacity": 0.5}, {"maximumOverCapacity": 1e308}, 1],
    "backoffSeconds": [0, 5, -1, 1e12], "backoffFactor": [1, 2.5, 0.5, 1e300], "maxLaunchDelaySeconds": [0, 60, 1e10],
    "taskKillGracePeriodSeconds": [0, 3, -1, 2147483647, 2147483648],
    "killSelection": ["OLDEST_FIRST", "YOUNGEST_FIRST", "x"], "unreachableStrategy": ["disabled", {}, {"inactiveAfterSeconds": 5}, "x"],
    "acceptedResourceRoles": [["*"], ["a"], [], [1]], "role": ["slave", "*", 1], "tty": [true, false, 1],
    "secrets": [{}, {}, {"a": {"source": "b"}}], "residency": [{}, {}, 1], "unknown": [1, {"a": [null]}],
    "version": ["2018-01-01T00:00:00.000Z", 3], "tasksRunning": [3]})");
  return all;
}

json any_app() {
  json app = {{"id", *rc::gen::element<std::string>("/a", "a/b", "../c", "/x.y/z", "/a", "/A", "/x/tasks")}};
  const auto count = *rc::gen::inRange(0, 9);
  for (int i = 0; i < count; ++i) {
    const auto field =
        std::next(values().begin(), *rc::gen::inRange<long>(0, static_cast<long>(values().size())));
    const bool likely_right = *rc::gen::inRange(0, 10) != 0;
    app[field.key()] = (*field)[*rc::gen::inRange<std::size_t>(
        0, likely_right ? std::min<std::size_t>(2, field->size()) : field->size())];
  }
  if (!app.contains("cmd") && *rc::gen::inRange(0, 4) != 0) app["cmd"] = "true";
  return app;
}

bool reads_the_same_again(const App& app) {
  const auto again = decode_app(json::parse(show(app.service)), {});
  return again && again->service == app.service && again->user == app.user;
}

RC_GTEST_PROP(Definition, ReadsTheSameAgain, ()) {
  const auto given = any_app();
  const auto app = decode_app(given, {});
  RC_TAG(app.has_value());
  if (!app) {
    RC_ASSERT(!app.error().details.empty());
    RC_ASSERT(json::accept(to_json_text(app.error())));
    return;
  }
  RC_ASSERT(reads_the_same_again(*app));
  RC_ASSERT(workload::decode_service(encode(app->service)).value() == app->service);
}

RC_GTEST_PROP(Definition, AnUpdateWithNothingChangesNothing, ()) {
  const auto app = decode_app(any_app(), {});
  RC_PRE(app.has_value());
  RC_ASSERT(update_app(app->service, json::object(), {})->service == app->service);
}

RC_GTEST_PROP(Definition, AnUpdatedAppReadsTheSameAgain, ()) {
  const auto app = decode_app(any_app(), {});
  RC_PRE(app.has_value());
  auto change = any_app();
  change.erase("id");
  if (const auto updated = update_app(app->service, change, {})) RC_ASSERT(reads_the_same_again(*updated));
}

}  // namespace
}  // namespace drover::marathon
