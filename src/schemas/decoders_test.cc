// The schemas against the decoders, field by field and both ways: what a schema has, a decoder reads, unless
// the schema says that it is ignored; and no word in the decoders' sources is a field, or a word for one,
// that the schema lacks. Nothing of it is listed twice: a field that is new in only one of the two makes it
// fail.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/json_text.h"
#include "chronos/job.h"
#include "marathon/app.h"
#include "marathon/group.h"
#include "placement/rules_json.h"
#include "schemas/parts.h"
#include "schemas/schemas.h"
#include "workload/service.h"
#include "workload/submission.h"

namespace drover::schemas {
namespace {

using nlohmann::json;

/// What a decoder makes of a definition.
struct Outcome {
  std::string refusal;
  std::vector<workload::Service> services;
  std::vector<std::string> texts;
  std::map<std::string, std::vector<std::string>> groups;
  std::optional<workload::Schedule> schedule;

  bool operator==(const Outcome&) const = default;
};

std::string words_of(const marathon::Refusal& refusal) {
  std::string words = refusal.message;
  for (const auto& detail : refusal.details)
    words += fmt::format("\n{}: {}", detail.path, fmt::join(detail.errors, ", "));
  return words;
}

void add(marathon::App app, Outcome& outcome) {
  const auto shown = json::parse(app.service.definition);
  outcome.texts.push_back(to_text(shown.value("networks", json())));
  app.service.definition.clear();  // which keeps what is not known
  outcome.services.push_back(std::move(app.service));
  outcome.texts.push_back(app.user.value_or(""));
}

Outcome decode_app(const json& value) {
  Outcome outcome;
  if (auto app = marathon::decode_app(value, {}))
    add(std::move(*app), outcome);
  else
    outcome.refusal = words_of(app.error());
  return outcome;
}

Outcome decode_group(const json& value) {
  Outcome outcome;
  if (auto group = marathon::decode_group("/shop", value, {}, {})) {
    for (auto& app : group->apps) add(std::move(app), outcome);
    outcome.groups = group->groups;
  } else {
    outcome.refusal = words_of(group.error());
  }
  return outcome;
}

std::string words_of(const std::vector<Error>& errors) {
  std::string words;
  for (const auto& error : errors) words += fmt::format("{}: {}\n", error.path, error.message);
  return words;
}

Outcome decode_job(const json& value) {
  Outcome outcome;
  const auto kind = value.contains("parents") ? chronos::JobKind::kDependent : chronos::JobKind::kScheduled;
  if (auto job = chronos::read_job(to_text(value), kind, nullptr, TimePoint{})) {
    job->schedule.definition.clear();
    outcome.schedule = std::move(job->schedule);
    outcome.texts = {job->run_as_user};
  } else {
    outcome.refusal = words_of(job.error());
  }
  return outcome;
}

Outcome decode_task(const json& value) {
  Outcome outcome;
  const auto add_task = [&](const workload::TaskRequest& request) {
    outcome.texts.push_back(to_text(workload::encode(request.task)) + request.user.value_or(""));
    if (request.begin_in) outcome.texts.push_back(std::to_string(request.begin_in->count()));
  };
  const auto read = workload::read_submission(value);
  if (!read) {
    outcome.refusal = words_of(read.error());
  } else {
    for (const auto& request : workload::requests_in(*read)) add_task(request);
    if (const auto* gang = std::get_if<workload::GangRequest>(&*read))
      outcome.texts.push_back(std::to_string(static_cast<int>(gang->arrangement)));
    if (const auto* array = std::get_if<workload::ArrayRequest>(&*read))
      outcome.texts.push_back(std::to_string(array->array.indices.size()));
  }
  return outcome;
}

template <typename T>
Outcome decode_rule(const json& value, placement::Read<T> (*read)(const json&)) {
  Outcome outcome;
  if (const auto rule = read(value))
    outcome.texts.push_back(to_text(placement::encode(*rule)));
  else
    outcome.refusal = words_of(rule.error());
  return outcome;
}

Outcome decode_queue(const json& value) {
  return decode_rule(value, placement::read_queue);
}

Outcome decode_quota(const json& value) {
  return decode_rule(value, placement::read_quota);
}

/// Everything that there is, in as few definitions as it takes.
constexpr const char* kApps = R"json([
  {"id": "web", "cmd": "x", "cpus": 1, "mem": 64, "gpus": 1, "disk": 1, "instances": 2, "env": {}, "labels": {},
   "user": "u", "dependencies": ["/db"], "requirePorts": false, "killSelection": "YOUNGEST_FIRST",
   "container": {"type": "DOCKER", "docker": {"image": "i", "parameters": [{"key": "rm", "value": "true"}],
                 "forcePullImage": true, "privileged": false},
                 "volumes": [{"containerPath": "a", "hostPath": "/a", "mode": "RO"}]},
   "networks": [{"mode": "host"}], "portDefinitions": [{"port": 1, "name": "http-api", "protocol": "tcp", "labels": {}}],
   "healthChecks": [{"protocol": "HTTP", "path": "/", "portIndex": 0, "ipProtocol": "IPv4"},
                    {"protocol": "COMMAND", "command": {"value": "x"}}, {"protocol": "TCP", "port": 9}],
   "readinessChecks": [{"protocol": "HTTP", "path": "/", "httpStatusCodesForReady": [200]}],
   "fetch": [{"uri": "http://x/y", "destPath": "z"}], "upgradeStrategy": {"minimumHealthCapacity": 1},
   "unreachableStrategy": {"inactiveAfterSeconds": 1, "expungeAfterSeconds": 2}},
  {"id": "web", "args": ["x"],
   "container": {"type": "MESOS", "docker": {"image": "i"},
                 "portMappings": [{"containerPort": 1, "hostPort": 2, "servicePort": 3, "name": "a", "protocol": "udp",
                                   "labels": {}, "networkNames": ["n"]}]},
   "networks": [{"mode": "container", "name": "n", "labels": {}}]},
  {"id": "web", "cmd": "x", "container": {"docker": {"image": "i", "network": "BRIDGE",
     "portMappings": [{"containerPort": 1, "hostPort": 2, "servicePort": 3, "name": "a", "protocol": "udp", "labels": {}}]}}},
  {"id": "web", "cmd": "x", "uris": ["http://x/y"], "ports": [1]},
  {"id": "web", "cmd": "x", "ipAddress": {"networkName": "n", "labels": {},
     "discovery": {"ports": [{"number": 1, "name": "a", "protocol": "tcp", "labels": {}}]}}}
])json";
constexpr const char* kGroups = R"json([
  {"id": "shop", "dependencies": ["/db"], "apps": [{"id": "web", "cmd": "x"}], "groups": [{"id": "inner", "apps": []}]}
])json";
constexpr const char* kJobs = R"json([
  {"name": "j", "command": "x", "schedule": "R/2030-01-31T02:30:00Z/P1D", "scheduleTimeZone": "UTC", "arguments": ["a"],
   "gpus": 1, "gpu_model": "A", "gpu_share": 0.5, "environmentVariables": [{"name": "A", "value": "1"}],
   "constraints": [["rack", "EQUALS", "r7"]], "fetch": [{"uri": "http://x/y", "output_file": "z"}],
   "container": {"type": "DOCKER", "image": "i", "network": "BRIDGE", "parameters": [{"key": "rm", "value": "true"}],
                 "networkInfos": [{"portMappings": [{"hostPort": 1, "containerPort": 2}]}],
                 "volumes": [{"containerPath": "a", "hostPath": "/a", "mode": "RO"}]}},
  {"name": "j", "command": "x", "parents": ["a"], "uris": ["http://x/y"]},
  {"name": "j", "command": "x", "parents": ["a"],
   "gpus": [{"count": 1, "model": "A", "memory": 1, "compute_capability": "7.0", "ecc": true, "driver": "1"}]}
])json";
constexpr const char* kTasks = R"json([
  {"command": ["x"], "image": "i", "gpus": 2, "gpu_model": "A", "different_models": false, "pull": "missing",
   "cpu_affinity": "prefer", "nic": "none", "container_type": "any", "driver": "host", "tty": {"rows": 9, "columns": 9},
   "env": {}, "labels": {}, "constraints": {},
   "fetch": [{"uri": "http://x/y", "output_file": "z"}], "volumes": [{"container_path": "/a", "host_path": "/a"}],
   "network": {"mode": "bridge", "ports": [{"name": "a", "protocol": "tcp", "container_port": 1, "host_port": 2000, "labels": {}}]}},
  {"command": ["x"], "gpus": [{"count": 1, "model": "A", "memory": 1, "compute_capability": "7.0", "ecc": true, "driver": "1"}]},
  {"command": ["x"], "array": "0-9", "after": ["a"], "begin": "2h", "retries": 1, "requeue": "lost", "gpus": 1, "idle_timeout": "30m", "pull_timeout": "5m"},
  {"command": ["x"], "gang": {"size": 2, "arrangement": "pack"}},
  {"command": ["x"], "gang": {"members": [{"gpus": 1, "tty": {"rows": 9, "columns": 9}, "fetch": [{"uri": "http://x/y"}],
     "volumes": [{"container_path": "/a", "host_path": "/a"}], "network": {"ports": [{"name": "a"}]}},
     {"gpus": [{"count": 1}]}]}}
])json";

