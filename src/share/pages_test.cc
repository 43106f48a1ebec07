#include "share/pages.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "base/fake_tree.h"
#include "guard/layout.h"

namespace drover::share {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kGibibyte = 1ULL << 30;
const std::vector<Limit> kLimits = {{"GPU-00000000-0000-0000-0000-000000000001", 8 * kGibibyte, 250},
                                    {"GPU-00000000-0000-0000-0000-000000000002", 4 * kGibibyte}};

class PagesTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto made = make_pages(task(), kLimits);
    ASSERT_TRUE(made) << to_string(made.error());
  }
  Directory task() const { return Directory::open(folder_.root()).value(); }
  Pages pages() const { return Pages::open(task()).value(); }
  std::string account() const { return folder_ / "share/account"; }
  guard_limits limits() const {
    guard_limits page{};
    const auto text = read_file(folder_ / "share/limits").value();
    EXPECT_EQ(text.size(), sizeof page);
    text.copy(reinterpret_cast<char*>(&page), sizeof page);
    return page;
  }

  /// A process of the container that has the slot and holds so many units of each GPU; it lives until
  /// finish().
  pid_t holds(int slot, std::uint64_t first, std::uint64_t second) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const auto child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int fd = ::open(account().c_str(), O_RDWR);
      struct flock lock{};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_start = slot;
      lock.l_len = 1;
      guard_account page{};
      bool done = ::fcntl(fd, F_SETLK, &lock) == 0 && ::pread(fd, &page, sizeof page, 0) == sizeof page;
      page.slots_used = std::max<std::uint32_t>(page.slots_used, slot + 1);
      page.slots[slot].held[0] = first << 32;
      page.slots[slot].held[1] = second << 32;
      done = done && ::pwrite(fd, &page, sizeof page, 0) == sizeof page;
      if (done) (void)!::write(ready[1], "x", 1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char ignored = 0;
    EXPECT_EQ(::read(ready[0], &ignored, 1), 1);
    ::close(ready[0]);
    return child;
  }
  static void finish(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::uint32_t host_pid_in(int slot) const {
    guard_account page{};
    const int fd = ::open(account().c_str(), O_RDONLY);
    EXPECT_EQ(::pread(fd, &page, sizeof page, 0), static_cast<ssize_t>(sizeof page));
    ::close(fd);
    return page.slots[slot].host_pid;
  }

  FakeTree folder_;
};

