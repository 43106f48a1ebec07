#include "base/sandbox.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/fake_tree.h"

namespace drover {
namespace {

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(box_ + "/sub");
    std::ofstream(box_ + "/sub/answer") << "forty-two";
    std::ofstream(folder_.root() + "/secret") << "not yours";
  }
  Sandbox sandbox() { return Sandbox::open(box_, user_of(::geteuid(), ::getegid()).value()).value(); }
  ErrorKind refused(const std::string& path) {
    const auto file = sandbox().file(path);
    EXPECT_FALSE(file) << path;
    return file ? ErrorKind::kInternal : file.error().kind;
  }

  FakeTree folder_;
  std::string box_ = folder_.root() + "/box";
};

TEST_F(SandboxTest, BrowsesByNameWithKinds) {
  ASSERT_EQ(::symlink("sub", (box_ + "/a-link").c_str()), 0);
  ASSERT_EQ(::mkfifo((box_ + "/pipe").c_str(), 0600), 0);
  const auto files = sandbox().browse("").value();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name + " " + files[0].kind, "a-link link");
  EXPECT_EQ(files[1].name + " " + files[1].kind, "pipe other");
  EXPECT_EQ(files[2].name + " " + files[2].kind, "sub directory");
  EXPECT_EQ(sandbox().browse("/sub").value().front().size, 9u);
}

TEST_F(SandboxTest, ReadsPages) {
  const auto file = sandbox().file("sub/answer").value();
  EXPECT_EQ(file.size, 9u);
  EXPECT_EQ(file.read(6, 100).value(), "two");
  EXPECT_EQ(file.read(100, 100).value(), "");
}

TEST_F(SandboxTest, NoPathLeadsOut) {
  ASSERT_EQ(::symlink("../secret", (box_ + "/up").c_str()), 0);
  ASSERT_EQ(::symlink((folder_.root() + "/secret").c_str(), (box_ + "/away").c_str()), 0);
  ASSERT_EQ(::symlink(folder_.root().c_str(), (box_ + "/folder").c_str()), 0);
  for (const auto* path : {"../secret", "sub/../../secret", "up", "away", "folder/secret", "/../secret"})
    EXPECT_EQ(refused(path), ErrorKind::kInvalid) << path;
  EXPECT_EQ(refused(std::string("sub\0/answer", 11)), ErrorKind::kInvalid);
  EXPECT_FALSE(sandbox().browse(".."));
  EXPECT_FALSE(sandbox().browse("folder"));
}

TEST_F(SandboxTest, AnErrorDoesNotTellWhereTheSandboxLies) {
  for (const auto* path : {"../secret", "no-such-file"})
    EXPECT_THAT(sandbox().file(path).error().message, ::testing::Not(::testing::HasSubstr(folder_.root())));
}

TEST_F(SandboxTest, LinksInsideAreFollowed) {
  ASSERT_EQ(::symlink("sub/answer", (box_ + "/short").c_str()), 0);
  EXPECT_EQ(sandbox().file("short").value().read(0, 5).value(), "forty");
}

