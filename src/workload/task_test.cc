#include "workload/task.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
    "name": "n", "command": ["a", "b"], "image": "oci:/x:y", "env": {"A": "1"}, "working_directory": "/data",
    "user": "alice", "read_only": true, "gpus": 2, "cpus": 0.5, "memory": "2GiB", "timeout": "1h", "grace": "3s",
    "labels": {"team": "vision"}})"));
  ASSERT_TRUE(request) << to_string(request.error());
  const auto& task = request->task;
  EXPECT_EQ(task.image, "oci:/x:y");
  EXPECT_EQ(task.resources, whole_gpus(2, 500, 2ULL << 30));
  EXPECT_EQ(task.timeout, 3600s);
  EXPECT_EQ(request->user, "alice");
  EXPECT_EQ(decode_task_request({{"command", {"a"}}, {"memory", 8 << 20}})->task.resources.memory_bytes,
            8u << 20);
}

TEST(TaskRequest, RefusesAPartOfAGpuWithTheReason) {
  const auto error = mistake_of({{"command", {"a"}}, {"gpus", 0.5}});
  EXPECT_EQ(error.message, "The task: a part of a GPU (0.5) cannot be given: GPUs are given whole");
  EXPECT_EQ(error.path, "/gpus");
  EXPECT_EQ(mistake_of({{"command", {"a"}}, {"gpus", -1}}).kind, ErrorKind::kInvalid);
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

TEST(Task, ReadsBackWhatItWrote) {
  Task task;
  task.id = "abc";
  task.name = "n";
  task.command = {"a", ""};
  task.image = "rootfs:/x";
  task.environment = {{"A", "1"}};
  task.user = {1000, 1001, {4, 27}, "alice", "/home/alice"};
  task.owner = 1000;
  task.owner_name = "alice";
  task.resources = whole_gpus(3, 1500, 123456789);
  task.timeout = 90s;
  task.labels = {{"k", "v"}};
  const auto read_back = decode_task(encode(task));
  ASSERT_TRUE(read_back) << to_string(read_back.error());
  EXPECT_EQ(*read_back, task);
}

}  // namespace
}  // namespace drover::workload
