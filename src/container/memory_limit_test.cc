// The driver's own limit of GPU memory and the life of the control group that it stands on. Needs control
// groups of version 2 alone, as OCI runtimes see them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "container/docker/docker_launcher.h"
#include "container/oci_fixture.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class MemoryLimitTest : public OciFixture {
 protected:
  void SetUp() override {
    OciFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    unified_ = cgroup_mode(find_hierarchies().value()) == "v2";
  }
  void reopen(const std::string& runtime = "") {
    auto given = options();
    given.runtime = runtime;
    given.launching.unlimit_memory = [this](const std::string& group, const auto& gpus) {
      unlimited_.push_back(group);
      was_there_ = fs::exists(group);
      gpus_ = gpus;
    };
    oci_.reset();
    open(std::move(given));
  }
  /// Notes the group that is limited, and which one it is.
  Launch limited(const std::string& name, std::vector<std::string> command) {
    auto launch = launch_of(name, std::move(command));
    launch.gpu_uuids = {"GPU-a", "GPU-b"};
    launch.task.resources.share_by = workload::ShareBy::kKernel;
    launch.limit_memory = [this](const std::string& group) -> Status {
      group_ = group;
      struct stat info{};
      EXPECT_EQ(::stat(group.c_str(), &info), 0);
      inode_ = info.st_ino;
      std::ifstream processes(group + "/cgroup.procs");
      EXPECT_EQ(processes.peek(), std::ifstream::traits_type::eof()) << "somebody is in it already";
      return {};
    };
    return launch;
  }

  bool unified_ = false;
  std::string group_;
  ino_t inode_ = 0;
  std::vector<std::string> unlimited_;
  bool was_there_ = false;
  std::vector<std::string> gpus_;
};

TEST_F(MemoryLimitTest, WithoutVersion2ATaskIsRefusedAndSaysWhy) {
  if (unified_) GTEST_SKIP() << "control groups are of version 2 here";
  reopen();
  const auto launched = oci_->launch(limited("mixed", {"/bin/true"}));
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(launched.error().message, HasSubstr("version 2"));
  EXPECT_EQ(group_, "");
}

/// The runtime puts the container into the very group that was made, and it stays until the limit is away.
TEST_F(MemoryLimitTest, TheGroupIsTheContainersFromBeforeItsStartUntilTheLimitIsTakenAway) {
  if (!unified_) GTEST_SKIP() << "needs control groups of version 2 alone";
  for (const char* runtime : {"runc", "crun"}) {
    SCOPED_TRACE(runtime);
    reopen(runtime);
    if (!runtimes().back().works()) {
      GTEST_LOG_(INFO) << runtime << " is not tried: " << no_runtime(runtimes()).message;
      continue;
    }
    unlimited_.clear();
    const auto launch = limited(runtime, {"/bin/sh", "-c", "stat -c %i /sys/fs/cgroup"});
    EXPECT_EQ(run(launch).exit_status, 0);
    EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), std::to_string(inode_) + "\n");
    EXPECT_TRUE(fs::exists(group_)) << "its limit is not away yet";
    EXPECT_TRUE(unlimited_.empty());
    ASSERT_TRUE(oci_->clean(launch.task.id));
    EXPECT_THAT(unlimited_, ElementsAre(group_));
    EXPECT_TRUE(was_there_);
    EXPECT_THAT(gpus_, ElementsAre("GPU-a", "GPU-b"));
    EXPECT_FALSE(fs::exists(group_));
    ASSERT_TRUE(oci_->clean(launch.task.id));
    EXPECT_THAT(unlimited_, ElementsAre(group_)) << "once";
  }
}

TEST_F(MemoryLimitTest, ATaskThatCannotBeLimitedDoesNotRun) {
  if (!unified_) GTEST_SKIP() << "needs control groups of version 2 alone";
  reopen();
  auto launch = limited("refused", {"/bin/true"});
  launch.limit_memory = [this](const std::string& group) -> Status {
    group_ = group;
    return fail(ErrorKind::kUnavailable, "The driver says no");
  };
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().message, "The driver says no");
  EXPECT_THAT(unlimited_, ElementsAre(group_)) << "the driver may have done half of it";
  EXPECT_FALSE(fs::exists(group_));
}

