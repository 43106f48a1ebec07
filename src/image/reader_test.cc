#include "image/reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "image/fixtures.h"

namespace drover::image {
namespace {

using testing::TemporaryFolder;

class ReaderRights : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
    ::chmod(scratch_.path().c_str(), 0755);
    testing::write(scratch_ / "file", "text");
  }
  void give(const std::string& name, mode_t mode, gid_t group = 0) {
    ASSERT_EQ(::chown((scratch_ / name).c_str(), 0, group), 0);
    ASSERT_EQ(::chmod((scratch_ / name).c_str(), mode), 0);
  }
  bool may_read() const { return reader_.open_file(AT_FDCWD, scratch_ / "file").has_value(); }

  TemporaryFolder scratch_;
  Reader reader_{User{65534, 65534, {4242}, "nobody", "/"}};
};

TEST_F(ReaderRights, ReadsWhatTheUserMayRead) {
  give("file", 0644);
  const auto file = reader_.open_file(AT_FDCWD, scratch_ / "file");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->size, 4U);
  EXPECT_NE(file->identity, "");
}

TEST_F(ReaderRights, RefusesWhatOnlyRootMayRead) {
  give("file", 0600);
  const auto file = reader_.open_file(AT_FDCWD, scratch_ / "file");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_NE(file.error().hint.find("'nobody'"), std::string::npos);
}

TEST_F(ReaderRights, CountsTheSupplementaryGroups) {
  give("file", 0640, 4242);
  EXPECT_TRUE(may_read());
  give("file", 0640, 4243);
  EXPECT_FALSE(may_read());
}

TEST_F(ReaderRights, RootsOwnGroupsDoNotCount) {
  give("file", 0640, 0);
  EXPECT_FALSE(may_read());
}

TEST_F(ReaderRights, FoldersMustBeSearchable) {
  std::filesystem::create_directory(scratch_ / "folder");
  give("folder", 0711);
  EXPECT_TRUE(reader_.open_folder(scratch_ / "folder"));
  give("folder", 0700);
  EXPECT_FALSE(reader_.open_folder(scratch_ / "folder"));
}

TEST_F(ReaderRights, TheThreadIsItselfAgainAfterwards) {
  give("file", 0600);
  EXPECT_FALSE(may_read());
  EXPECT_EQ(::setfsuid(static_cast<uid_t>(-1)), 0);
  EXPECT_EQ(::setfsgid(static_cast<gid_t>(-1)), 0);
  EXPECT_TRUE(read_file(scratch_ / "file")) << "root's file capabilities must be back";
}

TEST_F(ReaderRights, TakesRegularFilesOnlyAndNeverBlocks) {
  ASSERT_EQ(::mkfifo((scratch_ / "fifo").c_str(), 0666), 0);
  const Reader root(testing::this_user());
  EXPECT_FALSE(root.open_file(AT_FDCWD, scratch_ / "fifo"));
  EXPECT_FALSE(root.open_file(AT_FDCWD, "/dev/null"));
  EXPECT_FALSE(root.is_folder("/dev/null"));
  EXPECT_TRUE(root.is_folder(scratch_.path()).value_or(false));
}

TEST_F(ReaderRights, DoesNotGoThroughTheDaemonsOwnDescriptors) {
  give("file", 0644);
  const UniqueFd held(::open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY));
  ::chmod(scratch_.path().c_str(), 0700);
  EXPECT_FALSE(reader_.open_file(AT_FDCWD, descriptor_path(held.get()) + "/file"));
}

TEST_F(ReaderRights, AnotherContentIsAnotherIdentity) {
  give("file", 0644);
  const auto before = reader_.open_file(AT_FDCWD, scratch_ / "file")->identity;
  testing::write(scratch_ / "file", "other");
  EXPECT_NE(reader_.open_file(AT_FDCWD, scratch_ / "file")->identity, before);
}

}  // namespace
}  // namespace drover::image