constexpr const char* kQueues = R"json([
  {"queue": "a/b", "guarantee": {"gpus": 1, "cpus": 1, "memory": "1GiB"}, "limit": {"gpus": 2, "cpus": 2, "memory": "2GiB"},
   "weight": 2, "users": ["ann"], "timeout": "2h", "idle_timeout": "30m"}
])json";
constexpr const char* kQuotas = R"json([
  {"user": "ann", "limit": {"gpus": 2, "cpus": 2, "memory": "2GiB"}, "max_priority": 5},
  {"namespace": "team", "limit": {"gpus": 2}}
])json";

struct Kind {
  const char* schema;
  const char* examples;
  Outcome (*decode)(const json&);
  std::vector<std::string> sources;  ///< where the decoder names fields
  std::set<std::string> elsewhere;   ///< what is read before the decoder is asked
};

std::vector<Kind> kinds() {
  return {{"app", kApps, decode_app, {"marathon"}, {"kind"}},
          {"group",
           kGroups,
           decode_group,
           {"marathon", "api/marathon/group_changes.cc"},
           {"kind", "scaleBy", "version"}},
          {"job", kJobs, decode_job, {"chronos", "workload"}, {"kind"}},
          {"queue", kQueues, decode_queue, {"placement"}, {"kind", "mem"}},
          {"quota", kQuotas, decode_quota, {"placement"}, {"kind", "mem"}},
          {"task", kTasks, decode_task, {"workload"}, {"kind", "mem"}}};
}

