#include "container/docker/create_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::container::docker {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;

Launch launch_of_root() {
  Launch launch;
  launch.task.id = "0123456789abcdef";
  launch.task.image = "x:1";
  launch.task.resources.memory_bytes = 64 << 20;
  launch.task.resources.milli_cpus = 500;
  return launch;
}

image::Image image_of_test() {
  image::Image image;
  image.reference = "x:1";
  image.config.entrypoint = {"/entry"};
  image.config.command = {"serve"};
  image.config.environment = {{"NVIDIA_VISIBLE_DEVICES", "all"}, {"A", "image"}};
  return image;
}

BodyFacts facts_of_test() {
  BodyFacts facts;
  facts.image_id = "sha256:1f";
  facts.state = "/state";
  facts.sandbox = "/state/tasks/t/sandbox";
  facts.init = "/state/drover-init";
  facts.device_folder = "/state/tasks/t/devices";
  facts.volume_folder = "/state/tasks/t/volumes";
  facts.user = User{1000, 100, {}, "ann", "/home/ann"};
  facts.machine_memory_bytes = 2ULL << 30;
  return facts;
}

json body_of(const Launch& launch, const BodyFacts& facts) {
  return make_create_body(launch, image_of_test(), facts).value();
}

TEST(DockerCreateBody, RunsTheImageSCommandBehindItsEntrypoint) {
  auto launch = launch_of_root();
  auto body = body_of(launch, facts_of_test());
  EXPECT_EQ(body["Image"], "sha256:1f") << "the one that was looked at, whatever the name means by then";
  EXPECT_EQ(body["Entrypoint"], json::array({"/dev/drover-init", "--hold", "/mnt/mesos/sandbox"}));
  EXPECT_EQ(body["Cmd"], json::array({"/entry", "serve"}));
  launch.task.command = {"train", "-x"};
  EXPECT_EQ(body_of(launch, facts_of_test())["Cmd"], json::array({"/entry", "train", "-x"}));
  launch.task.bypass_entrypoint = true;
  body = body_of(launch, facts_of_test());
  EXPECT_EQ(body["Cmd"], json::array({"train", "-x"}));
}

TEST(DockerCreateBody, AWorkingFolderIsLeftToTheInit) {
  auto launch = launch_of_root();
  launch.task.working_directory = "/v/closed";
  auto body = body_of(launch, facts_of_test());
  EXPECT_EQ(body["Entrypoint"], json::array({"/dev/drover-init", "--hold", "/v/closed"}));
  EXPECT_EQ(body["WorkingDir"], "/");
  auto facts = facts_of_test();
  facts.entered = "/app";
  EXPECT_EQ(body_of(launch, facts)["WorkingDir"], "/app");
}

TEST(DockerCreateBody, OnlyTheTasksOwnDevicesAreGiven) {
  auto launch = launch_of_root();
  auto host = body_of(launch, facts_of_test())["HostConfig"];
  EXPECT_EQ(host["Devices"], json::array());
  EXPECT_FALSE(host.contains("Privileged"));
  launch.gpu_devices = {{"/dev/nvidia3", 195, 3}};
  launch.gpu_uuids = {"GPU-3"};
  launch.driver.control_devices = {{"/dev/nvidiactl", 195, 255}};
  const auto body = body_of(launch, facts_of_test());
  host = body["HostConfig"];
  EXPECT_EQ(host["Devices"], json::parse(R"([
    {"PathOnHost": "/state/tasks/t/devices/0", "PathInContainer": "/dev/nvidia3", "CgroupPermissions": "rw"},
    {"PathOnHost": "/state/tasks/t/devices/1", "PathInContainer": "/dev/nvidiactl", "CgroupPermissions": "rw"}])"));
  EXPECT_THAT(body["Env"].get<std::vector<std::string>>(), Contains("NVIDIA_VISIBLE_DEVICES=GPU-3"));
}

TEST(DockerCreateBody, APrivilegedTaskOfAUserIsStillNoRoot) {
  auto launch = launch_of_root();
  launch.task.privileged = true;
  launch.gpu_devices = {{"/dev/nvidia3", 195, 3}};
  const auto body = body_of(launch, facts_of_test());
  const auto& host = body["HostConfig"];
  EXPECT_EQ(host["Privileged"], true);
  EXPECT_EQ(host["Devices"].size(), 1U);
  EXPECT_EQ(body["User"], "1000:100");
  EXPECT_EQ(host["CapDrop"], json::array({"ALL"}));
  EXPECT_EQ(host["SecurityOpt"], json::array({"no-new-privileges"}));
}

TEST(DockerCreateBody, NeitherImageNorTaskWidenWhatWasGiven) {
  auto launch = launch_of_root();
  launch.task.environment = {{"NVIDIA_VISIBLE_DEVICES", "all"}};
  EXPECT_THAT(body_of(launch, facts_of_test())["Env"].get<std::vector<std::string>>(),
              Contains("NVIDIA_VISIBLE_DEVICES=void"));
}

