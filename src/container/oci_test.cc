#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/ranges.h"
#include "container/oci_fixture.h"

namespace drover::container {
namespace {

using ::testing::HasSubstr;

class OciTest : public OciFixture {};

TEST_F(OciTest, RunsACommandToItsEnd) {
  const auto ending = run(launch_of("true", {"/bin/true"}));
  EXPECT_EQ(ending.exit_status, 0);
  EXPECT_FALSE(ending.stopped);
  EXPECT_FALSE(ending.lost);
  EXPECT_EQ(ending.message, "");
}

TEST_F(OciTest, KeepsOutputAndExitStatus) {
  const auto launch = launch_of("output", {"/bin/sh", "-c", "echo to-out; echo to-err >&2; exit 3"});
  EXPECT_EQ(run(launch).exit_status, 3);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "to-out\n");
  EXPECT_EQ(sandbox_file(launch.task.id, "stderr"), "to-err\n");
}

TEST_F(OciTest, TellsASignal) {
  const auto ending =
      run(launch_of("signal", {"/bin/sh", "-c", "trap - SEGV; sh -c 'kill -SEGV $$'; exit $?"}));
  EXPECT_EQ(ending.exit_status, 128 + SIGSEGV);
}

TEST_F(OciTest, StopsASleepAtOnceAlthoughItIsTheFirstProcess) {
  auto launch = launch_of("sleep", {"/bin/sleep", "1000"});
  launch.task.grace = std::chrono::hours(1);
  ASSERT_TRUE(oci_->launch(launch));
  EXPECT_TRUE(observer_.await_started(launch.task.id));
  ASSERT_TRUE(oci_->stop(launch.task.id, false));
  const auto ending = observer_.await_ending(launch.task.id);
  ASSERT_TRUE(ending);
  EXPECT_TRUE(ending->stopped);
  EXPECT_EQ(ending->exit_status, 128 + SIGTERM);
}

TEST_F(OciTest, AStopRightAfterTheStartIsNotLostOnTheRuntime) {
  for (int round = 0; round < 10; ++round) {
    auto launch = launch_of("early" + std::to_string(round), {"/bin/sleep", "1000"});
    launch.task.grace = std::chrono::hours(1);
    ASSERT_TRUE(oci_->launch(launch));
    ASSERT_TRUE(oci_->stop(launch.task.id, false));
    EXPECT_EQ(observer_.await_ending(launch.task.id).value().exit_status, 128 + SIGTERM);
  }
}

TEST_F(OciTest, AStoppedScriptDoesNotGoOnToItsNextCommand) {
  auto launch = launch_of("script", {"/bin/sh", "-c", "echo one; sleep 1000; echo two"});
  launch.task.grace = std::chrono::hours(1);
  ASSERT_TRUE(oci_->launch(launch));
  while (sandbox_file(launch.task.id, "stdout").empty()) ::usleep(10'000);
  ASSERT_TRUE(oci_->stop(launch.task.id, false));
  EXPECT_EQ(observer_.await_ending(launch.task.id).value().exit_status, 128 + SIGTERM);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "one\n");
}

TEST_F(OciTest, AHandlerOfSigtermDecidesTheExitStatus) {
  const auto launch = launch_of(
      "handler", {"/bin/sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"});
  ASSERT_TRUE(oci_->launch(launch));
  while (sandbox_file(launch.task.id, "stdout").empty()) ::usleep(10'000);
  ASSERT_TRUE(oci_->stop(launch.task.id, false));
  const auto ending = observer_.await_ending(launch.task.id);
  ASSERT_TRUE(ending);
  EXPECT_TRUE(ending->stopped);
  EXPECT_EQ(ending->exit_status, 7);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "up\nbye\n");
}

TEST_F(OciTest, GraceEndsWithSigkill) {
  auto launch =
      launch_of("stubborn", {"/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"});
  launch.task.grace = std::chrono::milliseconds(300);
  ASSERT_TRUE(oci_->launch(launch));
  while (sandbox_file(launch.task.id, "stdout").empty()) ::usleep(10'000);
  ASSERT_TRUE(oci_->stop(launch.task.id, false));
  EXPECT_EQ(observer_.await_ending(launch.task.id).value().exit_status, 128 + SIGKILL);
}

TEST_F(OciTest, ForceKillsAtOnce) {
  auto launch = launch_of("forced", {"/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"});
  launch.task.grace = std::chrono::hours(1);
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(oci_->stop(launch.task.id, true));
  const auto ending = observer_.await_ending(launch.task.id);
  ASSERT_TRUE(ending);
  EXPECT_EQ(ending->exit_status, 128 + SIGKILL);
  EXPECT_TRUE(ending->stopped);
}

TEST_F(OciTest, SaysThatMemoryRanOut) {
  auto launch = launch_of("hungry", {"/bin/sh", "-c", "head -c 200m /dev/zero | tail"});
  launch.task.resources.memory_bytes = 24ULL << 20;
  const auto ending = run(launch);
  EXPECT_TRUE(ending.out_of_memory);
  EXPECT_THAT(ending.message, HasSubstr("out of memory"));
}

TEST_F(OciTest, LetsATaskUseMoreMemoryThanItWasGivenUpToItsLimit) {
  const auto launch_with = [this](const char* id, std::uint64_t limit) {
    auto launch = launch_of(
        id, {"/bin/sh", "-c",
             "test $(cat /proc/self/oom_score_adj) -gt 0 && head -c 64m /dev/zero | tail >/dev/null"});
    launch.task.resources.memory_bytes = 24ULL << 20;
    launch.task.limits.memory_bytes = limit;
    return launch;
  };
  EXPECT_EQ(run(launch_with("bursting", 256ULL << 20)).exit_status, 0);
  EXPECT_EQ(run(launch_with("unlimited", 0)).exit_status, 0);
  EXPECT_TRUE(run(launch_with("beyond", 32ULL << 20)).out_of_memory);
}

TEST_F(OciTest, RunsAsItsUserInASandboxOfItsOwn) {
  auto launch = launch_of(
      "nobody", {"/bin/sh", "-c", "id -u; id -g; pwd; echo mine > file; echo $MESOS_SANDBOX $HOME"});
  launch.task.user = User{65534, 65534, {}, "nobody", "/nonexistent"};
  launch.task.owner = 65534;
  EXPECT_EQ(run(launch).exit_status, 0);
  const auto sandbox = oci_->sandbox(launch.task.id);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"),
            "65534\n65534\n" + sandbox + "\n" + sandbox + " /nonexistent\n");
  EXPECT_EQ(sandbox_file(launch.task.id, "file"), "mine\n");
}

TEST_F(OciTest, ANonRootTaskHasNoCapabilities) {
  auto launch = launch_of(
      "plain", {"/bin/grep", "-E", "CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp:", "/proc/self/status"});
  launch.task.user = User{65534, 65534, {}, "nobody", "/"};
  run(launch);
  const auto output = sandbox_file(launch.task.id, "stdout");
  for (const char* name : {"CapEff", "CapPrm", "CapBnd"})
    EXPECT_THAT(output, HasSubstr(std::string(name) + ":\t0000000000000000"));
  EXPECT_THAT(output, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(output, HasSubstr("Seccomp:\t2"));
}

TEST_F(OciTest, AReadOnlyHostRootIsReadOnlyAllTheWayButForTheSandbox) {
  auto launch = launch_of(
      "readonly", {"/bin/sh", "-c", "touch /x /tmp/x /root/x /var/x 2>&1; touch here && echo sandbox"});
  launch.task.read_only = true;
  EXPECT_EQ(run(launch).exit_status, 0);
  const auto output = sandbox_file(launch.task.id, "stdout");
  EXPECT_THAT(output, HasSubstr("sandbox"));
  for (const char* path : {"/x", "/tmp/x", "/root/x", "/var/x"})
    EXPECT_THAT(output, HasSubstr("'" + std::string(path) + "': Read-only file system"));
}

TEST_F(OciTest, ATaskSeesNeitherTheStateNorOtherTasks) {
  const auto launch = launch_of(
      "hidden", {"/bin/sh", "-c",
                 "ls -A " + state_ + " " + state_ + "/tasks; ls -A /dev | grep -vE '^(console|core)$'"});
  EXPECT_EQ(run(launch).exit_status, 0);
  const auto output = sandbox_file(launch.task.id, "stdout");
  const std::string devices =
      "drover-init\ndrover-seccomp\nfd\nfull\nmqueue\nnull\nptmx\npts\n"
      "random\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n";
  EXPECT_EQ(output, state_ + ":\ntasks\n\n" + state_ + "/tasks:\n" + launch.task.id + "\n" + devices);
}

TEST_F(OciTest, ATaskInheritsNothingButItsOutputs) {
  const auto launch = launch_of("descriptors", {"/bin/ls", "/proc/self/fd"});
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "0\n1\n2\n3\n") << "3 is the folder that ls reads";
}

TEST_F(OciTest, HidesTheFoldersAndFilesItIsToldTo) {
  auto changed = options();
  const auto secret = state_ + "-secret";
  std::filesystem::create_directory(secret);
  std::ofstream(secret + "/file") << "secret";
  std::ofstream(secret + ".txt") << "secret";
  changed.launching.hidden = {secret, secret + ".txt"};
  open(std::move(changed));
  const auto launch =
      launch_of("secret", {"/bin/sh", "-c", "ls -A " + secret + "; cat " + secret + ".txt; echo end"});
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "end\n");
  std::filesystem::remove_all(secret);
  std::filesystem::remove(secret + ".txt");
}