std::set<std::string> words_in(const std::filesystem::path& path) {
  std::set<std::string> words;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".cc" && !entry.path().stem().string().ends_with("_test"))
        words.merge(words_in(entry.path()));
    return words;
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  static const std::regex literal("\"([A-Za-z_][A-Za-z_0-9]*)\"");
  for (std::sregex_iterator at(text.begin(), text.end(), literal), end; at != end; ++at)
    words.insert((*at)[1]);
  return words;
}

std::set<std::string> words_of_sources(const Kind& kind) {
  std::set<std::string> words;
  for (const auto& source : kind.sources)
    words.merge(words_in(std::filesystem::path(DROVER_SOURCE_DIR) / "src" / source));
  return words;
}

const std::vector<json>& probes() {
  static const std::vector<json> all = {
      7, "x", true, json::object(), json::array({json::array({1})}), {{"a", json::object()}}};
  return all;
}

/// Calls visit(the parts of the schema, where it stands in `value`) for each object that has names of its
/// own.
template <typename Visit>
void each_object(const Parts& parts, const json& value, const json::json_pointer& at, const Visit& visit) {
  if (value.is_array()) {
    const auto items = items_of(parts);
    for (std::size_t i = 0; i < value.size(); ++i) each_object(items, value[i], at / i, visit);
  }
  if (!value.is_object()) return;
  if (!names_of(parts).empty()) visit(parts, at);
  for (const auto& [name, field] : value.items()) each_object(below(parts, name), field, at / name, visit);
}

/// A field as the schema has it, wherever it stands: where its part is in memory, and its name.
using Key = std::pair<const json*, std::string>;

/// Those of one schema, without what it has from others.
void collect(const json* document, const Parts& parts, const std::string& path,
             std::map<Key, std::string>& fields) {
  for (const auto& part : parts) {
    const auto properties = part.schema->find("properties");
    if (properties == part.schema->end() || part.document != document) continue;
    for (const auto& [name, schema] : properties->items()) {
      const auto inner = fmt::format("{}/{}", path, name);
      if (!schema.value("x-ignored", false) && fields.emplace(Key(&*properties, name), inner).second)
        collect(document, below({part}, name), inner, fields);
    }
  }
  if (const auto items = items_of(parts); !items.empty()) collect(document, items, path + "/*", fields);
}

