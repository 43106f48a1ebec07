// docs/openapi.yaml against the code, in both directions: every route of the table is described and nothing
// else is, and what the daemon answers has the shape that the file promises, down to the last field.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "api/native/routes.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/raw_http.h"

namespace drover::api {
namespace {

using nlohmann::json;
using testing::body_of;
using testing::ServerFixture;
using testing::status_of;

const YAML::Node& document() {
  static const YAML::Node loaded = YAML::LoadFile(DROVER_SOURCE_DIR "/docs/openapi.yaml");
  return loaded;
}

YAML::Node resolve(const YAML::Node& node) {
  if (!node["$ref"]) return node;
  auto reference = node["$ref"].as<std::string>().substr(2);
  YAML::Node found = YAML::Clone(document());
  for (std::size_t at = 0; at != std::string::npos;) {
    const auto slash = reference.find('/', at);
    const auto key = reference.substr(at, slash == std::string::npos ? slash : slash - at);
    if (!found[key]) throw std::runtime_error("nothing at " + reference);
    found.reset(found[key]);
    at = slash == std::string::npos ? slash : slash + 1;
  }
  return found;
}

std::set<std::string> names(const YAML::Node& list) {
  std::set<std::string> result;
  for (const auto& item : list) result.insert(item.as<std::string>());
  return result;
}

bool has_type(const json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

/// Records everything in which `value` differs from `schema`. Objects have no field that is not described.
void compare(const json& value, const YAML::Node& schema_or_reference, const std::string& path,
             std::vector<std::string>& differences) {
  const auto schema = resolve(schema_or_reference);
  const auto types =
      schema["type"].IsSequence() ? names(schema["type"]) : std::set{schema["type"].as<std::string>()};
  if (std::none_of(types.begin(), types.end(), [&](const auto& type) { return has_type(value, type); }))
    differences.push_back(fmt::format("{} is {}", path, value.dump()));
  if (schema["enum"] && value.is_string() && !names(schema["enum"]).contains(value.get<std::string>()))
    differences.push_back(fmt::format("{} is '{}', which is not listed", path, value.get<std::string>()));
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      compare(value[i], schema["items"], fmt::format("{}/{}", path, i), differences);
  if (!value.is_object()) return;
  for (const auto& name : names(schema["required"]))
    if (!value.contains(name)) differences.push_back(fmt::format("{}/{} is missing", path, name));
  for (const auto& [name, field] : value.items()) {
    if (schema["properties"] && schema["properties"][name])
      compare(field, schema["properties"][name], path + "/" + name, differences);
    else if (schema["additionalProperties"] && schema["additionalProperties"].IsScalar())
      continue;  // any field
    else if (schema["additionalProperties"])
      compare(field, schema["additionalProperties"], path + "/" + name, differences);
    else
      differences.push_back(fmt::format("{}/{} is not described", path, name));
  }
}

std::string differences(const json& value, const std::string& schema) {
  std::vector<std::string> found;
  compare(value, document()["components"]["schemas"][schema], schema, found);
  std::string text;
  for (const auto& difference : found) text += difference + "\n";
  return text;
}

/// OpenAPI has no word for a parameter that takes slashes too.
std::string described_path(const Route& route) {
  std::string path(route.path);
  if (const auto dots = path.find("...}"); dots != std::string::npos) path.erase(dots, 3);
  return path;
}

TEST(OpenApi, DescribesEveryRouteAndNoOther) {
  std::set<std::string> in_code;
  for (const auto& route : native_routes())
    in_code.insert(fmt::format("{} {}", route.method, described_path(route)));
  std::set<std::string> in_file;
  for (const auto& path : document()["paths"])
    for (const auto& operation : path.second) {
      auto method = operation.first.as<std::string>();
      if (method == "parameters") continue;
      std::transform(method.begin(), method.end(), method.begin(), ::toupper);
      in_file.insert(method + " " + path.first.as<std::string>());
    }
  EXPECT_EQ(in_code, in_file);
}

TEST(OpenApi, SaysWhichRoutesAreOpen) {
  for (const auto& route : native_routes()) {
    std::string method(route.method);
    std::transform(method.begin(), method.end(), method.begin(), ::tolower);
    const auto operation = document()["paths"][described_path(route)][method];
    EXPECT_EQ(operation["security"].IsDefined(), route.open) << route.path;
    EXPECT_TRUE(operation["operationId"]) << route.path;
  }
}

TEST(OpenApi, ListsEveryKindOfError) {
  const auto listed = names(document()["components"]["schemas"]["Problem"]["properties"]["kind"]["enum"]);
  std::set<std::string> in_code;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kInternal); ++kind)
    in_code.emplace(error_kind_info(static_cast<ErrorKind>(kind)).name);
  EXPECT_EQ(listed, in_code);
}

TEST(OpenApi, TheComparisonFindsWhatIsWrong) {
  EXPECT_EQ(differences({{"version", "1"}, {"api", "v1"}}, "Version"), "");
  EXPECT_EQ(differences({{"version", 1}, {"more", "x"}}, "Version"),
            "Version/api is missing\nVersion/more is not described\nVersion/version is 1\n");
}

class OpenApiAnswers : public ::testing::Test {
 protected:
  std::string ask(const std::string& method, const std::string& target, const std::string& body = "") {
    return server_.exchange(method, target, body);
  }
  ServerFixture server_;
};

TEST_F(OpenApiAnswers, HaveTheShapesThatAreDescribed) {
  server_.on_strand(
      [this] { server_.daemon().inventory_.problems = {{ErrorKind::kUnavailable, "a problem", "", ""}}; });
  const std::string request =
      R"({"command":["x"],"image":"/i","env":{"A":"b"},"timeout":"1h","labels":{"k":"v"},"memory":"1G","gpus":2,
          "gpu_model":["A100"],"gpu_memory":"1G","gpu_compute_capability":"7.0","gpu_ecc":true,"gpu_driver":"535",
          "different_models":true,"interconnect":"nvlink","cpu_affinity":"require",
          "nic":"require","constraints":{"rack":["r7"]},"group":"g","queue":"a/b","namespace":"n","priority":3})";
  EXPECT_EQ(differences(json::parse(request), "TaskRequest"), "");
  server_.on_strand([this] {
    engine::PlanView plan;
    plan.starts_now = true;
    plan.members = {{"here", {{"GPU-0", 500, 1ULL << 30}}, {0, 1}, {"eth0"}}};
    server_.daemon().plan_ = plan;
  });
  const std::string queue =
      R"({"limit":{"gpus":2,"memory":"1G"},"guarantee":{"cpus":1},"weight":2,"users":["a"]})";
  EXPECT_EQ(differences(json::parse(queue), "QueueRule"), "");
  EXPECT_EQ(differences(json::parse(body_of(ask("PUT", "/v1/queues/a%2Fb", queue))), "QueueRule"), "");
  const std::string quota = R"({"limit":{"gpus":2},"max_priority":5})";
  EXPECT_EQ(differences(json::parse(body_of(ask("PATCH", "/v1/quotas/user:ann", quota))), "QuotaRule"), "");
  const std::string queues = R"({"queues":[{"queue":"a/b","weight":2}]})";
  EXPECT_EQ(differences(json::parse(queues), "QueueRuleList"), "");
  EXPECT_EQ(differences(json::parse(body_of(ask("PUT", "/v1/queues", queues))), "QueueRuleList"), "");
  const std::string quotas = R"({"quotas":[{"user":"ann","max_priority":5}]})";
  EXPECT_EQ(differences(json::parse(body_of(ask("PUT", "/v1/quotas", quotas))), "QuotaRuleList"), "");
  const auto submitted = ask("POST", "/v1/tasks", request);
  ASSERT_EQ(status_of(submitted), 201);
  EXPECT_EQ(differences(json::parse(body_of(submitted)), "TaskRecord"), "");
  server_.append("task-1", "stdout", "text");
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"/health", "Health"},
      {"/v1/version", "Version"},
      {"/v1/nodes", "NodeList"},
      {"/v1/gpus", "GpuList"},
      {"/v1/topology", "Topology"},
      {"/v1/cdi", "Cdi"},
      {"/v1/images/tool/variants", "ImageVariants"},
      {"/v1/events?follow=false", "EventList"},
      {"/v1/queues", "QueueList"},
      {"/v1/quotas", "QuotaList"},
      {"/v1/export", "Export"},
      {"/v1/tasks", "TaskList"},
      {"/v1/tasks/task-1", "TaskRecord"},
      {"/v1/tasks/task-1/explain", "Explanation"},
      {"/v1/tasks/task-1/files/browse", "FileList"},
      {"/v1/tasks/task-1/files/read?path=stdout", "FilePiece"},
      {"/v1/tasks/nothing", "ErrorAnswer"},
  };
  for (const auto& [target, schema] : answers)
    EXPECT_EQ(differences(json::parse(body_of(ask("GET", target))), schema), "") << target;
  EXPECT_EQ(differences(json::parse(body_of(ask("POST", "/v1/tasks/task-1/stop", R"({"force":true})"))),
                        "TaskRecord"),
            "");
  const auto resized = body_of(ask("PATCH", "/v1/tasks/task-1", R"({"gpu_share":"8GiB"})"));
  EXPECT_EQ(differences(json::parse(resized), "TaskRecord"), "");
  EXPECT_EQ(differences(json::parse(R"({"gpu_share":"8GiB"})"), "TaskChange"), "");
  for (const char* body :
       {"{}", "[]", R"({"gpu_share":0})", R"({"gpu_share":null})", R"({"gpu_share":0.5,"gpus":2})",
        R"({"gpu_share":"8GiB","owner":0})", R"({"gpu_share":-1})", R"({"gpu_share":"-1GiB"})"})
    EXPECT_EQ(status_of(ask("PATCH", "/v1/tasks/task-1", body)), 400) << body;
  const std::string gang = R"({"command":["x"],"gang":{"size":2,"arrangement":"spread"}})";
  EXPECT_EQ(differences(json::parse(gang), "TaskRequest"), "");
  EXPECT_EQ(differences(json::parse(body_of(ask("POST", "/v1/tasks", gang))), "GangRecord"), "");
  EXPECT_EQ(differences(json::parse(body_of(ask("POST", "/v1/plan", R"({"gpus":1})"))), "Plan"), "");
  const auto live = ask("GET", "/v1/tasks/task-1/logs?follow=true");
  const auto begin = live.find("event: log\ndata: ") + 17;
  EXPECT_EQ(differences(json::parse(live.substr(begin, live.find('\n', begin) - begin)), "LogPiece"), "");
}

}  // namespace
}  // namespace drover::api