TEST_F(PagesTest, AreAsTheGuardReadsThem) {
  const auto page = limits();
  EXPECT_EQ(page.magic, static_cast<std::uint32_t>(GUARD_LIMITS_MAGIC));
  EXPECT_EQ(page.version, static_cast<std::uint32_t>(GUARD_LIMITS_VERSION));
  EXPECT_EQ(page.count, 2U);
  EXPECT_STREQ(page.gpus[1].uuid, kLimits[1].gpu.c_str());
  EXPECT_EQ(page.gpus[1].bytes, 4 * kGibibyte);
  EXPECT_EQ(page.turns[0].milli, 250U);
  EXPECT_EQ(page.turns[1].milli, 0U) << "its time is not limited";
  EXPECT_EQ(page.turns[0].until_ns, GUARD_NOBODY_ELSE);
  struct stat info{};
  ASSERT_EQ(::stat(account().c_str(), &info), 0);
  EXPECT_EQ(info.st_size, static_cast<off_t>(sizeof(guard_account)));
  EXPECT_EQ(info.st_mode & 0777, 0666U) << "whatever users the container has";
  ASSERT_EQ(::stat((folder_ / "share/limits").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0444U);
  EXPECT_EQ(pages().limits(), kLimits);
}

TEST_F(PagesTest, WhoHasASlotIsSeenWithWhatItHolds) {
  auto pages = this->pages();
  EXPECT_THAT(pages.look().value(), IsEmpty());
  const auto one = holds(0, 16, 0), other = holds(3, 32, 48);
  EXPECT_THAT(pages.look().value(), ElementsAre(GuardedProcess{one, {16 * GUARD_UNIT, 0}},
                                                GuardedProcess{other, {32 * GUARD_UNIT, 48 * GUARD_UNIT}}));
  EXPECT_EQ(host_pid_in(3), static_cast<std::uint32_t>(other)) << "it is told how the host numbers it";
  finish(one);
  EXPECT_THAT(pages.look().value(), ElementsAre(GuardedProcess{other, {32 * GUARD_UNIT, 48 * GUARD_UNIT}}));
  finish(other);
  EXPECT_THAT(pages.look().value(), IsEmpty());
}

TEST_F(PagesTest, LimitsOfAContainerThatRunsCanBeOthers) {
  auto pages = this->pages();
  auto wanted = kLimits;
  wanted[0].bytes = 2 * kGibibyte;
  if (wanted[0].milli > 0) wanted[0].milli = 77;
  ASSERT_TRUE(pages.set_limits(wanted));
  EXPECT_EQ(limits().gpus[0].bytes, 2 * kGibibyte);
  EXPECT_EQ(limits().generation, 2U);
  EXPECT_EQ(this->pages().limits(), wanted);
  std::swap(wanted[0], wanted[1]);
  EXPECT_FALSE(pages.set_limits(wanted));
  wanted.pop_back();
  EXPECT_FALSE(pages.set_limits(wanted));
}

TEST_F(PagesTest, ThoseWhoHaveAShareTogetherHaveTheSamePagesWhoeverGoes) {
  const auto make = [&](const char* name, const std::vector<Limit>& limits,
                        const std::vector<std::string>& names) {
    auto folder = task().make_subdirectory(name).value();
    std::vector<Directory> others;
    for (const auto& other : names) others.push_back(task().subdirectory(other).value());
    EXPECT_TRUE(make_pages(folder, limits, others));
    return folder;
  };
  const auto inode = [](const Directory& folder, const char* page) {
    struct stat info{};
    EXPECT_EQ(::stat((folder.path() + "/share/" + page).c_str(), &info), 0);
    return info.st_ino;
  };
  ASSERT_TRUE(task().make_subdirectory("none"));
  const auto first = make("first", kLimits, {});
  const auto second = make("second", kLimits, {"none", "first"});
  for (const char* page : {kLimitsPage, kAccountPage}) EXPECT_EQ(inode(first, page), inode(second, page));
  auto less = kLimits;
  --less[0].bytes;
  const auto third = make("third", less, {"first", "second"});
  for (const char* page : {kLimitsPage, kAccountPage}) EXPECT_NE(inode(third, page), inode(second, page));

  const auto open = Pages::open(first).value();
  EXPECT_TRUE(first.remove_tree(kPagesFolder));
  EXPECT_TRUE(open.are_there()) << "somebody else has them";
  EXPECT_EQ(Pages::open(second)->limits(), kLimits);
  ASSERT_EQ(::unlink((second.path() + "/share/account").c_str()), 0);
  const auto fourth = make("fourth", kLimits, {"second"});
  EXPECT_NE(inode(fourth, kLimitsPage), inode(second, kLimitsPage)) << "half of them is none";
}

TEST_F(PagesTest, AnAccountThatWasSpoiltIsPutRightAndBelieved) {
  auto pages = this->pages();
  for (const off_t size : {0, 100, 100 << 20}) {
    ASSERT_EQ(::truncate(account().c_str(), size), 0);
    EXPECT_THAT(pages.look().value(), IsEmpty());
    struct stat info{};
    ASSERT_EQ(::stat(account().c_str(), &info), 0);
    EXPECT_EQ(info.st_size, static_cast<off_t>(sizeof(guard_account)));
  }
  const std::string nonsense(sizeof(guard_account), '\xff');
  const int fd = ::open(account().c_str(), O_WRONLY);
  ASSERT_EQ(::write(fd, nonsense.data(), nonsense.size()), static_cast<ssize_t>(nonsense.size()));
  ::close(fd);
  EXPECT_THAT(pages.look().value(), IsEmpty()) << "no lock, no process";
}

TEST_F(PagesTest, RefusalsAreToldAsTheContainerCountsThemAndNeverFewer) {
  auto pages = this->pages();
  const auto say = [&](std::uint64_t first, std::uint64_t second) {
    const std::array<std::uint64_t, 2> said = {first, second};
    const int fd = ::open(account().c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(fd, said.data(), sizeof said, offsetof(guard_account, refused)),
              static_cast<ssize_t>(sizeof said));
    ::close(fd);
    return pages.refused();
  };
  EXPECT_THAT(pages.refused(), ElementsAre(0, 0));
  EXPECT_THAT(say(3, 1), ElementsAre(3, 1));
  EXPECT_THAT(say(0, 2), ElementsAre(3, 2));
  for (const off_t size : {0, 100}) {
    ASSERT_EQ(::truncate(account().c_str(), size), 0);
    EXPECT_THAT(pages.refused(), ElementsAre(3, 2));
    ASSERT_TRUE(pages.look());
  }
  const auto most = static_cast<std::uint64_t>(1) << 53;
  EXPECT_THAT(say(UINT64_MAX, most - 1), ElementsAre(most, most - 1));
  EXPECT_THAT(this->pages().refused(), ElementsAre(most, most - 1)) << "whoever looks";
}

TEST_F(PagesTest, AnAccountOfAnEarlierVersionIsMadeAsLongAsTheGuardWantsIt) {
  ASSERT_EQ(::truncate(account().c_str(), offsetof(guard_account, refused)), 0);
  (void)this->pages();
  struct stat info{};
  ASSERT_EQ(::stat(account().c_str(), &info), 0);
  EXPECT_EQ(info.st_size, static_cast<off_t>(sizeof(guard_account)));
}

TEST_F(PagesTest, WhatCannotBeIsRefused) {
  EXPECT_FALSE(make_pages(task(), {{"", kGibibyte}}));
  EXPECT_FALSE(make_pages(task(), {{std::string(100, 'G'), kGibibyte}}));
  EXPECT_FALSE(make_pages(task(), std::vector<Limit>(17, kLimits[0])));
  const auto elsewhere = task().make_subdirectory("elsewhere").value();
  EXPECT_EQ(Pages::open(elsewhere).error().kind, ErrorKind::kNotFound);
  ASSERT_EQ(::truncate((folder_ / "share/limits").c_str(), 10), 0);
  EXPECT_THAT(to_string(Pages::open(task()).error()), HasSubstr("no page of limits"));
}

}  // namespace
}  // namespace drover::share
