#include "api/mesos/task_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/mesos/protobuf_json.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

LaunchContext context() {
  LaunchContext context;
  context.framework = "F-0000";
  context.agent = "F-S0";
  context.users = {{"ann", User{1000, 1000, {}, "ann", "/home/ann"}}};
  context.default_user = "ann";
  context.owner = 1000;
  context.owner_name = "ann";
  return context;
}

json a_task() {
  return json::parse(R"({"name": "n", "task_id": {"value": "t"}, "agent_id": {"value": "F-S0"},
    "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.5}},
                  {"name": "mem", "type": "SCALAR", "scalar": {"value": 64}},
                  {"name": "gpus", "type": "SCALAR", "scalar": {"value": 2}}],
    "command": {"value": "train --fast"}})");
}

Result<workload::Task> read(const json& written, bool in_group = false) {
  v1::TaskInfo info;
  EXPECT_TRUE(from_json(written, info));
  return read_task(info, context(), in_group);
}

std::string mistake(const json& written) {
  const auto task = read(written);
  return task ? "" : task.error().message;
}

TEST(TaskInfo, BecomesATask) {
  const auto task = read(a_task());
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_THAT(*task->command, ElementsAre("/bin/sh", "-c", "train --fast"));
  EXPECT_EQ(task->resources.gpus.at(0).count, 2);
  EXPECT_EQ(task->resources.milli_cpus, 500);
  EXPECT_EQ(task->resources.memory_bytes, 64ULL << 20);
  EXPECT_EQ(task->user.uid, 1000u);
  EXPECT_EQ(task->origin, (workload::Origin{workload::OriginKind::kFramework, "F-0000", "t", ""}));
  EXPECT_EQ(task->environment.at("MESOS_TASK_ID"), "t");
  EXPECT_EQ(task->environment.at("MESOS_FRAMEWORK_ID"), "F-0000");
  EXPECT_EQ(task->environment.at("MESOS_EXECUTOR_ID"), "t");
  EXPECT_EQ(task->environment.at("MESOS_ALLOCATION_ROLE"), "*");
  EXPECT_EQ(task->grace, std::chrono::seconds(3)) << "as Mesos has it where nobody says";
}

