#include "container/image_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr auto kPasswd =
    "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001:App:/app:/bin/sh\nbroken line\n7:x:8:9::/seven:/bin/sh\n";
constexpr auto kGroup = "root:x:0:\nstaff:x:50:app,other\nvideo:x:44:app\n";

TEST(ImageUser, ANameBringsItsGroupsAndHome) {
  const auto user = parse_image_user("app", kPasswd, kGroup).value();
  EXPECT_EQ(user.uid, 1000U);
  EXPECT_EQ(user.gid, 1001U);
  EXPECT_THAT(user.groups, ElementsAre(44U, 50U));
  EXPECT_EQ(user.home, "/app");
}

TEST(ImageUser, ANumberNeedsNoEntryButANameThatIsANumberWins) {
  EXPECT_EQ(parse_image_user("1000", kPasswd, kGroup).value().name, "app");
  const auto unknown = parse_image_user("4242", kPasswd, kGroup).value();
  EXPECT_EQ(unknown.uid, 4242U);
  EXPECT_EQ(unknown.gid, 0U);
  EXPECT_EQ(parse_image_user("7", kPasswd, kGroup).value().uid, 8U);
}

TEST(ImageUser, AGroupReplacesTheUsersOwn) {
  const auto user = parse_image_user("app:staff", kPasswd, kGroup).value();
  EXPECT_EQ(user.gid, 50U);
  EXPECT_TRUE(user.groups.empty());
  EXPECT_EQ(parse_image_user("1:2", "", "").value().gid, 2U);
}

TEST(ImageUser, NamesThatTheImageDoesNotKnowAreRefused) {
  EXPECT_FALSE(parse_image_user("nobody-here", kPasswd, kGroup));
  EXPECT_FALSE(parse_image_user("app:nogroup", kPasswd, kGroup));
  EXPECT_FALSE(parse_image_user("4294967295", kPasswd, kGroup));
  EXPECT_FALSE(parse_image_user("-1", kPasswd, kGroup));
}

class ImageFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/drover-image-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = static_cast<char*>(folder);
    for (const char* layer : {"lower", "upper"}) {
      fs::create_directories(folder_ / layer / "etc");
      image_.layers.push_back(folder_ / layer);
    }
    std::ofstream(folder_ / "lower/etc/passwd") << kPasswd;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  image::Image image_;
};

TEST_F(ImageFiles, ComeFromTheTopmostLayerThatHasThem) {
  EXPECT_EQ(read_image_file(image_, "etc/passwd").value(), kPasswd);
  std::ofstream(folder_ / "upper/etc/passwd") << "new";
  EXPECT_EQ(read_image_file(image_, "etc/passwd").value(), "new");
  EXPECT_EQ(read_image_file(image_, "etc/absent").value(), "");
}

TEST_F(ImageFiles, NeverComeFromTheHost) {
  std::ofstream(folder_ / "secret") << "secret";
  fs::create_symlink(folder_ / "secret", folder_ / "upper/etc/absolute");
  fs::create_symlink("../../secret", folder_ / "upper/etc/climbing");
  EXPECT_EQ(read_image_file(image_, "etc/absolute").value(), "");
  EXPECT_EQ(read_image_file(image_, "etc/climbing").value(), "");
  ASSERT_EQ(::mkfifo((folder_ / "upper/etc/waiting").c_str(), 0600), 0);
  const auto waiting = read_image_file(image_, "etc/waiting");
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().message, "'/etc/waiting' of the image is no regular file");
}

TEST_F(ImageFiles, TheImagesUserCountsOnlyForRootsOwnTasks) {
  image_.config.user = "app";
  workload::Task task;
  EXPECT_EQ(user_in_image(task, image_).value().uid, 1000U);
  task.user = User{1000, 1000, {27}, "ada", "/home/ada"};
  task.owner = 1000;
  const auto user = user_in_image(task, image_).value();
  EXPECT_EQ(user.uid, 1000U);
  EXPECT_EQ(user.gid, 1000U);
  EXPECT_TRUE(user.groups.empty());
  EXPECT_EQ(user.home, "/app");
  task.user.uid = 2000;
  EXPECT_EQ(user_in_image(task, image_).value().home, "/mnt/mesos/sandbox");
}

}  // namespace
}  // namespace drover::container
