#include "share/turn_keeper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "base/fake_tree.h"
#include "guard/layout.h"

namespace drover::share {
namespace {

using namespace std::chrono_literals;

/// The pages of one container, whose process asks as the test does.
class BoxPages {
 public:
  BoxPages(const FakeTree& tree, const std::string& name) {
    limits_.reset(make(tree / (name + ".limits"), sizeof(guard_limits)));
    account_.reset(make(tree / (name + ".account"), sizeof(guard_account)));
    put(account_.get(), offsetof(guard_account, slots_used), std::uint32_t{1});
  }
  Contender contender(const std::string& name, int milli, bool strict = false) const {
    return {"GPU-1", name, limits_.get(), account_.get(), 2, milli, strict};
  }
  void ask() {
    put(account_.get(),
        offsetof(guard_account, slots) + offsetof(guard_slot, uses) + 2 * sizeof(guard_use) +
            offsetof(guard_use, asked),
        ++asked_);
  }
  std::uint64_t until() const { return get(offsetof(guard_turn, until_ns)); }
  std::uint64_t beat() const { return get(offsetof(guard_turn, beat_ns)); }
  int account() const { return account_.get(); }

 private:
  static int make(const std::string& file, std::size_t size) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
    return fd;
  }
  template <typename Value>
  static void put(int fd, std::size_t place, Value value) {
    EXPECT_EQ(::pwrite(fd, &value, sizeof(value), static_cast<off_t>(place)),
              static_cast<ssize_t>(sizeof(value)));
  }
  std::uint64_t get(std::size_t place) const {
    std::uint64_t value = 0;
    place += offsetof(guard_limits, turns) + 2 * sizeof(guard_turn);
    EXPECT_EQ(::pread(limits_.get(), &value, sizeof(value), static_cast<off_t>(place)),
              static_cast<ssize_t>(sizeof(value)));
    return value;
  }
  UniqueFd limits_, account_;
  std::uint64_t asked_ = 0;
};

/// Whether it comes to be, within what a busy machine may take.
bool comes(const std::function<bool()>& what, const std::function<void()>& meanwhile = [] {}) {
  for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
    if (what()) return true;
    meanwhile();
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

class TurnKeeperTest : public testing::Test {
 protected:
  FakeTree tree_;
  BoxPages a_{tree_, "a"}, b_{tree_, "b"};
};

TEST_F(TurnKeeperTest, WhoIsAloneHasTheGpuAndTwoTakeTurns) {
  {
    Turns turns;
    ASSERT_TRUE(turns.set({a_.contender("a", 500)}));
    EXPECT_EQ(a_.until(), GUARD_NOBODY_ELSE);
    ASSERT_TRUE(turns.set({a_.contender("a", 500), b_.contender("b", 500)}));
    const auto both_ask = [&] { a_.ask(), b_.ask(); };
    EXPECT_TRUE(comes([&] { return a_.until() == 0 && b_.until() != 0; }, both_ask));
    EXPECT_TRUE(comes([&] { return b_.until() == 0 && a_.until() != 0; }, both_ask));
    const auto before = a_.beat();
    EXPECT_TRUE(comes([&] { return a_.beat() > before; }));
    EXPECT_TRUE(comes([&] { return a_.until() == GUARD_NOBODY_ELSE; }, [&] { a_.ask(); }));
    const auto figures = turns.figures();
    ASSERT_EQ(figures.size(), 2U);
    EXPECT_EQ(figures[0].gpu, "GPU-1");
    EXPECT_EQ(figures[1].turns.name, "b");
    EXPECT_GT(figures[1].turns.turns, 0U);
    EXPECT_TRUE(comes([&] { return a_.until() == 0; }, both_ask));
  }
  EXPECT_EQ(a_.until(), GUARD_NOBODY_ELSE) << "nobody decides any more";
}

TEST_F(TurnKeeperTest, WhoIsLeftOutIsLetGo) {
  Turns turns;
  ASSERT_TRUE(turns.set({a_.contender("a", 500, true), b_.contender("b", 500)}));
  EXPECT_TRUE(comes([&] { return a_.until() == 0 && a_.beat() != 0; }));
  ASSERT_TRUE(turns.set({b_.contender("b", 500)}));
  EXPECT_EQ(a_.until(), GUARD_NOBODY_ELSE);
}

TEST_F(TurnKeeperTest, AnAccountThatIsCutOffGetsNoTurn) {
  Turns turns;
  ASSERT_TRUE(turns.set({a_.contender("a", 500), b_.contender("b", 500)}));
  ASSERT_EQ(::ftruncate(a_.account(), 100), 0);
  EXPECT_TRUE(comes([&] { return a_.until() == 0; }));
  EXPECT_TRUE(comes([&] { return b_.until() == GUARD_NOBODY_ELSE; }, [&] { b_.ask(); }));
}

TEST_F(TurnKeeperTest, WhatIsWrongIsRefusedWhole) {
  Turns turns;
  ASSERT_TRUE(turns.set({a_.contender("a", 500)}));
  EXPECT_FALSE(turns.set({b_.contender("b", 500), b_.contender("b", 500)}));
  EXPECT_FALSE(turns.set({b_.contender("b", 0)}));
  EXPECT_FALSE(turns.set({b_.contender("b", 1001)}));
  auto closed = b_.contender("b", 100);
  closed.account = -1;
  EXPECT_FALSE(turns.set({closed}));
  closed = b_.contender("b", 100);
  closed.entry = GUARD_GPUS;
  EXPECT_FALSE(turns.set({closed}));
  EXPECT_EQ(turns.figures().size(), 1U);
}

}  // namespace
}  // namespace drover::share