TEST_F(MemoryLimitTest, WhereItIsNotInsistedOnATaskRunsWithout) {
  reopen();
  auto launch = limited("without", {"/bin/true"});
  launch.task.resources.share_by = workload::ShareBy::kAuto;
  launch.limit_memory = [](const std::string&) -> Status {
    return fail(ErrorKind::kUnavailable, "The driver says no");
  };
  EXPECT_EQ(run(launch).exit_status, 0);
  EXPECT_EQ(unlimited_.size(), unified_ ? 1U : 0U) << "the driver may have done half of it";
}

/// As after a kill -9 of both the daemon and the shim, and then a reboot.
TEST_F(MemoryLimitTest, WhatADaemonBeforeLimitedIsTakenAwayByTheNext) {
  if (!unified_) GTEST_SKIP() << "needs control groups of version 2 alone";
  reopen();
  const auto launch = limited("lost", {"/bin/sleep", "1000"});
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(observer_.await_started(launch.task.id));
  std::ifstream lock(state_ + "/tasks/" + launch.task.id + "/" + kLockFile);
  pid_t shim = 0;
  lock >> shim;
  ASSERT_GT(shim, 1);
  oci_.reset();
  ::kill(shim, SIGKILL);
  reopen();
  ASSERT_TRUE(oci_->recover(launch.task.id, 0));
  EXPECT_TRUE(observer_.await_ending(launch.task.id)->lost);
  EXPECT_THAT(unlimited_, ElementsAre(group_));
  EXPECT_TRUE(was_there_);
  EXPECT_FALSE(fs::exists(group_));
}

TEST_F(MemoryLimitTest, ALimitIsChangedOnTheSameGroupWhileTheTaskRuns) {
  if (!unified_) GTEST_SKIP() << "needs control groups of version 2 alone";
  reopen();
  const auto launch = limited("changed", {"/bin/sleep", "1000"});
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(observer_.await_started(launch.task.id));
  for (int i = 0; i < 2; ++i) {
    std::string changed;
    ASSERT_TRUE(oci_->change_memory_limit(launch.task.id, [&](const std::string& group) -> Status {
      changed = group;
      return {};
    }));
    EXPECT_EQ(changed, group_);
    reopen();
    ASSERT_TRUE(oci_->recover(launch.task.id, 0));
  }
  ASSERT_TRUE(oci_->forget(launch.task.id));
  EXPECT_FALSE(oci_->change_memory_limit(launch.task.id, {}));
}

/// Nothing is asked of the driver for a task that it does not hold.
TEST_F(MemoryLimitTest, WhomTheDriverDoesNotHoldItIsNotToldOf) {
  reopen();
  const auto launch = launch_of("free", {"/bin/sleep", "1000"});
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(observer_.await_started(launch.task.id));
  ASSERT_TRUE(oci_->change_memory_limit(launch.task.id, [](const std::string&) -> Status {
    return fail(ErrorKind::kInternal, "nobody was to be asked");
  }));
  ASSERT_TRUE(oci_->forget(launch.task.id));
}

TEST_F(MemoryLimitTest, AGroupThatARebootTookIsToldOfAllTheSame) {
  if (!unified_) GTEST_SKIP() << "needs control groups of version 2 alone";
  reopen();
  const auto id = id_of("rebooted");
  const auto folder = Directory::create(state_ + "/tasks/" + id, 0700);
  ASSERT_TRUE(folder);
  ASSERT_TRUE(replace_file(*folder, kLimitedGpus, "GPU-a\n"));
  ASSERT_TRUE(oci_->clean(id));
  EXPECT_EQ(unlimited_.size(), 1U);
  EXPECT_FALSE(was_there_);
  EXPECT_FALSE(folder->exists(kLimitedGpus));
}

/// Else it would run without the limit that somebody counts on.
TEST_F(MemoryLimitTest, ADockerEngineIsNotGivenSuchATask) {
  docker::DockerOptions engine;
  engine.state = state_;
  engine.socket = state_ + "/no.sock";
  const auto launcher = docker::DockerLauncher::create(std::move(engine));
  ASSERT_TRUE(launcher) << to_string(launcher.error());
  const auto folder = Directory::open(state_);
  auto launch = limited("engine", {"/bin/true"});
  launch.task.image = "busybox";
  const auto prepared = (*launcher)->prepare(*folder, launch);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(prepared.error().message, HasSubstr("their control groups only when they start"));
  launch.task.resources.share_by = workload::ShareBy::kAuto;
  EXPECT_THAT((*launcher)->prepare(*folder, launch).error().message,
              testing::Not(HasSubstr("their control groups")));
}

}  // namespace
}  // namespace drover::container
