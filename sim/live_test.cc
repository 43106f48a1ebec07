#include "sim/live.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "sim/live_process.h"
#include "sim/testing/shipped.h"

namespace drover::sim {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint64_t kMib = 1 << 20;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// Of a child process that calls a body, and then waits to be killed.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      body();
      [[maybe_unused]] const auto told = ::write(ready[1], "x", 1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char told = 0;
    EXPECT_EQ(::read(ready[0], &told, 1), 1);
    ::close(ready[0]);
  }
  ~Child() { kill(); }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  unsigned int pid() const { return static_cast<unsigned int>(pid_); }

 private:
  pid_t pid_ = -1;
};

class LiveTest : public testing::Test {
 protected:
  LiveTest() { fs::create_directories(folder_); }
  ~LiveTest() override { fs::remove_all(folder_); }

  std::unique_ptr<LiveProcess> process() const { return LiveProcess::open(file_, profile_.gpus.size()); }
  LiveUses uses() const { return LiveReader(file_, profile_).current(); }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("live_test_" + std::to_string(::getpid()));
  const fs::path file_ = folder_ / "live";
  const Profile profile_ = shipped("k80");
  const std::uint64_t card_ = profile_.gpus[0].model.memory_mib * kMib;
};

TEST_F(LiveTest, WithoutAFileNobodyDoesAnything) {
  EXPECT_THAT(uses(), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(LiveTest, TheFileIsForEverybodyAndMadeOnce) {
  const auto mask = ::umask(0077);
  EXPECT_TRUE(create_live_file(file_));
  ::umask(mask);
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0666));
  EXPECT_EQ(fs::file_size(file_), sizeof(LiveState));
  const auto made = fs::last_write_time(file_);
  EXPECT_TRUE(create_live_file(file_));
  EXPECT_EQ(fs::last_write_time(file_), made);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(LiveTest, WhatIsNoLiveStateStaysAsItIs) {
  std::ofstream(file_) << "mine";
  EXPECT_FALSE(create_live_file(file_));
  const auto alone = process();
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->shared());
  EXPECT_TRUE(alone->reserve(0, kMib, kMib));
  EXPECT_FALSE(alone->reserve(0, kMib, kMib));
  EXPECT_EQ(fs::file_size(file_), 4U);
  EXPECT_THAT(uses(), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST_F(LiveTest, NoLinkIsFollowedAndNoPipeWaitedFor) {
  ASSERT_TRUE(create_live_file(folder_ / "elsewhere"));
  fs::create_symlink("elsewhere", file_);
  EXPECT_FALSE(create_live_file(file_));
  EXPECT_FALSE(process()->shared());
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0666), 0);
  EXPECT_FALSE(process()->shared());
  EXPECT_THAT(uses(), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST_F(LiveTest, AReaderSeesWhatEachProcessHolds) {
  const auto mine = process();
  ASSERT_TRUE(mine && mine->shared());
  EXPECT_TRUE(mine->reserve(1, 3 * kMib, card_));
  const Child other([&] {
    const auto its = process().release();
    its->reserve(0, 5 * kMib, card_);
    its->reserve(1, 7 * kMib, card_);
  });
  EXPECT_THAT(uses(), ElementsAre(ElementsAre(LiveUse{other.pid(), 5 * kMib, 0}),
                                  ElementsAre(LiveUse{static_cast<unsigned int>(::getpid()), 3 * kMib, 0},
                                              LiveUse{other.pid(), 7 * kMib, 0})));
  mine->release(1, 3 * kMib);
  EXPECT_EQ(mine->held(1), 0U);
  EXPECT_EQ(mine->held_by_all(1), 7 * kMib);
}

TEST_F(LiveTest, AKilledProcessHoldsNothingAtOnce) {
  const auto mine = process();
  Child other([&] { process().release()->reserve(0, card_, card_); });
  EXPECT_FALSE(mine->reserve(0, kMib, card_));
  other.kill();
  EXPECT_THAT(uses()[0], IsEmpty());
  EXPECT_TRUE(mine->reserve(0, card_, card_));
}

TEST_F(LiveTest, ASlotIsUsedAgain) {
  for (int i = 0; i < 600; ++i) {
    const auto mine = process();
    ASSERT_TRUE(mine && mine->shared());
    EXPECT_EQ(mine->held(0), 0U);
    EXPECT_TRUE(mine->reserve(0, kMib, card_));
  }
  EXPECT_THAT(uses()[0], IsEmpty());
}

TEST_F(LiveTest, ThereAreOnlySoManySlots) {
  std::vector<std::unique_ptr<LiveProcess>> all;
  for (std::size_t i = 0; i < kLiveProcesses; ++i) ASSERT_TRUE(all.emplace_back(process()));
  EXPECT_FALSE(process());
  all.pop_back();
  EXPECT_TRUE(process());
}

TEST_F(LiveTest, ReadersBelieveNothing) {
  const auto mine = process();
  EXPECT_TRUE(mine->reserve(0, kMib, card_));
  const int fd = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);  // not closed: the lock would go
  const std::uint64_t much = UINT64_MAX;
  const auto first = offsetof(LiveState, gpus) + offsetof(LiveGpu, held);
  for (std::size_t slot = 0; slot < kLiveProcesses; ++slot)
    ASSERT_EQ(::pwrite(fd, &much, 8, static_cast<off_t>(first + 8 * slot)), 8);
  const auto busy = offsetof(LiveState, gpus) + offsetof(LiveGpu, busy);
  for (std::size_t i = 0; i < kBusyBuckets; ++i) {
    const auto bucket = (monotonic_ns() / kBusyBucketNs - 1 - i) << 32 | kBusyNsMask;
    ASSERT_EQ(::pwrite(fd, &bucket, 8, static_cast<off_t>(busy + 8 * i)), 8);
  }
  ASSERT_EQ(uses()[0].size(), 1U) << "only who holds its lock counts";
  EXPECT_EQ(uses()[0][0].bytes, card_);
  EXPECT_LE(uses()[0][0].busy, 1);
  EXPECT_GE(uses()[0][0].busy, 0.9);

  const std::uint32_t other_version = kLiveVersion + 1;
  ASSERT_EQ(::pwrite(fd, &other_version, 4, offsetof(LiveHeader, version)), 4);
  EXPECT_THAT(uses()[0], IsEmpty());
  ASSERT_EQ(::ftruncate(fd, 100), 0);
  EXPECT_THAT(uses()[0], IsEmpty());
  ASSERT_EQ(::ftruncate(fd, sizeof(LiveState)), 0);  // this process has it mapped
}

TEST_F(LiveTest, SlotsHaveOwners) {
  ASSERT_TRUE(create_live_file(file_));
  const auto own = [&](off_t begin, off_t length) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_start = begin;
    lock.l_len = length;
    ::fcntl(live_descriptor(file_, true), F_SETLK, &lock);
  };
  const Child one([&] { own(3, 1), own(4, 1), own(7, 1); });
  const Child two([&] { own(5, 1), own(254, 0); });
  EXPECT_THAT(live_slots(live_descriptor(file_, false)),
              ElementsAre(Pair(3, one.pid()), Pair(4, one.pid()), Pair(5, two.pid()), Pair(7, one.pid()),
                          Pair(254, two.pid()), Pair(255, two.pid())));
}

