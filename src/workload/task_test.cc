#include "workload/task.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "workload/resource_fields.h"
#include "workload/task_writer.h"

namespace drover::workload {
namespace {

Resources whole_gpus(int count, std::int64_t milli_cpus, std::uint64_t memory_bytes) {
  Resources resources{.milli_cpus = milli_cpus, .memory_bytes = memory_bytes};
  if (count > 0) resources.gpus = {{count, {}}};
  return resources;
}

using nlohmann::json;
using namespace std::chrono_literals;

Error mistake_of(const json& body) {
  auto decoded = decode_task_request(body);
  return decoded ? Error{} : decoded.error();
}

TEST(TaskRequest, HasDefaults) {
  const auto request = decode_task_request({{"command", {"/usr/bin/python3", "train.py"}}});
  ASSERT_TRUE(request) << to_string(request.error());
  EXPECT_EQ(request->task.name, "python3");
  EXPECT_EQ(request->task.resources, whole_gpus(0, 1000, 1ULL << 30));
  EXPECT_EQ(request->task.grace, 10s);
  EXPECT_FALSE(request->user);
}

TEST(TaskRequest, TakesEveryField) {
  const auto request = decode_task_request(json::parse(R"({
    "name": "n", "command": ["a", "b"], "image": "oci:/x:y", "pull": "never", "env": {"A": "1"}, "working_directory": "/data",
    "user": "alice", "read_only": true, "gpus": 2, "cpus": 0.5, "memory": "2GiB", "timeout": "1h", "grace": "3s",
    "labels": {"team": "vision"}})"));
  ASSERT_TRUE(request) << to_string(request.error());
  const auto& task = request->task;
  EXPECT_EQ(task.image, "oci:/x:y");
  EXPECT_EQ(task.pull, PullPolicy::kNever);
  EXPECT_EQ(task.resources, whole_gpus(2, 500, 2ULL << 30));
  EXPECT_EQ(task.timeout, 3600s);
  EXPECT_EQ(request->user, "alice");
  EXPECT_EQ(decode_task_request({{"command", {"a"}}, {"memory", 8 << 20}})->task.resources.memory_bytes,
            8u << 20);
}

TEST(TaskRequest, MayTakeInputAndHaveATerminal) {
  const auto task_of = [](const char* fields) {
    auto body = json::parse(fields);
    body["command"] = {"a"};
    return decode_task_request(body).map([](TaskRequest request) { return request.task; });
  };
  EXPECT_FALSE(task_of("{}")->takes_input);
  EXPECT_TRUE(task_of(R"({"stdin": true})")->takes_input);
  EXPECT_EQ(task_of(R"({"stdin": true, "tty": false})")->terminal, std::nullopt);
  const auto typed = task_of(R"({"tty": {"rows": 40, "columns": 120}})").value();
  EXPECT_EQ(typed.terminal, (Terminal{40, 120}));
  EXPECT_TRUE(typed.takes_input);
  EXPECT_EQ(decode_task(encode(typed)), typed);
  EXPECT_EQ(task_of(R"({"tty": true})")->terminal, Terminal{});
  for (const auto& [wrong, path] :
       std::map<const char*, const char*>{{R"({"tty": 3})", "/tty"},
                                          {R"({"tty": {"rows": 0}})", "/tty/rows"},
                                          {R"({"tty": {"row": 1}})", "/tty/row"}})
    EXPECT_EQ(task_of(wrong).error().path, path);
}

TEST(TaskRequest, NamesAContainerizerByItsType) {
  const auto type_of = [](const char* name) {
    return decode_task_request({{"image", "x"}, {"container_type", name}}).value().task.container_type;
  };
  EXPECT_EQ(type_of("docker"), ContainerType::kDocker);
  EXPECT_EQ(type_of("mesos"), ContainerType::kMesos);
  EXPECT_EQ(type_of("oci"), ContainerType::kMesos);
  EXPECT_EQ(type_of("any"), ContainerType::kAny);
  EXPECT_FALSE(decode_task_request({{"image", "x"}, {"container_type", "lxc"}}));
  EXPECT_TRUE(decode_task_request({{"image", "x"}, {"privileged", true}}).value().task.privileged);
}

TEST(TaskRequest, StandsInAQueue) {
  const auto task =
      decode_task_request(
          {{"command", {"a"}}, {"queue", "research/vision"}, {"namespace", "team-a"}, {"priority", -5}})
          ->task;
  EXPECT_EQ(task.queue, "research/vision");
  EXPECT_EQ(task.name_space, "team-a");
  EXPECT_EQ(task.priority, -5);
  EXPECT_EQ(decode_task_request({{"command", {"a"}}})->task.queue, "default");
  for (const auto* queue : {"", "/", "a/", "/a", "a//b", "a b", "1/2/3/4/5/6/7/8/9"})
    EXPECT_EQ(mistake_of({{"command", {"a"}}, {"queue", queue}}).path, "/queue") << queue;
  for (const auto* name : {"", "a/b", "a b"})
    EXPECT_EQ(mistake_of({{"command", {"a"}}, {"namespace", name}}).path, "/namespace") << name;
  for (const auto& priority : {json(1001), json(-1001), json(1e300), json(0.5), json("high")})
    EXPECT_EQ(mistake_of({{"command", {"a"}}, {"priority", priority}}).path, "/priority") << priority;
}

TEST(TaskRequest, TellsAllMistakesAtOnce) {
  const auto error =
      mistake_of({{"comand", {"a"}}, {"gpus", "two"}, {"memory", "lots"}, {"env", {{"A", 1}}}});
  EXPECT_NE(error.message.find("The task has 4 mistakes"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("/comand: unknown field 'comand' (did you mean 'command'?)"),
            std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("/memory: 'lots' is not a size"), std::string::npos);
}

TEST(TaskRequest, RefusesWhatNoKernelWouldTake) {
  EXPECT_EQ(mistake_of({{"command", {std::string("a\0b", 3)}}}).path, "/command");
  EXPECT_EQ(mistake_of({{"command", json::array()}}).path, "/command");
  EXPECT_EQ(mistake_of({{"command", {""}}}).path, "/command");
  EXPECT_EQ(mistake_of({{"command", {"a"}}, {"env", {{"A=B", "x"}}}}).path, "/env");
  EXPECT_EQ(mistake_of({{"command", {"a"}}, {"working_directory", "tmp"}}).path, "/working_directory");
  EXPECT_EQ(mistake_of({{"command", {"a"}}, {"memory", 100}}).path, "/memory");
  EXPECT_EQ(mistake_of(json::array()).message, "The task: expected an object, found array");
}

Result<GangRequest> gang_of(json body, json gang) {
  body["gang"] = std::move(gang);
  return decode_submission(body).map([](Submission submission) { return std::get<GangRequest>(submission); });
}

TEST(Submission, IsATaskOrAGang) {
  const auto task = decode_submission({{"command", {"a"}}});
  ASSERT_TRUE(task && std::holds_alternative<TaskRequest>(*task));
  const auto gang = gang_of({{"command", {"a"}}, {"gpus", 2}}, {{"size", 3}, {"arrangement", "spread"}});
  ASSERT_TRUE(gang) << to_string(gang.error());
  ASSERT_EQ(gang->members.size(), 3u);
  EXPECT_EQ(gang->arrangement, Arrangement::kSpread);
  for (const auto& member : gang->members) {
    EXPECT_EQ(member.task.resources.gpu_count(), 2);
    EXPECT_FALSE(member.task.gang);
  }
}

TEST(Submission, MembersOfAGangDifferInWhatTheySay) {
  const auto gang =
      gang_of({{"command", {"a"}}, {"gpus", 2}, {"cpus", 4}},
              {{"members", {json::object(), {{"gpus", 0}}, {{"command", {"b"}}, {"memory", "2GiB"}}}}});
  ASSERT_TRUE(gang) << to_string(gang.error());
  ASSERT_EQ(gang->members.size(), 3u);
  EXPECT_EQ(gang->members[0].task.resources.gpu_count(), 2);
  EXPECT_EQ(gang->members[1].task.resources.gpu_count(), 0);
  EXPECT_EQ(gang->members[2].task.command, std::vector<std::string>{"b"});
  EXPECT_EQ(gang->members[2].task.resources.milli_cpus, 4000);
  EXPECT_EQ(gang->members[2].task.resources.memory_bytes, 2ULL << 30);
}

/// Else a thousand members would take a thousand times the memory, and time wherever they are looked at.
TEST(Submission, MembersOfAGangShareWhatIsEqual) {
  const auto gang = gang_of({{"command", {"a"}}, {"env", {{"A", "1"}}}},
                            {{"members",
                              {{{"labels", {{"rank", "0"}}}},
                               {{"labels", {{"rank", "1"}}}},
                               {{"env", {{"A", "2"}}}, {"labels", {{"rank", "0"}}}}}}});
  ASSERT_TRUE(gang) << to_string(gang.error());
  const auto& first = gang->members[0].task;
  const auto& second = gang->members[1].task;
  const auto& third = gang->members[2].task;
  EXPECT_TRUE(second.environment.is_one_with(first.environment));
  EXPECT_TRUE(second.command.is_one_with(first.command));
  EXPECT_EQ(second.labels.at("rank"), "1");
  EXPECT_EQ(third.environment.at("A"), "2");
  EXPECT_TRUE(third.labels.is_one_with(first.labels));
}

TEST(Submission, WrongGangsNameTheField) {
  const json body = {{"command", {"a"}}};
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"7", "/gang"},
      {"{}", "/gang/size"},
      {R"({"size": 0})", "/gang/size"},
      {R"({"size": -1})", "/gang/size"},
      {R"({"size": 1e9})", "/gang/size"},
      {R"({"size": 2.5})", "/gang/size"},
      {R"({"size": "many"})", "/gang/size"},
      {R"({"size": 2, "arrangement": "heap"})", "/gang/arrangement"},
      {R"({"size": 2, "shape": "ring"})", "/gang/shape"},
      {R"({"members": []})", "/gang/members"},
      {R"({"members": 3})", "/gang/members"},
      {R"({"members": [3]})", "/gang/members/0"},
      {R"({"members": [{}], "size": 1})", "/gang/size"},
      {R"({"members": [{}, {"gpus": -1}]})", "/gang/members/1/gpus"},
      {R"({"members": [{"gang": {"size": 2}}]})", "/gang/members/0/gang"}};
  for (const auto& [gang, path] : wrong) {
    const auto refused = gang_of(body, json::parse(gang));
    ASSERT_FALSE(refused) << gang;
    EXPECT_EQ(refused.error().path, path) << gang << ": " << to_string(refused.error());
  }
  EXPECT_EQ(gang_of({{"command", {"a"}}, {"image", 1}}, {{"members", {json::object(), json::object()}}})
                .error()
                .path,
            "/image");
  EXPECT_EQ(gang_of({{"command", {"a"}}, {"gpus", -1}}, {{"size", 2}}).error().path, "/gpus");
  EXPECT_EQ(gang_of({{"command", {"a"}}, {"stdin", true}}, {{"size", 2}}).error().path, "/gang");
}

/// Every field that is written without the library.
Task full_task() {
  Task task;
  task.id = "abc";
  task.name = "n";
  task.command = {"a", ""};
  task.bypass_entrypoint = true;
  task.image = "rootfs:/x";
  task.environment = {{"A", "1"}};
  task.user = {1000, 1001, {4, 27}, "alice", "/home/alice"};
  task.owner = 1000;
  task.owner_name = "alice";
  task.resources = whole_gpus(3, 1500, 123456789);
  task.timeout = 90s;
  task.labels = {{"k", "v"}};
  task.queue = "a/b";
  task.name_space = "n";
  task.priority = -7;
  task.gang = GangMembership{"g", 2, 4, Arrangement::kSpread};
  task.origin = {OriginKind::kService, "/shop/web", "t", "v"};
  return task;
}

TEST(Task, ReadsBackWhatItWrote) {
  const auto task = full_task();
  const auto read_back = decode_task(encode(task));
  ASSERT_TRUE(read_back) << to_string(read_back.error());
  EXPECT_EQ(*read_back, task);
}

TEST(Task, OneAfterAnotherHasTheBytesOfItsText) {
  auto one = full_task();
  auto longer = one;
  longer.name = "longer";
  auto other = one;
  other.environment = {{"A", "1"}, {"B", "\"2\""}};
  other.volumes = {{"data", "/data", true}};
  DefinitionSizes sizes;
  for (const auto& task : {Task(), one, longer, other, one, Task(), other, longer})
    EXPECT_EQ(sizes.of(task), definition_bytes(task)) << encode(task);
}

/// Journals and clients have these bytes.
constexpr std::string_view kFullTask =
    R"({"bypass_entrypoint":true,"command":["a",""],"cpus":1.5,"env":{"A":"1"},)"
    R"("gang":{"arrangement":"spread","id":"g","rank":2,"size":4},"gpus":3,"grace_ms":10000,"id":"abc",)"
    R"("image":"rootfs:/x","labels":{"k":"v"},"memory":123456789,"name":"n","namespace":"n",)"
    R"("origin":{"kind":"service","name":"/shop/web","task_id":"t","version":"v"},"owner":1000,)"
    R"("owner_name":"alice","priority":-7,"queue":"a/b","read_only":false,"timeout_ms":90000,)"
    R"("user":{"gid":1001,"groups":[4,27],"home":"/home/alice","name":"alice","uid":1000},)"
    R"("working_directory":""})";

TEST(Task, IsWrittenWithItsFieldsByName) {
  std::string text;
  JsonWriter writer(text);
  write(writer, full_task());
  EXPECT_EQ(text, kFullTask);
}

TEST(Task, WithEverythingThatIsRareIsWrittenWithItsFieldsByName) {
  auto task = full_task();
  task.resources.gpus = {{1, {{"A100"}, 1, gpu::ComputeCapability{8, 0}, true, "535"}}, {2, {}}};
  task.resources.share.milli = 250;
  task.resources.different_models = true;
  task.resources.interconnect = *parse_interconnect("nvlink:2");
  task.resources.cpu_affinity = Preference::kRequire;
  task.resources.nic = Preference::kPrefer;
  task.resources.attributes = {{"rack", {"r7", "r8"}}, {"zone", {"z"}}};
  task.resources.group = "group";
  task.fetch = {{.uri = "http://x/y"}};
  task.volumes = {{"/in", "/out", true}};
  task.limits = {0, 1ULL << 40};
  task.devices = {"vendor.com/net=eth1"};
  task.pull = PullPolicy::kAlways;
  task.network.ports = {{.name = "http"}};
  task.container_type = ContainerType::kDocker;
  task.privileged = true;
  std::string text;
  JsonWriter writer(text);
  write(writer, task);
  EXPECT_EQ(text, json::parse(text).dump());  // which sorts
  EXPECT_EQ(decode_task(json::parse(text)), task);
}

}  // namespace
}  // namespace drover::workload