class DecodersTest : public ::testing::TestWithParam<Kind> {
 protected:
  /// Those of all examples that the decoder reads.
  std::set<Key> read_fields(const json& examples) {
    std::set<Key> read;
    for (const auto& example : examples)
      each_object(parts_of(GetParam().schema), example, json::json_pointer(),
                  [&](const Parts& parts, const json::json_pointer& at) {
                    for (const auto& part : parts)
                      if (const auto fields = part.schema->find("properties"); fields != part.schema->end())
                        for (const auto& [name, unused] : fields->items())
                          if (has_effect(example, at / name)) read.emplace(&*fields, name);
                  });
    return read;
  }

  bool has_effect(const json& example, const json::json_pointer& field) {
    auto without = example;
    without[field.parent_pointer()].erase(field.back());
    const auto before = GetParam().decode(without);
    auto with = probes();
    if (example.contains(field)) with.push_back(example[field]);
    for (const auto& probe : with) {
      auto changed = without;
      changed[field] = probe;
      const auto after = GetParam().decode(changed);
      if (after.refusal.find(fmt::format("unknown field '{}'", field.back())) != std::string::npos)
        return false;  // that it is not known is no way to read it
      if (after != before) return true;
    }
    return false;
  }

  /// All at once, whatever stands in them: which is a short way to know that none of them is read.
  bool none_has_effect(const json& example, const json::json_pointer& at,
                       const std::set<std::string>& names) {
    const auto before = GetParam().decode(example);
    return std::ranges::all_of(probes(), [&](const json& probe) {
      auto changed = example;
      for (const auto& name : names) changed[at / name] = probe;
      return GetParam().decode(changed) == before;
    });
  }
};

TEST_P(DecodersTest, ReadWhatTheSchemaHas) {
  const auto read = read_fields(json::parse(GetParam().examples));
  std::map<Key, std::string> fields;
  const auto whole = parts_of(GetParam().schema);
  collect(whole.front().document, whole, "", fields);
  for (const auto& [key, path] : fields) {
    if (GetParam().elsewhere.contains(key.second)) continue;
    EXPECT_TRUE(read.contains(key)) << GetParam().schema << path << " has no effect";
  }
}

TEST_P(DecodersTest, ReadNothingThatTheSchemaLacks) {
  const auto words = words_of_sources(GetParam());
  ASSERT_GT(words.size(), 20u);
  for (const auto& example : json::parse(GetParam().examples)) {
    EXPECT_EQ(GetParam().decode(example).refusal.find("unknown field"), std::string::npos);
    each_object(parts_of(GetParam().schema), example, json::json_pointer(),
                [&](const Parts& parts, const json::json_pointer& at) {
                  auto unknown_words = words;
                  for (const auto& name : names_of(parts)) unknown_words.erase(name);
                  if (none_has_effect(example, at, unknown_words)) return;
                  for (const auto& word : unknown_words)
                    EXPECT_FALSE(has_effect(example, at / word))
                        << GetParam().schema << (at / word).to_string() << " is read";
                });
  }
}

TEST_P(DecodersTest, HaveTheSameWords) {
  const auto words = words_of_sources(GetParam());
  constexpr std::array kNoWord = {"error.unknown.enum.literal", "is not known", "is not there", "there is no",
                                  "is not supported"};
  const auto takes = [&](json example, const json::json_pointer& at, const std::string& word) {
    example[at] = word;
    const auto refusal = GetParam().decode(example).refusal;
    return std::none_of(kNoWord.begin(), kNoWord.end(),
                        [&](const char* no) { return refusal.find(no) != std::string::npos; });
  };
  std::size_t compared = 0;
  for (const auto& example : json::parse(GetParam().examples))
    each_object(parts_of(GetParam().schema), example, json::json_pointer(),
                [&](const Parts&, const json::json_pointer& at) {
                  for (const auto& [name, value] : example[at].items()) {
                    const auto field = field_at(GetParam().schema, (at / name).to_string());
                    if (!value.is_string() || !field || field->words.empty()) continue;
                    ++compared;
                    for (const auto& word : field->words)
                      EXPECT_TRUE(takes(example, at / name, word)) << (at / name).to_string() << " " << word;
                    for (const auto& word : words)
                      if (std::ranges::find(field->words, word) == field->words.end())
                        EXPECT_FALSE(takes(example, at / name, word))
                            << (at / name).to_string() << " " << word;
                  }
                });
  static const std::set<std::string_view> without_words = {"group", "queue", "quota"};
  if (!without_words.contains(GetParam().schema)) EXPECT_GT(compared, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, DecodersTest, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return std::string(kind.param.schema); });

}  // namespace
}  // namespace drover::schemas