TEST_F(LiveTest, RacersNeverHoldTogetherMoreThanThereIs) {
  // What each takes divides what there is, so whoever is refused can tell whether it was for lack of room.
  constexpr std::uint64_t kPiece = 64 * kMib;
  const std::uint64_t room = 20 * kPiece;
  ASSERT_TRUE(create_live_file(file_));
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    const auto its = process();
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
      const auto pieces = static_cast<std::uint64_t>(1 + (round + i) % 5);
      if (!its->reserve(0, pieces * kPiece, room)) {
        ++refused;
        continue;
      }
      if (its->held_by_all(0) > room) ::_exit(1);
      its->release(0, pieces * kPiece);
    }
    ::_exit(refused > 2990 ? 2 : 0);
  }
  for (const auto child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(LiveTest, OfTwoThatFitTogetherNoneIsRefused) {
  constexpr std::uint64_t kPiece = 64 * kMib;
  const auto mine = process();
  ASSERT_TRUE(mine->reserve(0, kPiece, card_));
  std::vector<pid_t> children;
  // Five take at most one piece each, of the five that are left; the sixth asks for more than there ever is.
  for (int i = 0; i < 6; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    const auto its = process();
    for (int round = 0; round < 2000; ++round) {
      const bool got = its->reserve(0, (i == 5 ? 6 : 1) * kPiece, 6 * kPiece);
      if (i != 5 && !got) ::_exit(1);
      if (got) its->release(0, its->held(0));
    }
    ::_exit(0);
  }
  for (const auto child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(LiveTest, TurnsFollowEachOther) {
  const auto one = process();
  const auto two = process();
  const auto now = monotonic_ns();
  const auto first = one->take_turn(0, now, kSecondNs);
  EXPECT_EQ(first.start_ns, now);
  EXPECT_EQ(first.end_ns, now + kTurnNs);
  EXPECT_EQ(two->take_turn(0, now, 1000).start_ns, first.end_ns);
  EXPECT_EQ(one->take_turn(0, first.end_ns, 1000).start_ns, first.end_ns + 1000);
  EXPECT_EQ(one->take_turn(1, now, 1000).start_ns, now) << "another GPU";
  EXPECT_EQ(one->take_turn(0, now + kSecondNs, 1000).start_ns, now + kSecondNs) << "idle in between";
}

TEST_F(LiveTest, ATurnFarAheadIsALie) {
  const auto mine = process();
  const auto now = monotonic_ns();
  mine->take_turn(0, now + 3600 * kSecondNs, kTurnNs);
  EXPECT_EQ(mine->take_turn(0, now, kTurnNs).start_ns, now);
}

TEST_F(LiveTest, BusyTimeIsThatOfTheLastSecond) {
  const auto mine = process();
  EXPECT_TRUE(mine->reserve(0, kMib, card_));
  const auto begin = (monotonic_ns() / kBusyBucketNs - 20) * kBusyBucketNs;
  for (int i = 0; i < 20; ++i)
    mine->add_busy(0, {begin + static_cast<std::uint64_t>(i) * kBusyBucketNs,
                       begin + static_cast<std::uint64_t>(i) * kBusyBucketNs + kBusyBucketNs / 4});
  EXPECT_NEAR(uses()[0][0].busy, 0.25, 0.03);
}

TEST(BusyShare, CountsWholeTenthsOfTheLastSecond) {
  LiveBusy busy{};
  const auto set = [&](std::uint64_t number, std::uint64_t ns) {
    busy[number % kBusyBuckets] = number << 32 | ns;
  };
  set(99, kBusyBucketNs);
  set(90, kBusyBucketNs);
  EXPECT_DOUBLE_EQ(busy_share(busy, 100 * kBusyBucketNs + 5), 0.2);
  EXPECT_DOUBLE_EQ(busy_share(busy, 101 * kBusyBucketNs), 0.1) << "tenth 90 is over a second old";
  EXPECT_DOUBLE_EQ(busy_share(busy, 99 * kBusyBucketNs), 0.1) << "tenth 99 has not ended";
  EXPECT_DOUBLE_EQ(busy_share(busy, 0), 0);
}

}  // namespace
}  // namespace drover::sim