/// Device nodes 195:N that lie on the machine, where a task without an image finds them.
class NodesOnTheMachine {
 public:
  explicit NodesOnTheMachine(const std::vector<unsigned>& minors) {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    ::chmod(folder_.c_str(), 0755);
    for (const auto minor : minors)
      EXPECT_EQ(::mknod(path(minor).c_str(), S_IFCHR | 0666, ::makedev(195, minor)), 0);
  }
  ~NodesOnTheMachine() { std::filesystem::remove_all(folder_); }
  NodesOnTheMachine(const NodesOnTheMachine&) = delete;
  NodesOnTheMachine& operator=(const NodesOnTheMachine&) = delete;
  std::string path(unsigned minor) const { return folder_ + "/" + std::to_string(minor); }

 private:
  std::string folder_ = std::filesystem::temp_directory_path() / "drover-nodes-XXXXXX";
};

TEST_F(OciTest, OpensExactlyTheGpusThatItOwns) {
  const NodesOnTheMachine nodes({3, 4});
  const auto own = nodes.path(3), other = nodes.path(4);
  auto launch = launch_of("gpu", {"/bin/sh", "-c",
                                  "ls /dev/nvidia*; mknod mine c 195 3;"
                                  "for n in /dev/nvidia3 " +
                                      own + " " + other + "; do cat $n; done; exit 0"});
  launch.gpu_devices = {{"/dev/nvidia3", 195, 3, 0666}};
  launch.gpu_uuids = {"GPU-3"};
  launch.driver.control_devices = {{"/dev/nvidiactl", 195, 255, 0666}};
  run(launch);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "/dev/nvidia3\n/dev/nvidiactl\n");
  const auto errors = sandbox_file(launch.task.id, "stderr");
  EXPECT_THAT(errors, HasSubstr("/dev/nvidia3: No such device or address"));
  EXPECT_THAT(errors, HasSubstr("mknod: mine: Operation not permitted"));
  EXPECT_THAT(errors, HasSubstr(own + ": No such device or address"));
  EXPECT_THAT(errors, HasSubstr(other + ": Operation not permitted"));
}

