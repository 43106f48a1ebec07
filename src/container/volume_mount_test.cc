#include "container/volume_mount.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "container/oci_fixture.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kNobody = 65534;

class VolumeTest : public OciFixture {
 protected:
  void SetUp() override {
    OciFixture::SetUp();
    char folder[] = "/tmp/drover-volume-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    data_ = static_cast<char*>(folder);
    fs::permissions(data_, fs::perms(0755));
    fs::create_directory(data_ + "/private");
    std::ofstream(data_ + "/file") << "data";
    std::ofstream(data_ + "/private/secret") << "secret";
    fs::permissions(data_ + "/private", fs::perms(0700));
  }
  void TearDown() override {
    OciFixture::TearDown();
    fs::remove_all(data_);
  }

  /// A task of its own each time.
  Launch with(const std::string& script, workload::Volume volume, uid_t uid = 0) {
    auto launch = launch_of("volume" + std::to_string(++number_), {"/bin/sh", "-c", script});
    launch.task.volumes = {std::move(volume)};
    launch.task.user.uid = launch.task.user.gid = uid;
    launch.task.owner = uid;
    return launch;
  }

  std::string data_;
  int number_ = 0;
};

TEST_F(VolumeTest, AFolderIsThereAndCanBeWritten) {
  const auto launch = with("cat in/here/file && echo new > in/here/made", {"in/here", data_, false});
  EXPECT_EQ(run(launch).exit_status, 0) << sandbox_file(launch.task.id, "stderr");
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "data");
  EXPECT_TRUE(fs::exists(data_ + "/made"));
}

TEST_F(VolumeTest, ReadOnlyIsRespected) {
  const auto launch = with("cat d/file; touch d/made", {"d", data_, true});
  EXPECT_NE(run(launch).exit_status, 0);
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "data");
  EXPECT_FALSE(fs::exists(data_ + "/made"));
}

TEST_F(VolumeTest, AFileIsOneToo) {
  const auto launch = with("cat copy", {"copy", data_ + "/file", true});
  EXPECT_EQ(run(launch).exit_status, 0) << sandbox_file(launch.task.id, "stderr");
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "data");
}

TEST_F(VolumeTest, NobodyReachesThroughSomebodyElsesFolder) {
  for (const std::string path : {"/private", "/private/secret", "/absent"}) {
    const auto launched = oci_->launch(with("true", {"d", data_ + path, true}, kNobody));
    ASSERT_FALSE(launched) << path;
    EXPECT_NE(launched.error().message.find(data_ + path), std::string::npos) << launched.error().message;
  }
  // Nor by a link of his own.
  fs::create_symlink("private/secret", data_ + "/link");
  EXPECT_FALSE(oci_->launch(with("true", {"d", data_ + "/link", true}, kNobody)));
}

TEST_F(VolumeTest, TheDaemonsOwnFilesAreNotGivenOut) {
  for (const auto& path : {state_, state_ + "/tasks", std::string("/")}) {
    const auto launched = oci_->launch(with("true", {"d", path, true}));
    ASSERT_FALSE(launched) << path;
    EXPECT_NE(launched.error().message.find("Drover keeps its own files"), std::string::npos);
  }
}

TEST_F(VolumeTest, TheHostIsNotChangedForAPlaceToMountAt) {
  const auto launched = oci_->launch(with("true", {data_ + "/absent", data_, true}));
  ASSERT_FALSE(launched);
  EXPECT_FALSE(fs::exists(data_ + "/absent"));
}

TEST_F(VolumeTest, ThePlaceInTheSandboxBelongsToTheUser) {
  const auto launch = with("true", {"a/b", data_, true}, kNobody);
  EXPECT_EQ(run(launch).exit_status, 0) << sandbox_file(launch.task.id, "stderr");
  struct stat info{};
  ASSERT_EQ(::stat((oci_->sandbox(launch.task.id) + "/a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kNobody);
}

}  // namespace
}  // namespace drover::container
