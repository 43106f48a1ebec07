#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "base/acting_as.h"
#include "base/open_path.h"
#include "base/remove_tree.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "drover-files-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FilesTest, WritesWholeFilesAndLeavesNoTemporary) {
  const auto directory = Directory::create(folder_ / "a" / "b");
  ASSERT_TRUE(directory) << to_string(directory.error());
  ASSERT_TRUE(directory->write("file", "one", 0600));
  ASSERT_TRUE(directory->write("file", "two", 0640));
  EXPECT_EQ(*directory->read("file"), "two");
  EXPECT_EQ(*directory->list(), std::vector<std::string>{"file"});
  EXPECT_EQ(fs::status(folder_ / "a/b/file").permissions(), fs::perms(0640));
}

TEST_F(FilesTest, WhatAKilledProcessHasLeftOfAWriteCanBeRemoved) {
  const auto directory = Directory::create(folder_);
  ASSERT_TRUE(directory);
  const auto pid = ::fork();
  if (pid == 0) {  // it is killed while it writes
    ::prctl(PR_SET_DUMPABLE, 0);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    (void)directory->write("mine-1", "text");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(directory->list()->size(), 1u);
  for (const char* name : {"mine-2", ".mine-3", ".mine-3.tmpl", "mine-4.tmp", ".mine-5.0123456.tmp",
                           ".mine-6.0123456g.tmp", ".another's.00000000.tmp"})
    ASSERT_TRUE(directory->write(name, ""));
  ASSERT_TRUE(directory->remove_unfinished("mine-"));
  EXPECT_EQ(directory->list()->size(), 7U);
  ASSERT_TRUE(directory->remove_unfinished(""));
  EXPECT_THAT(*directory->list(), ::testing::ElementsAre(".mine-3", ".mine-3.tmpl", ".mine-5.0123456.tmp",
                                                         ".mine-6.0123456g.tmp", "mine-2", "mine-4.tmp"));
}

TEST_F(FilesTest, OnlyFilesGoThatNobodyElseCanHaveMade) {
  const auto directory = Directory::create(folder_ / "mine");
  ASSERT_TRUE(directory);
  ASSERT_TRUE(directory->write("precious", "text"));
  fs::create_directory(folder_ / "mine/.folder.00000000.tmp");
  fs::create_symlink("precious", folder_ / "mine/.link.00000000.tmp");
  ASSERT_TRUE(directory->write(".file.00000000.tmp", ""));
  ::chmod((folder_ / "mine").c_str(), 0777);
  ASSERT_TRUE(directory->remove_unfinished(""));
  EXPECT_EQ(directory->list()->size(), 4U) << "others can write there";
  ::chmod((folder_ / "mine").c_str(), 0755);
  ASSERT_TRUE(directory->remove_unfinished(""));
  EXPECT_THAT(*directory->list(),
              ::testing::ElementsAre(".folder.00000000.tmp", ".link.00000000.tmp", "precious"));
}

TEST_F(FilesTest, WhatIsMadeHasItsModeWhateverTheUmaskIs) {
  const auto before = ::umask(077);
  const auto made = Directory::create(folder_ / "a/b", 0755);
  const auto below = made->make_subdirectory("c", 0711);
  const auto written = made->write("file", "text", 0644);
  ::umask(before);
  ASSERT_TRUE(below && written);
  for (const auto& [path, mode] :
       std::map<std::string, unsigned>{{"a", 0755}, {"a/b", 0755}, {"a/b/c", 0711}, {"a/b/file", 0644}})
    EXPECT_EQ(fs::status(folder_ / path).permissions(), fs::perms(mode)) << path;
}

/// The kernel ends such a walk (EAGAIN) when anything, anywhere, is renamed meanwhile.
TEST_F(FilesTest, AWalkThatMayNotLeaveItsFolderOutlastsRenamesElsewhere) {
  fs::create_directories(folder_ / "root/a/b");
  const auto root = *Directory::open(folder_ / "root");
  std::jthread renames([&](const std::stop_token& stop) {
    const auto one = folder_ / "one";
    const auto other = folder_ / "other";
    std::ofstream(one).put('x');
    for (; !stop.stop_requested(); fs::rename(other, one)) fs::rename(one, other);
  });
  for (int walks = 0; walks < 5000; ++walks)
    ASSERT_TRUE(open_path(root.fd(), "a/b/../../a/b/../../a/b", O_PATH, RESOLVE_IN_ROOT).valid())
        << ::strerror(errno);
}

TEST_F(FilesTest, FoldersThatWereThereKeepTheirMode) {
  fs::create_directory(folder_ / "kept");
  fs::permissions(folder_ / "kept", fs::perms(0700));
  const auto directory = Directory::create(folder_, 0755);
  ASSERT_TRUE(directory && directory->make_subdirectory("kept", 0755) &&
              Directory::create(folder_ / "kept", 0755));
  EXPECT_EQ(fs::status(folder_ / "kept").permissions(), fs::perms(0700));
}

TEST_F(FilesTest, NothingLeadsOut) {
  fs::create_directory(folder_ / "in");
  std::ofstream(folder_ / "secret") << "secret";
  fs::create_symlink("../secret", folder_ / "in/climbs");
  fs::create_symlink(folder_ / "secret", folder_ / "in/absolute");
  fs::create_symlink("real", folder_ / "in/inside");
  std::ofstream(folder_ / "in/real") << "fine";
  const auto directory = *Directory::open(folder_ / "in");
  EXPECT_FALSE(directory.read("../secret"));
  for (const char* name : {"climbs", "absolute"}) {
    EXPECT_FALSE(directory.open_file(name, O_RDONLY, 0, Links::kFollowInside)) << name;
    EXPECT_FALSE(directory.open_file(name, O_RDONLY)) << name;
  }
  EXPECT_FALSE(directory.open_file("inside", O_RDONLY));
  EXPECT_TRUE(directory.open_file("inside", O_RDONLY, 0, Links::kFollowInside));
}

TEST_F(FilesTest, RefusesFilesOverTheLimit) {
  std::ofstream(folder_ / "large") << std::string(1000, 'x');
  EXPECT_EQ(read_file(folder_ / "large", 999).error().kind, ErrorKind::kExhausted);
  EXPECT_EQ(read_file(folder_ / "large", 1000)->size(), 1000u);
}

TEST_F(FilesTest, RemovesATreeIntoWhichItsOwnerGoesOnToWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to act as somebody else";
  fs::create_directories(folder_ / "tree/inner");
  const User owner{60601, 60601, {}, "owner", "/"};
  const auto tree = *Directory::open(folder_ / "tree");
  const auto inner = *Directory::open(folder_ / "tree/inner");
  for (const int fd : {tree.fd(), inner.fd()}) ASSERT_EQ(::fchown(fd, owner.uid, owner.gid), 0);
  std::promise<void> writing;
  std::jthread writer([&](const std::stop_token& stop) {
    const auto acting = ActingAs::start(owner);
    for (int number = 0; !stop.stop_requested(); ++number) {
      for (const int fd : {tree.fd(), inner.fd()})
        UniqueFd(::openat(fd, std::to_string(number).c_str(), O_CREAT | O_WRONLY, 0644));
      if (number == 100) writing.set_value();
    }
  });
  writing.get_future().wait();
  const auto removed = Directory::open(folder_)->remove_tree("tree");
  EXPECT_TRUE(removed) << to_string(removed.error());
  EXPECT_FALSE(fs::exists(folder_ / "tree"));
}

TEST_F(FilesTest, ARemovalThatIsStoppedBreaksOff) {
  fs::create_directories(folder_ / "tree/inner");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(remove_tree(*Directory::open(folder_), "tree", stop.get_token()).error().kind,
            ErrorKind::kConflict);
  EXPECT_TRUE(fs::exists(folder_ / "tree"));
}

TEST_F(FilesTest, RemovesATreeWithoutFollowingLinks) {
  fs::create_directories(folder_ / "tree/deep/deeper");
  std::ofstream(folder_ / "kept") << "kept";
  fs::create_directory_symlink(folder_, folder_ / "tree/deep/link");
  const auto directory = *Directory::open(folder_);
  ASSERT_TRUE(directory.remove_tree("tree"));
  EXPECT_FALSE(fs::exists(folder_ / "tree"));
  EXPECT_TRUE(fs::exists(folder_ / "kept"));
  EXPECT_TRUE(directory.remove_tree("never-there"));
}

TEST_F(FilesTest, RemovesATreeThatIsDeeperThanThereAreDescriptors) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{128, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto level = *Directory::create(folder_ / "deep");
  fs::create_directories(folder_ / "deep/.drover-removed-0/taken");
  for (int i = 0; i < 300; ++i) level = *level.make_subdirectory("d");
  ASSERT_TRUE(level.write("file", "x"));
  const auto directory = *Directory::open(folder_);
  const auto removed = directory.remove_tree("deep");
  ASSERT_TRUE(removed) << to_string(removed.error());
  EXPECT_EQ(*directory.list(), std::vector<std::string>{});
  ::setrlimit(RLIMIT_NOFILE, &before);
}

/// From now on no folder can be read in this process.
void fail_getdents() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getdents64, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(program), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST_F(FilesTest, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  const auto directory = *Directory::open(folder_);
  ASSERT_TRUE(directory.list());
  const auto child = ::fork();
  if (child == 0) {
    fail_getdents();
    ::_exit(directory.list() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace drover