TEST_F(OciTest, ANodeInTheSandboxIsNone) {
  const auto launch = launch_of(
      "node", {"/bin/sh", "-c", "mknod here c 1 3; while ! [ -e put ]; do sleep 0.05; done; cat put"});
  ASSERT_TRUE(oci_->launch(launch));
  const auto node = oci_->sandbox(launch.task.id) + "/put";
  ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0666, ::makedev(1, 3)), 0);
  const auto ending = observer_.await_ending(launch.task.id);
  ASSERT_TRUE(ending);
  EXPECT_NE(ending->exit_status, 0);
  const auto errors = sandbox_file(launch.task.id, "stderr");
  EXPECT_THAT(errors, HasSubstr("here: Operation not permitted"));
  EXPECT_THAT(errors, HasSubstr("put: Permission denied"));
}

TEST_F(OciTest, WithoutGpusNotEvenTheControlDevicesCanBeOpened) {
  const NodesOnTheMachine nodes({0, 255});
  auto launch = launch_of(
      "nogpu",
      {"/bin/sh", "-c", "cat " + nodes.path(0) + " " + nodes.path(255) + "; echo $NVIDIA_VISIBLE_DEVICES"});
  launch.driver.control_devices = {{"/dev/nvidiactl", 195, 255, 0666}};
  launch.task.environment = {{"NVIDIA_VISIBLE_DEVICES", "all"}};
  run(launch);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "void\n");
  const auto errors = sandbox_file(launch.task.id, "stderr");
  EXPECT_THAT(errors, HasSubstr(nodes.path(0) + ": Operation not permitted"));
  EXPECT_THAT(errors, HasSubstr(nodes.path(255) + ": Operation not permitted"));
}