TEST(TaskInfo, BringsWhatItNeeds) {
  auto written = a_task();
  written["command"] = json::parse(R"({"shell": false, "value": "/bin/train", "arguments": ["train", "-x"],
    "environment": {"variables": [{"name": "A", "value": "b"}]},
    "uris": [{"value": "http://x/y.tgz", "extract": false, "executable": true, "output_file": "z"}]})");
  written["container"] = json::parse(R"({"type": "DOCKER", "docker": {"image": "pytorch", "network": "BRIDGE",
    "force_pull_image": true, "port_mappings": [{"host_port": 31005, "container_port": 80, "protocol": "udp"}]},
    "volumes": [{"mode": "RO", "container_path": "/data", "host_path": "/srv"}]})");
  written["kill_policy"] = json::parse(R"({"grace_period": {"nanoseconds": 7000000000}})");
  written["max_completion_time"] = {{"nanoseconds", 60'000'000'000}};
  written["labels"] = json::parse(R"({"labels": [{"key": "k", "value": "v"}]})");
  const auto task = read(written);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_THAT(*task->command, ElementsAre("/bin/train", "-x"));
  EXPECT_EQ(task->environment.at("A"), "b");
  EXPECT_EQ(task->fetch.at(0), (workload::Fetch{"http://x/y.tgz", false, true, false, "z"}));
  EXPECT_EQ(task->image, "pytorch");
  EXPECT_EQ(task->pull, PullPolicy::kAlways);
  EXPECT_EQ(task->network.mode, workload::NetworkMode::kBridge);
  EXPECT_EQ(task->network.ports.at(0).host_port, 31005);
  EXPECT_EQ(task->network.ports.at(0).container_port, 80);
  EXPECT_EQ(task->volumes.at(0), (workload::Volume{"/data", "/srv", true}));
  EXPECT_EQ(task->grace, std::chrono::seconds(7));
  EXPECT_EQ(task->timeout, std::chrono::minutes(1));
  EXPECT_EQ(task->labels.at("k"), "v");
}

TEST(TaskInfo, MayUseMoreThanItAsksFor) {
  auto written = a_task();
  EXPECT_EQ(read(written)->limits, workload::Limits());
  written["limits"] = {{"cpus", {{"value", 1.5}}}, {"mem", {{"value", 64}}}};
  EXPECT_EQ(read(written)->limits, (workload::Limits{1500, 64ULL << 20}));
  EXPECT_EQ(read(written)->resources.milli_cpus, 500);
  written["limits"] = {{"cpus", {{"value", "Infinity"}}}, {"mem", {{"value", "Infinity"}}}};
  EXPECT_EQ(read(written)->limits, (workload::Limits{0, 0}));
  written["limits"] = {{"mem", {{"value", 1e300}}}};
  EXPECT_GT(read(written)->limits.memory_bytes, 1ULL << 49) << "as good as none";
  written["limits"] = {{"cpus", {{"value", 0.4}}}};
  EXPECT_EQ(mistake(written), "The cpu limit must be greater than or equal to the cpu request");
  for (const json& wrong : {json(63), json("NaN"), json("-Infinity"), json(-1)}) {
    written["limits"] = {{"mem", {{"value", wrong}}}};
    EXPECT_EQ(mistake(written), "The memory limit must be greater than or equal to the memory request")
        << wrong;
  }
  written["limits"] = {{"mem", {{"value", 64}}}};
  EXPECT_EQ(
      read(written, true).error().message,
      "Resource limits may only be set for tasks within a task group when the 'share_cgroups' field is set "
      "to 'false'");
  written["container"] = json::parse(R"({"type": "MESOS", "linux_info": {"share_cgroups": false}})");
  EXPECT_TRUE(read(written, true));
  written["resources"].erase(1);
  EXPECT_EQ(mistake(written), "When a memory limit is specified, a memory request must also be specified");
  written["resources"].erase(0);
  written["limits"] = {{"cpus", {{"value", "Infinity"}}}};
  EXPECT_EQ(mistake(written), "When a CPU limit is specified, a CPU request must also be specified");
}

TEST(TaskInfo, MistakesAreToldAsByMesos) {
  auto written = a_task();
  written["resources"][2]["scalar"]["value"] = 0.5;
  EXPECT_EQ(mistake(written),
            "Task uses invalid resources: Invalid 'gpus' resource: The 'gpus' resource must be an unsigned "
            "integer");
  written = a_task();
  written["resources"] = json::array();
  EXPECT_EQ(mistake(written), "Task uses no resources");
  written = a_task();
  written["limits"] = {{"gpus", {{"value", 1}}}};
  EXPECT_EQ(mistake(written), "Only cpus and mem may be included in a task's resource limits");
  written = a_task();
  written.erase("command");
  EXPECT_EQ(mistake(written),
            "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present");
  written = a_task();
  written["command"]["user"] = "root";
  EXPECT_EQ(mistake(written), "Not authorized to launch as user 'root'");
  for (const auto* id : {"", "a/b", "..", "a b", "a\nb"}) {
    written = a_task();
    written["task_id"]["value"] = id;
    EXPECT_NE(mistake(written), "") << id;
  }
  for (const double value : {-1.0, 1e300}) {
    written = a_task();
    written["resources"][0]["scalar"]["value"] = value;
    EXPECT_NE(mistake(written), "") << value;
  }
}

TEST(TaskInfo, ResourcesAreWrittenAsTheyAreRead) {
  const ResourceAmounts amounts{2, 1500, 64ULL << 20, 10ULL << 20, {{31000, 31004}, {31006, 31006}}};
  ResourceList list;
  write_resources(amounts, {}, list);
  EXPECT_EQ(read_resources(list).value(), amounts);
  EXPECT_EQ(list.Get(0).role(), "*");
  ResourceList refined;
  write_resources(amounts, {false, "research"}, refined);
  EXPECT_FALSE(refined.Get(0).has_role());
  EXPECT_EQ(refined.Get(0).allocation_info().role(), "research");
}

}  // namespace
}  // namespace drover::api::mesos
