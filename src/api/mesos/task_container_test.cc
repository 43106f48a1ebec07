#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/mesos/protobuf_json.h"
#include "api/mesos/task_info.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using workload::NetworkMode;

/// What becomes of a container; the mistake's words in place of the name when there is one.
workload::Task contained(const json& written) {
  v1::ContainerInfo info;
  EXPECT_TRUE(from_json(written, info));
  workload::Task task;
  task.environment = {{"A", "own"}};
  if (const auto read = read_container(info, task); !read) task.name = read.error().message;
  return task;
}

json docker(const std::string& key, const std::string& value) {
  return {{"type", "DOCKER"},
          {"docker", {{"image", "spark"}, {"parameters", {{{"key", key}, {"value", value}}}}}}};
}

std::string mistake_in_volume(const char* written) {
  return contained({{"type", "MESOS"}, {"volumes", json::array({json::parse(written)})}}).name;
}

TEST(TaskContainer, ParametersOfDockerAreKeptOrRefusedInWords) {
  EXPECT_EQ(contained(docker("env", "C=d=e")).environment.at("C"), "d=e");
  EXPECT_THAT(contained(docker("runtime", "nvidia")).name, HasSubstr("the parameter 'runtime' of Docker"));
}

TEST(TaskContainer, NetworksOfTheirOwnAreBridges) {
  const auto in = [](const char* network) {
    return contained({{"type", "DOCKER"}, {"docker", {{"image", "x"}, {"network", network}}}});
  };
  EXPECT_EQ(in("HOST").network.mode, NetworkMode::kHost);
  EXPECT_EQ(in("BRIDGE").network.mode, NetworkMode::kBridge);
  EXPECT_EQ(in("USER").network.mode, NetworkMode::kBridge);
  EXPECT_THAT(in("NONE").name, HasSubstr("without a network"));
}

TEST(TaskContainer, VolumesAreThoseOfTheHost) {
  const auto task = contained(json::parse(R"({"type": "MESOS", "volumes": [
    {"mode": "RW", "container_path": "a", "host_path": "/x"},
    {"mode": "RO", "container_path": "/b", "source": {"type": "HOST_PATH", "host_path": {"path": "/y"}}}]})"));
  EXPECT_EQ(task.name, "");
  EXPECT_THAT(*task.volumes,
              ElementsAre(workload::Volume{"a", "/x", false}, workload::Volume{"/b", "/y", true}));
  EXPECT_EQ(mistake_in_volume(R"({"mode": "RW", "container_path": "a", "source": {"type": "SANDBOX_PATH"}})"),
            "The volume 'a' is of SANDBOX_PATH; there are volumes of the host only");
  EXPECT_THAT(mistake_in_volume(R"({"mode": "RW", "container_path": "a", "host_path": "relative"})"),
              HasSubstr("needs an absolute 'host_path'"));
  EXPECT_THAT(mistake_in_volume(R"({"mode": "RW", "container_path": "a"})"), HasSubstr("absolute"));
  EXPECT_THAT(mistake_in_volume(R"({"mode": "RW", "container_path": "a", "image": {"type": "DOCKER"}})"),
              HasSubstr("is of an image"));
}

TEST(TaskEnvironment, HasTheValuesOfSecrets) {
  const auto read = [](const char* variable) {
    v1::Environment environment;
    EXPECT_TRUE(from_json({{"variables", json::array({json::parse(variable)})}}, environment)) << variable;
    workload::Task task;
    const auto status = read_environment(environment, task);
    return status ? task.environment.at("S") : "mistake: " + status.error().message;
  };
  EXPECT_EQ(read(R"({"name": "S", "value": "plain"})"), "plain");
  EXPECT_EQ(
      read(R"({"name": "S", "type": "SECRET", "secret": {"type": "VALUE", "value": {"data": "aGk="}}})"),
      "hi");
  const std::string prefix = "mistake: Environment variable 'S' of type 'SECRET' ";
  EXPECT_EQ(read(R"({"name": "S", "type": "SECRET"})"), prefix + "must have a secret set");
  EXPECT_EQ(
      read(R"({"name": "S", "type": "SECRET", "secret": {"type": "REFERENCE", "reference": {"name": "x"}}})"),
      prefix + "must have its value: nobody here resolves references");
  EXPECT_EQ(read(R"({"name": "S", "type": "SECRET", "secret": {"value": {"data": "AA=="}}})"),
            prefix + "contains null bytes");
  EXPECT_EQ(read(R"({"name": "S", "type": "SECRET", "secret": {"value": {"data": "/w=="}}})"),
            prefix + "is not UTF-8");
  EXPECT_EQ(read(R"({"name": "S", "type": "SECRET", "value": "v", "secret": {"value": {"data": "aGk="}}})"),
            prefix + "must not have a value set");
}

TEST(KillPolicy, SaysHowLongATaskHas) {
  const auto grace = [](std::int64_t nanoseconds) {
    v1::KillPolicy policy;
    policy.mutable_grace_period()->set_nanoseconds(nanoseconds);
    return grace_of(policy);
  };
  EXPECT_EQ(grace(5'000'000), std::chrono::milliseconds(5));
  EXPECT_EQ(grace(0), std::chrono::milliseconds(0));
  EXPECT_EQ(grace(-1'000'000'000), std::chrono::milliseconds(0));
  EXPECT_EQ(grace_of(v1::KillPolicy()), std::nullopt);
}

}  // namespace
}  // namespace drover::api::mesos