TEST_F(OciTest, IsPinnedToItsCpus) {
  const auto usable = usable_cpus(find_hierarchies().value());
  if (usable.size() < 2) GTEST_SKIP() << "needs two CPUs and a cpuset controller";
  const auto allowed_of = [&](const std::string& name, std::vector<int> cpus) {
    auto launch = launch_of(name, {"/bin/grep", "Cpus_allowed_list", "/proc/self/status"});
    launch.cpus = std::move(cpus);
    EXPECT_EQ(run(launch).exit_status, 0);
    return sandbox_file(launch.task.id, "stdout");
  };
  const auto last = usable.back();
  EXPECT_EQ(allowed_of("pinned", {last}), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  const auto all = "Cpus_allowed_list:\t" + format_ranges(usable) + "\n";
  EXPECT_EQ(allowed_of("all", usable), all);
  EXPECT_EQ(allowed_of("elsewhere", {60'000}), all) << "a CPU that this host has not";
}

TEST_F(OciTest, AMissingCommandIsOneClearErrorAndLeavesOnlyTheSandbox) {
  const auto launch = launch_of("missing", {"no-such-command"});
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(launched.error().message, "There is no command 'no-such-command' in the container");
  EXPECT_TRUE(std::filesystem::exists(oci_->sandbox(launch.task.id)));
  EXPECT_FALSE(std::filesystem::exists(state_ + "/tasks/" + launch.task.id + "/bundle"));
}

TEST_F(OciTest, TwentyTasksAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([this, i] {
      EXPECT_EQ(run(launch_of("many" + std::to_string(i), {"/bin/sh", "-c", "exit " + std::to_string(i)}))
                    .exit_status,
                i);
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(OciTest, AStateFolderThatContainersWouldCoverIsRefused) {
  auto changed = options();
  changed.state = "/dev/shm/drover-" + id_of("state");
  EXPECT_FALSE(make_oci(changed, observer_.watcher()));
  EXPECT_FALSE(std::filesystem::exists(changed.state));
}

TEST_F(OciTest, LaunchIsIdempotent) {
  const auto launch =
      launch_of("once", {"/bin/sh", "-c", "echo ran >> trace; while [ ! -e go ]; do sleep 0.02; done"});
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(oci_->launch(launch));
  std::ofstream(oci_->sandbox(launch.task.id) + "/go") << "";
  ASSERT_TRUE(observer_.await_ending(launch.task.id));
  EXPECT_EQ(sandbox_file(launch.task.id, "trace"), "ran\n");
}

}  // namespace
}  // namespace drover::container
