#include "workload/docker_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string mistake(const std::string& key, const std::string& value) {
  Task task;
  const auto read = read_docker_parameter(key, value, task);
  return read ? "" : read.error().path + " " + read.error().message;
}

TEST(DockerParameters, WhatCanBeKeptIs) {
  Task task;
  task.environment = {{"A", "own"}};
  for (const auto& [key, value] :
       {std::pair("env", "A=b"), std::pair("e", "C=d=e"), std::pair("label", "team=x"),
        std::pair("l", "bare"), std::pair("workdir", "/w"), std::pair("read-only", "true"),
        std::pair("device", "vendor.com/net=eth1"), std::pair("volume", "/srv/data:/data:ro"),
        std::pair("v", "/tmp:/scratch")})
    EXPECT_TRUE(read_docker_parameter(key, value, task)) << key;
  EXPECT_EQ(task.environment, (std::map<std::string, std::string>{{"A", "own"}, {"C", "d=e"}}));
  EXPECT_EQ(task.labels.at("team"), "x");
  EXPECT_EQ(task.labels.at("bare"), "");
  EXPECT_EQ(task.working_directory, "/w");
  EXPECT_TRUE(task.read_only);
  EXPECT_THAT(task.devices, ElementsAre("vendor.com/net=eth1"));
  EXPECT_THAT(*task.volumes,
              ElementsAre(Volume{"/data", "/srv/data", true}, Volume{"/scratch", "/tmp", false}));
}

TEST(DockerParameters, WhatStandsInMostDefinitionsIsTaken) {
  for (const auto& [key, value] :
       {std::pair("shm-size", "8g"), std::pair("ulimit", "memlock=-1"), std::pair("hostname", "h"),
        std::pair("memory-swap", "-1"), std::pair("rm", "true"), std::pair("log-driver", "none"),
        std::pair("ipc", "private")}) {
    Task task;
    EXPECT_TRUE(read_docker_parameter(key, value, task)) << key;
    EXPECT_EQ(task, Task()) << key;
  }
}

TEST(DockerParameters, WhoIsRefusedIsToldWhatThereIsInstead) {
  for (const auto& [key, value, instead] :
       {std::tuple("user", "1000:1000", "name him in the definition itself"),
        std::tuple("add-host", "db:10.0.0.1", "/etc/hosts"),
        std::tuple("dns", "10.0.0.2", "/etc/resolv.conf"),
        std::tuple("ipc", "host", "as large as its memory")}) {
    Task task;
    const auto read = read_docker_parameter(key, value, task);
    ASSERT_FALSE(read) << key;
    EXPECT_THAT(read.error().hint, HasSubstr(instead));
    EXPECT_EQ(task, Task()) << key;
  }
}

TEST(DockerParameters, WhatCannotBeKeptIsRefusedInWords) {
  for (const std::string key : {"cap-add", "net", "ipc", "user", "add-host", "dns", "security-opt", "pid"})
    EXPECT_EQ(mistake(key, "x"), "/key the parameter '" + key + "' of Docker cannot be kept");
  for (const std::string key : {"runtime", "gpus", "privileged"})
    EXPECT_THAT(mistake(key, "x"), HasSubstr("go around the choice of GPUs"));
  for (const auto* volume : {"name:/data", "/data", "/a:/b:shared", ""})
    EXPECT_THAT(mistake("volume", volume), HasSubstr("/value the volume")) << volume;
  for (const auto* variable : {"A", "=b", ""}) EXPECT_THAT(mistake("env", variable), HasSubstr("/value"));
  EXPECT_THAT(mistake("device", "/dev/fuse"), HasSubstr("/value the device '/dev/fuse'"));
}

}  // namespace
}  // namespace drover::workload