TEST_F(SandboxTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo((box_ + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(refused("pipe"), ErrorKind::kInvalid);
  EXPECT_EQ(refused("sub"), ErrorKind::kInvalid);
  EXPECT_EQ(refused("missing"), ErrorKind::kNotFound);
  if (::geteuid() == 0 && ::mknod((box_ + "/null").c_str(), S_IFCHR | 0600, (1 << 8) + 3) == 0) {
    EXPECT_EQ(refused("null"), ErrorKind::kInvalid);
  }
}

TEST_F(SandboxTest, AHardLinkToSomebodyElsesFileIsNotShown) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(::link((folder_.root() + "/secret").c_str(), (box_ + "/mine").c_str()), 0);
  EXPECT_EQ(Sandbox::open(box_, {1000, 1000, {}, "1000", "/"}).value().file("mine").error().kind,
            ErrorKind::kNotFound);
  ASSERT_EQ(::chown((box_ + "/mine").c_str(), 1000, 1000), 0);
  EXPECT_TRUE(Sandbox::open(box_, {1000, 1000, {}, "1000", "/"}).value().file("mine"));
}

/// A sandbox of another user than root, in which files of several lie.
class OthersSandboxTest : public SandboxTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to act as others";
    SandboxTest::SetUp();
    give(box_, kOwner.uid, 0700);
  }
  static void give(const std::string& path, uid_t uid, mode_t mode) {
    ASSERT_EQ(::chown(path.c_str(), uid, uid), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  void put(const std::string& name, uid_t uid, mode_t mode) {
    std::ofstream(box_ + "/" + name) << "content";
    give(box_ + "/" + name, uid, mode);
  }
  Result<SandboxFile> read_as(const User& reader, const std::string& name) {
    return Sandbox::open(box_, reader).value().file(name);
  }

  const User kOwner{60601, 60601, {}, "owner", "/"};
  const User kRoot{0, 0, {}, "root", "/root"};
};

TEST_F(OthersSandboxTest, FilesAreOpenedWithTheRightsOfTheOwnerWhoeverAsks) {
  put("own", kOwner.uid, 0600);
  put("roots", 0, 0600);
  put("others", 60602, 0640);
  put("log-of-roots", 0, 0644);
  for (const auto& reader : {kOwner, kRoot}) {
    EXPECT_TRUE(read_as(reader, "own"));
    EXPECT_TRUE(read_as(reader, "log-of-roots"));
    for (const auto* name : {"roots", "others"})
      EXPECT_EQ(read_as(reader, name).error().kind, ErrorKind::kPermissionDenied) << name;
  }
}

TEST_F(OthersSandboxTest, AFolderOfAnotherIsNotPassedThrough) {
  std::filesystem::create_directories(box_ + "/closed/inner");
  put("closed/inner/file", 60602, 0644);
  give(box_ + "/closed", 60602, 0700);
  for (const auto& reader : {kOwner, kRoot}) {
    EXPECT_EQ(read_as(reader, "closed/inner/file").error().kind, ErrorKind::kPermissionDenied);
    EXPECT_EQ(Sandbox::open(box_, reader).value().browse("closed").error().kind,
              ErrorKind::kPermissionDenied);
  }
}

TEST_F(OthersSandboxTest, AnybodyElseReadsNothing) {
  put("own", kOwner.uid, 0644);
  EXPECT_FALSE(read_as({60602, 60602, {}, "another", "/"}, "own"));
}

TEST_F(OthersSandboxTest, AMountIsNotEntered) {
  std::filesystem::create_directories(box_ + "/mounted");
  std::filesystem::create_directories(folder_.root() + "/open");
  std::ofstream(folder_.root() + "/open/file") << "content";
  const auto place = box_ + "/mounted";
  if (::mount((folder_.root() + "/open").c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "needs a mount";
  for (const auto& reader : {kOwner, kRoot})
    EXPECT_EQ(read_as(reader, "mounted/file").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(::umount2(place.c_str(), MNT_DETACH), 0);
}

TEST_F(SandboxTest, OfAFolderThatIsTooLargeSomeAreShown) {
  std::filesystem::create_directory(box_ + "/many");
  for (int i = 0; i < 10'050; ++i) std::ofstream(fmt::format("{}/many/{}", box_, i));
  const auto files = sandbox().browse("many").value();
  EXPECT_EQ(files.size(), 10'000u);
  EXPECT_TRUE(std::ranges::is_sorted(files, {}, &FileInfo::name));
}

TEST(Utf8, KnowsWhatIsText) {
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x91"));
  for (const auto* text : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                           "\xf4\x90\x80\x80", "a\xff"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Utf8, CutsNoCharacterInTwo) {
  EXPECT_EQ(complete_utf8("ab"), 2u);
  EXPECT_EQ(complete_utf8("ab\xe2\x82"), 2u);
  EXPECT_EQ(complete_utf8("ab\xe2\x82\xac"), 5u);
  EXPECT_EQ(complete_utf8("\xf0\x9f\x90"), 0u);
  EXPECT_EQ(complete_utf8(""), 0u);
}

}  // namespace
}  // namespace drover
