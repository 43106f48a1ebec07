#include "container/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "container/environment.h"
#include "container/init.h"
#include "container/limits.h"

namespace drover::container {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

Launch a_launch() {
  Launch launch;
  launch.task.id = "0123456789abcdef";
  launch.task.command = {"run", "me"};
  launch.task.user = User{1000, 1000, {27, 100}, "ada", "/home/ada"};
  launch.task.resources.milli_cpus = 1500;
  launch.task.resources.memory_bytes = 512ULL << 20;
  return launch;
}

Launch with_gpus() {
  auto launch = a_launch();
  launch.gpu_devices = {{"/dev/nvidia1", 195, 1, 0666}, {"/dev/nvidia5", 195, 5, 0666}};
  launch.gpu_uuids = {"GPU-b", "GPU-f"};
  launch.driver.control_devices = {{"/dev/nvidiactl", 195, 255, 0666}};
  launch.driver.volume = []() -> Result<std::vector<HostMount>> {
    return std::vector<HostMount>{{"/state/driver/nvidia_390.30", "/usr/local/nvidia"},
                                  {"/state/live", "/usr/local/nvidia/share/live", true}};
  };
  return launch;
}

image::Image an_image() {
  image::Image image;
  image.reference = "oci:/layout";
  image.config.entrypoint = {"/entry"};
  image.config.command = {"default"};
  image.config.labels = {{"com.nvidia.volumes.needed", "nvidia_driver"}};
  return image;
}

BundleFacts facts() {
  BundleFacts facts;
  facts.root = "/state/tasks/t/root";
  facts.sandbox = "/state/tasks/t/sandbox";
  facts.cgroup = "/drover/t";
  facts.user = a_launch().task.user;
  facts.files = {{"/etc/resolv.conf", "/etc/resolv.conf"}};
  facts.init = "/state/drover-init";
  facts.filter = "/state/seccomp-users";
  facts.limit_swap = true;
  return facts;
}

json specification(const Launch& launch, const image::Image* image, const BundleFacts& given = facts()) {
  auto complete = given;
  if (gets_driver_volume(launch, image)) complete.driver_volume = *launch.driver.volume();
  const auto made = make_specification(launch, image, complete);
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? json::parse(made->configuration) : json();
}

std::vector<BindPlan> binds(const Launch& launch, const image::Image* image) {
  auto complete = facts();
  if (gets_driver_volume(launch, image)) complete.driver_volume = *launch.driver.volume();
  return make_specification(launch, image, complete)->binds;
}

std::vector<std::string> destinations(const std::vector<BindPlan>& binds) {
  std::vector<std::string> all;
  for (const auto& bind : binds) all.push_back(bind.destination);
  return all;
}

TEST(Arguments, TheTasksCommandReplacesTheImagesCommandOnly) {
  const auto image = an_image();
  auto task = a_launch().task;
  EXPECT_THAT(arguments_of(task, &image).value(), ElementsAre("/entry", "run", "me"));
  task.bypass_entrypoint = true;
  EXPECT_THAT(arguments_of(task, &image).value(), ElementsAre("run", "me"));
  task.bypass_entrypoint = false;
  task.command = {};
  EXPECT_THAT(arguments_of(task, &image).value(), ElementsAre("/entry", "default"));
  EXPECT_FALSE(arguments_of(task, nullptr));
  const image::Image empty;
  EXPECT_FALSE(arguments_of(task, &empty));
}

TEST(Specification, DeniesAllDevicesFirstAndThenAllowsExactlyTheGivenOnes) {
  const auto rules = specification(with_gpus(), nullptr)["linux"]["resources"]["devices"];
  ASSERT_EQ(rules.size(), 4U);
  EXPECT_EQ(rules[0], json::parse(R"({"allow": false, "access": "rwm"})"));
  for (const auto& [rule, minor] : {std::pair{1, 1}, {2, 5}, {3, 255}}) {
    EXPECT_EQ(rules[static_cast<std::size_t>(rule)]["allow"], true);
    EXPECT_EQ(rules[static_cast<std::size_t>(rule)]["major"], 195);
    EXPECT_EQ(rules[static_cast<std::size_t>(rule)]["minor"], minor);
  }
}

TEST(Specification, WithoutGpusThereAreNoControlDevicesAndNoVolume) {
  auto launch = with_gpus();
  launch.gpu_devices.clear();
  launch.gpu_uuids.clear();
  const auto image = an_image();
  const auto made = specification(launch, &image);
  EXPECT_THAT(make_specification(launch, &image, facts())->devices, ::testing::IsEmpty());
  EXPECT_EQ(made["linux"]["resources"]["devices"].size(), 1U);
  EXPECT_THAT(destinations(binds(launch, &image)), Not(Contains("/usr/local/nvidia")));
}

TEST(Specification, TheShimMakesTheNodes) {
  auto launch = with_gpus();
  launch.gpu_devices.front().path = "/dev/dri//card1";
  const auto made = make_specification(launch, nullptr, facts()).value();
  EXPECT_EQ(json::parse(made.configuration)["linux"]["devices"], json::array());
  ASSERT_EQ(made.devices.size(), 3U);
  EXPECT_EQ(made.devices[0], (DevicePlan{"dri/card1", "c", 195, 1, 0666, 0, 0}));
  EXPECT_EQ(made.devices[2].path, "nvidiactl");
}

TEST(Specification, NoDeviceMountsOverWhatEachContainerHas) {
  auto launch = with_gpus();
  for (const char* place : {"/", "/dev", "/dev/", "/tmp/../dev", "/proc", "/sys"}) {
    launch.devices.mounts = {
        {.host_path = "/opt/vendor", .container_path = place, .type = "", .options = {"rbind"}}};
    const auto made = make_specification(launch, nullptr, facts());
    ASSERT_FALSE(made) << place;
    EXPECT_THAT(made.error().message, ::testing::HasSubstr("mount '/opt/vendor' over '/"));
  }
  launch.devices.mounts.front().container_path = "/dev/vendor";
  EXPECT_TRUE(make_specification(launch, nullptr, facts()));
}

TEST(Specification, RootOfAContainerIsAnOrdinaryUserWhereIdsAreGiven) {
  auto mapped = facts();
  mapped.user = User{0, 0, {}, "root", "/root"};
  mapped.ids = {300'000};
  const auto image = an_image();
  const auto plain = [&](const IdMap& ids) {
    auto given = mapped;
    given.ids = ids;
    return make_specification(a_launch(), &image, given)->configuration;
  };
  const auto part = json::parse(plain({300'000}))["linux"];
  EXPECT_THAT(part["namespaces"].get<std::vector<json>>(), Contains(json{{"type", "user"}}));
  for (const char* map : {"uidMappings", "gidMappings"})
    EXPECT_EQ(part[map], json::parse(R"([{"containerID": 0, "hostID": 300000, "size": 65536}])")) << map;
  EXPECT_EQ(json::parse(without_ids(plain({300'000}))), json::parse(plain({})));
}

TEST(Specification, MountsTheDriverVolumeReadOnlyWhenTheImageAsks) {
  auto image = an_image();
  EXPECT_THAT(
      binds(with_gpus(), &image),
      IsSupersetOf(
          {BindPlan{"/state/driver/nvidia_390.30", "/usr/local/nvidia", {"rbind", "ro", "nosuid", "nodev"}},
           BindPlan{"/state/live", "/usr/local/nvidia/share/live", {"rbind", "noexec", "nosuid", "nodev"}}}));
  image.config.labels.clear();
  EXPECT_THAT(destinations(binds(with_gpus(), &image)), Not(Contains("/usr/local/nvidia")));
  EXPECT_THAT(destinations(binds(with_gpus(), nullptr)), Not(Contains("/usr/local/nvidia")));
}

TEST(Specification, LimitsCpuAndMemory) {
  const auto resources = specification(a_launch(), nullptr)["linux"]["resources"];
  EXPECT_EQ(resources["cpu"], json::parse(R"({"shares": 1536, "quota": 150000, "period": 100000})"));
  EXPECT_EQ(resources["memory"], json::parse(R"({"limit": 536870912, "swap": 536870912})"));
  auto without_swap = facts();
  without_swap.limit_swap = false;
  EXPECT_FALSE(
      specification(a_launch(), nullptr, without_swap)["linux"]["resources"]["memory"].contains("swap"));
}

TEST(Specification, ATaskMayUseMoreThanItWasGiven) {
  auto launch = a_launch();
  launch.task.limits = {3000, 1ULL << 30};
  auto specified = specification(launch, nullptr);
  auto resources = specified["linux"]["resources"];
  EXPECT_EQ(resources["cpu"], json::parse(R"({"shares": 1536, "quota": 300000, "period": 100000})"));
  EXPECT_EQ(resources["memory"],
            json::parse(R"({"limit": 1073741824, "swap": 1073741824, "reservation": 536870912})"));
  EXPECT_THAT(specified["mounts"].dump(), HasSubstr("size=1073741824"));
  launch.task.limits = {0, 0};
  specified = specification(launch, nullptr);
  resources = specified["linux"]["resources"];
  EXPECT_EQ(resources["cpu"], json::parse(R"({"shares": 1536})"));
  EXPECT_EQ(resources["memory"], json::parse(R"({"reservation": 536870912})"));
  EXPECT_THAT(specified["mounts"].dump(), Not(HasSubstr("size=")));
  auto machine = facts();
  machine.machine_memory_bytes = 8ULL << 30;
  for (const std::uint64_t most : {0ULL, 9ULL << 30}) {
    launch.task.limits = {0, most};
    EXPECT_EQ(specification(launch, nullptr, machine)["linux"]["resources"]["memory"]["limit"], 8ULL << 30)
        << "more than the machine has";
  }
}

TEST(Limits, AreSuchThatTheKernelTakesThem) {
  auto task = a_launch().task;
  task.limits = {1LL << 50, {}};
  EXPECT_LT(cpu_limits(task).quota_micros, 1ULL << 44);
  task.resources.milli_cpus = 1;
  task.limits = {1, {}};
  EXPECT_EQ(cpu_limits(task).quota_micros, 1000u);
  EXPECT_EQ(cpu_limits(task).shares, 2u);
  task.limits = {{}, 0};
  EXPECT_EQ(memory_limit(task, 1), task.resources.memory_bytes) << "no less than it was given";
}

TEST(Limits, WhoUsesMoreThanHeWasGivenGoesFirstWhenMemoryRunsShort) {
  constexpr std::uint64_t kMachine = 8ULL << 30;
  auto task = a_launch().task;
  EXPECT_EQ(oom_score_adj_of(task, kMachine), 0);
  task.limits.memory_bytes = task.resources.memory_bytes;
  EXPECT_EQ(oom_score_adj_of(task, kMachine), 0) << "it cannot";
  task.limits.memory_bytes = 1ULL << 30;
  EXPECT_EQ(oom_score_adj_of(task, kMachine), 937) << "it has a sixteenth";
  task.limits.memory_bytes = 0;
  EXPECT_EQ(oom_score_adj_of(task, kMachine), 937);
  EXPECT_EQ(oom_score_adj_of(task, 1), 0) << "it has all";
  EXPECT_EQ(oom_score_adj_of(task, 0), 0) << "nobody knows";
}

TEST(Specification, OnlyRootHasCapabilitiesAndNobodyGetsNewOnes) {
  auto process = specification(a_launch(), nullptr)["process"];
  EXPECT_EQ(process["noNewPrivileges"], true);
  for (const auto& [set, held] : process["capabilities"].items()) EXPECT_EQ(held, json::array()) << set;
  auto as_root = facts();
  as_root.user = User{0, 0, {}, "root", "/root"};
  process = specification(a_launch(), nullptr, as_root)["process"];
  const auto effective = process["capabilities"]["effective"].get<std::vector<std::string>>();
  EXPECT_THAT(effective, Contains("CAP_CHOWN"));
  EXPECT_EQ(process["capabilities"]["bounding"], process["capabilities"]["effective"]);
}

TEST(Specification, NamesWhatTheSecurityModulesOfTheKernelEnforce) {
  const auto none = specification(a_launch(), nullptr);
  EXPECT_FALSE(none["process"].contains("apparmorProfile"));
  EXPECT_FALSE(none["process"].contains("selinuxLabel"));
  EXPECT_FALSE(none["linux"].contains("mountLabel"));
  auto modules = facts();
  modules.apparmor_profile = "drover-default";
  modules.selinux =
      SelinuxLabels{"system_u:system_r:container_t:s0:c1,c2", "system_u:object_r:container_file_t:s0:c1,c2"};
  const auto made = specification(a_launch(), nullptr, modules);
  EXPECT_EQ(made["process"]["apparmorProfile"], "drover-default");
  EXPECT_EQ(made["process"]["selinuxLabel"], modules.selinux->process);
  EXPECT_EQ(made["linux"]["mountLabel"], modules.selinux->files);
}

TEST(Specification, HidesAndClosesWhatTheKernelTells) {
  auto hot = facts();
  hot.thermal_folders = {"/sys/devices/system/cpu/cpu0/thermal_throttle"};
  const auto part = specification(a_launch(), nullptr, hot)["linux"];
  EXPECT_THAT(part["maskedPaths"].get<std::vector<std::string>>(), Contains(hot.thermal_folders.front()));
  EXPECT_THAT(part["readonlyPaths"].get<std::vector<std::string>>(), Contains("/proc/sys"));
}

TEST(Specification, NeverLowersTheOomScore) {
  auto protected_daemon = facts();
  protected_daemon.oom_score_adj = -900;
  EXPECT_EQ(specification(a_launch(), nullptr, protected_daemon)["process"]["oomScoreAdj"], 0);
  auto humble_daemon = facts();
  humble_daemon.oom_score_adj = 500;
  EXPECT_EQ(specification(a_launch(), nullptr, humble_daemon)["process"]["oomScoreAdj"], 500);
}

TEST(Specification, HasANameOfItsOwnOnANetworkOfItsOwnOnly) {
  auto launch = a_launch();
  EXPECT_FALSE(specification(launch, nullptr).contains("hostname")) << "others resolve the machine's";
  launch.task.network.mode = workload::NetworkMode::kBridge;
  EXPECT_EQ(specification(launch, nullptr)["hostname"], launch.task.id.substr(0, 12));
}

TEST(Specification, SeesOnlyItsOwnCgroupWhereThereIsAnamespaceForIt) {
  const auto count = [](const json& made) { return made["linux"]["namespaces"].size(); };
  auto unified = facts();
  unified.cgroup_v2 = true;
  EXPECT_EQ(count(specification(a_launch(), nullptr, unified)),
            count(specification(a_launch(), nullptr)) + 1);
}

TEST(Specification, KeepsAReadOnlyRootReadOnly) {
  auto launch = a_launch();
  EXPECT_EQ(specification(launch, nullptr)["root"]["readonly"], false);
  launch.task.read_only = true;
  EXPECT_EQ(specification(launch, nullptr)["root"]["readonly"], true);
}

TEST(Specification, TheRuntimeEntersNoFolderOfTheTasksChoice) {
  auto launch = a_launch();
  auto image = an_image();
  const auto directory = [&](const image::Image* used) {
    const auto process = specification(launch, used)["process"];
    EXPECT_EQ(process["cwd"], "/");
    const auto of_another =
        direct_arguments(process["args"].get<std::vector<std::string>>(), {"look"}).value();
    return of_another.at(of_another.size() - 2);
  };
  EXPECT_EQ(directory(nullptr), "/state/tasks/t/sandbox");
  EXPECT_EQ(directory(&image), "/mnt/mesos/sandbox");
  image.config.working_directory = "/app";
  EXPECT_EQ(directory(&image), "/app");
  launch.task.working_directory = "/work";
  EXPECT_EQ(directory(&image), "/work");
  launch.task.working_directory = "relative";
  EXPECT_FALSE(make_specification(launch, &image, facts()));
}

TEST(Specification, TheRuntimeMountsOnlyInTheContainersOwnFolders) {
  const auto image = an_image();
  const auto made = specification(with_gpus(), &image);
  for (const auto& mount : made["mounts"])
    EXPECT_THAT(mount["destination"],
                ::testing::AnyOf(StartsWith("/dev"), StartsWith("/proc"), StartsWith("/sys")));
}

TEST(Specification, RefusesWhatADeviceWantsMadeElsewhere) {
  const auto image = an_image();
  auto launch = with_gpus();
  launch.gpu_devices.push_back({"/opt/nvidia9", 195, 9, 0666});
  EXPECT_FALSE(make_specification(launch, &image, facts()));
  launch.gpu_devices.back().path = "/dev/../opt/nvidia9";
  EXPECT_FALSE(make_specification(launch, &image, facts()));
  launch.gpu_devices.pop_back();
  launch.devices.mounts = {{"tmpfs", "/scratch", "tmpfs", {}}};
  EXPECT_FALSE(make_specification(launch, &image, facts()));
}

TEST(Specification, PinsToTheGivenCpus) {
  auto pinned = facts();
  pinned.cpuset = "0-3,8";
  EXPECT_EQ(specification(a_launch(), nullptr, pinned)["linux"]["resources"]["cpu"]["cpus"], "0-3,8");
  EXPECT_FALSE(specification(a_launch(), nullptr)["linux"]["resources"]["cpu"].contains("cpus"));
}

TEST(Environment, WhatIsolationRestsOnWinsOverImageAndTask) {
  auto launch = a_launch();
  launch.task.environment = {
      {"NVIDIA_VISIBLE_DEVICES", "all"}, {"MESOS_SANDBOX", "/elsewhere"}, {"MESOS_DIRECTORY", "/else"}};
  auto image = an_image();
  image.config.environment = {{"NVIDIA_VISIBLE_DEVICES", "all"}};
  const auto none = environment_of(launch, &image, launch.task.user, "/sandbox");
  EXPECT_THAT(none, Contains("NVIDIA_VISIBLE_DEVICES=void"));
  EXPECT_THAT(none, Contains("MESOS_SANDBOX=/mnt/mesos/sandbox"));
  EXPECT_THAT(none, Contains("MESOS_DIRECTORY=/mnt/mesos/sandbox"));
  auto owner = with_gpus();
  owner.task.environment = launch.task.environment;
  EXPECT_THAT(environment_of(owner, &image, launch.task.user, "/sandbox"),
              Contains("NVIDIA_VISIBLE_DEVICES=GPU-b,GPU-f"));
}

TEST(Environment, AMemberOfAGangKnowsItsPlace) {
  auto launch = with_gpus();
  launch.gang = GangPlace{"g1", 2, {"here", "here", "there"}, "10.0.0.1", 31007};
  launch.task.environment = {{"MASTER_PORT", "29500"}, {"DROVER_GANG_ID", "mine"}};
  auto image = an_image();
  image.config.environment = {{"WORLD_SIZE", "1"}};
  const auto made = environment_of(launch, &image, launch.task.user, "/sandbox");
  for (const char* expected :
       {"RANK=2", "WORLD_SIZE=3", "NODE_RANK=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=10.0.0.1",
        "MASTER_PORT=29500", "DROVER_GANG_ID=g1", "DROVER_GANG_HOSTS=here,here,there"})
    EXPECT_THAT(made, Contains(expected));
  EXPECT_THAT(environment_of(with_gpus(), nullptr, launch.task.user, "/sandbox"),
              Not(Contains(::testing::StartsWith("RANK="))));
}

TEST(Environment, ATaskKnowsItsSharesItsCardsAndHowOftenItBeganAgain) {
  auto launch = with_gpus();
  launch.gpu_shares = {{500, 8ULL << 30}, {125, 0}};
  launch.nics = {"mlx5_0", "mlx5_1"};
  launch.attempt = 3;
  launch.preemptions = 2;
  launch.task.batch.array = workload::ArrayMembership{"0f3a", 7, 100, 10};
  launch.task.environment = {{"DROVER_GPU_SHARE", "1"}};
  const auto made = environment_of(launch, nullptr, launch.task.user, "/sandbox");
  for (const char* expected :
       {"DROVER_GPU_SHARE=0.5,0.125", "DROVER_GPU_MEMORY=8589934592,0", "DROVER_NICS=mlx5_0,mlx5_1",
        "DROVER_PREEMPTIONS=2", "DROVER_ATTEMPT=3", "DROVER_ARRAY_INDEX=7", "SLURM_ARRAY_JOB_ID=0f3a"})
    EXPECT_THAT(made, Contains(expected));
  EXPECT_THAT(environment_of(with_gpus(), nullptr, launch.task.user, "/sandbox"),
              Not(Contains(::testing::StartsWith("DROVER_GPU_SHARE="))));
}

TEST(Environment, LaterSourcesWinAndTheDriversPathsAreAdded) {
  auto launch = with_gpus();
  auto image = an_image();
  image.config.environment = {{"A", "image"}, {"B", "image"}, {"PATH", "/image"}};
  launch.task.environment = {{"B", "task"}, {"HOME", "/elsewhere"}};
  const auto made = environment_of(launch, &image, launch.task.user, "/sandbox");
  EXPECT_THAT(made, Contains("A=image"));
  EXPECT_THAT(made, Contains("B=task"));
  EXPECT_THAT(made, Contains("HOME=/elsewhere"));
  EXPECT_THAT(made, Contains("USER=ada"));
  EXPECT_THAT(made, Contains("PATH=/image:/usr/local/nvidia/bin"));
}

}  // namespace
}  // namespace drover::container
