// Runtimes that are missing, die or hang, and disks that are full: one clear sentence, and nothing left.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "container/oci_fixture.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RuntimeTroubleTest : public OciFixture {
 protected:
  /// A program that passes the trial like the real runtime, until `script` is put before it.
  std::string runtime_with_switch(const std::string& script) {
    const auto path = state_ + "/fake-runtime";
    std::ofstream(path) << "#!/bin/sh\nif [ -e " << state_ << "/broken ]; then\n"
                        << script << "\nfi\nexec " << runtimes().back().path << " \"$@\"\n";
    fs::permissions(path, fs::perms(0755));
    return path;
  }

  void open_with_runtime(const std::string& path, std::chrono::milliseconds start_timeout) {
    auto changed = options();
    changed.runtime = path;
    changed.launching.start_timeout = start_timeout;
    open(std::move(changed));
    EXPECT_TRUE(runtimes().back().works()) << no_runtime(runtimes()).message;
    std::ofstream(state_ + "/broken") << "now";
  }

  void expect_nothing_left(const std::string& id) const {
    EXPECT_FALSE(fs::exists(state_ + "/tasks/" + id + "/bundle"));
    EXPECT_FALSE(fs::exists("/sys/fs/cgroup/pids/drover/" + id));
    EXPECT_TRUE(fs::exists(oci_->sandbox(id)));
  }
};

TEST_F(RuntimeTroubleTest, AMissingRuntimeSaysWhatToInstall) {
  auto changed = options();
  changed.runtime = "no-such-runtime";
  open(std::move(changed));
  EXPECT_FALSE(runtimes().back().works());
  const auto launched = oci_->launch(launch_of("missing", {"/bin/true"}));
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::kUnavailable);
  EXPECT_THAT(launched.error().message, HasSubstr("no-such-runtime"));
  EXPECT_THAT(launched.error().hint, HasSubstr("install"));
}

TEST_F(RuntimeTroubleTest, ARuntimeThatFailsIsQuoted) {
  open_with_runtime(runtime_with_switch("echo 'the flux is low' >&2; exit 1"), std::chrono::seconds(30));
  const auto launch = launch_of("fails", {"/bin/true"});
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_THAT(launched.error().message, HasSubstr("could not start the container: the flux is low"));
  expect_nothing_left(launch.task.id);
}

TEST_F(RuntimeTroubleTest, ARuntimeThatIsKilledIsToldOf) {
  open_with_runtime(runtime_with_switch("kill -9 $$"), std::chrono::seconds(30));
  const auto launch = launch_of("killed", {"/bin/true"});
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_THAT(launched.error().message, HasSubstr("could not start the container: it was ended by signal 9"));
  expect_nothing_left(launch.task.id);
}

TEST_F(RuntimeTroubleTest, ARuntimeThatHangsIsGivenUp) {
  open_with_runtime(runtime_with_switch("case \"$*\" in *' run '*) sleep 1000 ;; esac"),
                    std::chrono::seconds(5));
  const auto launch = launch_of("hangs", {"/bin/true"});
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_THAT(launched.error().message, HasSubstr("did not start the container within"));
  expect_nothing_left(launch.task.id);
}

TEST_F(RuntimeTroubleTest, AFailedTaskIsNotFoundAliveLater) {
  open_with_runtime(runtime_with_switch("exit 1"), std::chrono::seconds(30));
  const auto launch = launch_of("later", {"/bin/true"});
  ASSERT_FALSE(oci_->launch(launch));
  EXPECT_EQ(oci_->recover(launch.task.id, 0).value(), Found::kEnded);
  EXPECT_EQ(observer_.await_ending(launch.task.id).value().exit_status, 125);
}

class FullDiskTest : public OciFixture {
 protected:
  void SetUp() override {
    OciFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_ = state_ + "/disk";
    fs::create_directory(disk_);
    ASSERT_EQ(::mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=2m,mode=0711"), 0);
    auto changed = options();
    changed.state = disk_;
    open(std::move(changed));
  }
  void TearDown() override {
    if (oci_)
      for (const auto& id : oci_->known()) EXPECT_TRUE(oci_->forget(id));
    oci_.reset();
    if (!disk_.empty()) EXPECT_EQ(::umount(disk_.c_str()), 0) << "something is still in use";
    OciFixture::TearDown();
  }
  std::string disk_;
};

TEST_F(FullDiskTest, DoesNotSwallowTheExitStatus) {
  // Not before it runs: the runtime writes something, too.
  const auto launch = launch_of(
      "fills",
      {"/bin/sh", "-c",
       "until [ -e go ]; do sleep 0.01; done; head -c 4m /dev/zero; head -c 4m /dev/zero > file; exit 7"});
  ASSERT_TRUE(oci_->launch(launch));
  std::ofstream(oci_->sandbox(launch.task.id) + "/go").close();
  const auto ending = observer_.await_ending(launch.task.id).value();
  EXPECT_EQ(ending.exit_status, 7);
  EXPECT_FALSE(ending.lost);
}

TEST_F(FullDiskTest, RefusesALaunchInOneSentence) {
  std::ofstream filler(disk_ + "/filler");
  filler << std::string(4 << 20, 'x') << std::flush;
  const auto launch = launch_of("refused", {"/bin/true"});
  const auto launched = oci_->launch(launch);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().kind, ErrorKind::kExhausted);
  EXPECT_EQ(launched.error().hint, "free some space on that file system");
  filler.close();
  fs::remove(disk_ + "/filler");
  EXPECT_EQ(run(launch).exit_status, 0) << "nothing half-done was left";
}

}  // namespace
}  // namespace drover::container