TEST(DockerCreateBody, RootKeepsDockersCapabilitiesAndOthersNone) {
  auto facts = facts_of_test();
  const auto launch = launch_of_root();
  EXPECT_EQ(body_of(launch, facts)["User"], "1000:100");
  EXPECT_EQ(body_of(launch, facts)["HostConfig"]["CapDrop"], json::array({"ALL"}));
  facts.user = User{0, 0, {5}, "root", "/root"};
  const auto host = body_of(launch, facts)["HostConfig"];
  EXPECT_EQ(host["CapDrop"], json::array({"NET_RAW"})) << "others are on the machine's network too";
  auto alone = launch;
  alone.task.network.mode = workload::NetworkMode::kBridge;
  EXPECT_FALSE(body_of(alone, facts)["HostConfig"].contains("CapDrop"));
  EXPECT_EQ(host["GroupAdd"], json::array({"5"}));
  EXPECT_EQ(host["SecurityOpt"], json::array({"no-new-privileges"}));
}

TEST(DockerCreateBody, LimitsAreThoseOfTheTask) {
  auto launch = launch_of_root();
  auto facts = facts_of_test();
  facts.limit_swap = true;
  facts.cpuset = "0-3";
  auto host = body_of(launch, facts)["HostConfig"];
  EXPECT_EQ(host["Memory"], 64 << 20);
  EXPECT_EQ(host["MemorySwap"], 64 << 20);
  EXPECT_EQ(host["ShmSize"], 64 << 20);
  EXPECT_EQ(host["CpuQuota"], 50'000);
  EXPECT_EQ(host["CpuShares"], 512);
  EXPECT_EQ(host["CpusetCpus"], "0-3");
  EXPECT_FALSE(host.contains("MemoryReservation"));
  launch.task.limits = {1000, 128 << 20};
  host = body_of(launch, facts)["HostConfig"];
  EXPECT_EQ(host["Memory"], 128 << 20);
  EXPECT_EQ(host["MemorySwap"], 128 << 20);
  EXPECT_EQ(host["MemoryReservation"], 64 << 20);
  EXPECT_EQ(host["ShmSize"], 128 << 20);
  EXPECT_EQ(host["CpuQuota"], 100'000);
  EXPECT_EQ(host["CpuShares"], 512);
  launch.task.limits = {0, 0};
  host = body_of(launch, facts)["HostConfig"];
  EXPECT_EQ(host["Memory"], 2ULL << 30) << "all that the machine has";
  EXPECT_EQ(host["MemorySwap"], 2ULL << 30);
  EXPECT_EQ(host["MemoryReservation"], 64 << 20);
  EXPECT_EQ(host["ShmSize"], 2ULL << 30);
  EXPECT_FALSE(host.contains("CpuQuota"));
  EXPECT_EQ(host["CpuShares"], 512);
  launch.task.limits = {};
  launch.task.resources.memory_bytes = 0;
  host = body_of(launch, facts)["HostConfig"];
  EXPECT_FALSE(host.contains("Memory"));
  EXPECT_EQ(host["ShmSize"], 1 << 30);
}

TEST(DockerCreateBody, MountsTheSandboxTheDriverAndTheVolumes) {
  auto facts = facts_of_test();
  facts.driver_volume = {{"/state/driver/nvidia_1", "/usr/local/nvidia"},
                         {"/state/live", "/usr/local/nvidia/share/live", true}};
  facts.volumes = {{"/srv/data", "/data", "", true},
                   {"/srv/in", "/data/in", "", false},
                   {"/srv/out", "/mnt/mesos/sandbox/out", "out", false}};
  std::vector<std::string> shown;
  const auto body = body_of(launch_of_root(), facts);
  for (const auto& mount : body["HostConfig"]["Mounts"])
    shown.push_back(mount["Source"].get<std::string>() + " " + mount["Target"].get<std::string>() +
                    (mount["ReadOnly"].get<bool>() ? " ro" : " rw"));
  EXPECT_THAT(shown, ElementsAre("/state/driver/nvidia_1 /usr/local/nvidia ro",
                                 "/state/live /usr/local/nvidia/share/live rw",
                                 "/state/drover-init /dev/drover-init ro",
                                 "/state/tasks/t/volumes/sandbox /mnt/mesos/sandbox rw",
                                 "/state/tasks/t/volumes/0 /data ro"))
      << "what lies in those is mounted there before";
}

TEST(DockerCreateBody, PortsOfABridgeLeadInside) {
  auto launch = launch_of_root();
  EXPECT_EQ(body_of(launch, facts_of_test())["HostConfig"]["NetworkMode"], "host");
  EXPECT_FALSE(body_of(launch, facts_of_test()).contains("Hostname")) << "it is the machine's";
  launch.task.network.mode = workload::NetworkMode::kBridge;
  launch.task.network.ports = {{"web", workload::PortProtocol::kBoth, 80, 0, {}}};
  launch.host_ports = {31005};
  const auto body = body_of(launch, facts_of_test());
  EXPECT_EQ(body["HostConfig"]["NetworkMode"], "bridge");
  EXPECT_EQ(body["Hostname"], launch.task.id.substr(0, 12));
  EXPECT_EQ(body["ExposedPorts"], json::parse(R"({"80/tcp": {}, "80/udp": {}})"));
  EXPECT_EQ(body["HostConfig"]["PortBindings"]["80/tcp"],
            json::parse(R"([{"HostIp": "", "HostPort": "31005"}])"));
}

TEST(DockerCreateBody, WithNothingToRunItIsAnError) {
  EXPECT_EQ(make_create_body(launch_of_root(), image::Image{}, facts_of_test()).error().kind,
            ErrorKind::kInvalid);
}

}  // namespace
}  // namespace drover::container::docker
