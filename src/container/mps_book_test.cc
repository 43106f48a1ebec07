#include "container/mps_book.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fake_tree.h"

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Which groups have a daemon, and a step at which everything fails.
struct FakeMps {
  std::map<std::string, std::vector<std::string>> there;
  std::set<std::string> kept;
  int calls = 0;
  int fails_at = 0;  ///< counted from 1; and from then on

  bool fails() { return ++calls >= fails_at && fails_at != 0; }
};

class FakeMpsMaker : public MpsMaker {
 public:
  explicit FakeMpsMaker(FakeMps& mps) : mps_(mps) {}
  Result<share::MpsPlaces> make(const std::string& group, const std::vector<std::string>& gpus) override {
    if (mps_.fails()) return fail(ErrorKind::kUnavailable, "nothing answers");
    mps_.there[group] = gpus;
    return share::MpsPlaces{"/" + group + "/pipe", "/" + group + "/shm"};
  }
  Status end(const std::string& group) override {
    if (mps_.fails()) return fail(ErrorKind::kUnavailable, "nothing answers");
    mps_.there.erase(group);
    return {};
  }
  Status keep_only(const std::set<std::string>& groups) override {
    mps_.kept = groups;
    std::erase_if(mps_.there, [&](const auto& one) { return !groups.contains(one.first); });
    return {};
  }

 private:
  FakeMps& mps_;
};

class MpsBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* task : {"a", "b", "c"}) tree.file(fmt::format("tasks/{}/sandbox/stdout", task), "");
    open();
  }
  /// What a daemon that was started anew knows.
  void open() {
    auto opened = MpsBook::open(tree.root(), std::make_unique<FakeMpsMaker>(mps));
    ASSERT_TRUE(opened) << to_string(opened.error());
    book = std::move(*opened);
  }
  Directory folder(const std::string& task) { return Directory::open(tree / ("tasks/" + task)).value(); }
  Result<share::MpsPlaces> join(const std::string& task, const std::string& group = "group-1-x") {
    return book->join(folder(task), task, group, {"GPU-1"});
  }
  Status leave(const std::string& task) { return book->leave(folder(task), task); }

  FakeTree tree;
  FakeMps mps;
  std::unique_ptr<MpsBook> book;
};

TEST_F(MpsBookTest, TheFirstStartsItAndTheLastEndsIt) {
  const auto places = join("a");
  ASSERT_TRUE(places) << to_string(places.error());
  EXPECT_EQ(places->pipe, "/group-1-x/pipe");
  ASSERT_TRUE(join("b"));
  ASSERT_TRUE(join("c", "group-2-x"));
  ASSERT_TRUE(leave("a"));
  ASSERT_TRUE(leave("a")) << "it may be said again";
  EXPECT_THAT(mps.there,
              ElementsAre(Pair("group-1-x", ElementsAre("GPU-1")), Pair("group-2-x", ::testing::_)));
  ASSERT_TRUE(leave("b"));
  ASSERT_TRUE(leave("c"));
  EXPECT_THAT(mps.there, IsEmpty());
  EXPECT_FALSE(folder("b").exists("mps"));
}

TEST_F(MpsBookTest, ADaemonThatComesLaterKnowsWhoIsThere) {
  ASSERT_TRUE(join("a"));
  ASSERT_TRUE(join("b"));
  mps.there["group-9-gone"] = {"GPU-2"};
  open();
  EXPECT_THAT(mps.kept, ElementsAre("group-1-x"));
  EXPECT_THAT(mps.there, ElementsAre(Pair("group-1-x", ::testing::_)));
  ASSERT_TRUE(leave("a"));
  EXPECT_FALSE(mps.there.empty());
  ASSERT_TRUE(leave("b"));
  EXPECT_TRUE(mps.there.empty());
}

TEST_F(MpsBookTest, WhatDoesNotEndKeepsItsLastMember) {
  ASSERT_TRUE(join("a"));
  mps.fails_at = mps.calls + 1;
  EXPECT_FALSE(leave("a"));
  EXPECT_TRUE(folder("a").exists("mps"));
  mps.fails_at = 0;
  EXPECT_TRUE(leave("a"));
  EXPECT_TRUE(mps.there.empty());
}

/// Whoever dies after any step leaves nothing that the next one does not undo.
TEST_F(MpsBookTest, KilledAtAnyStepNothingIsLeft) {
  for (int step = 1; step <= 4; ++step) {
    mps.calls = 0;
    mps.fails_at = step;
    (void)join("a");
    (void)join("b");
    (void)leave("a");
    (void)leave("b");
    mps.fails_at = 0;
    open();
    ASSERT_TRUE(leave("a")) << step;
    ASSERT_TRUE(leave("b")) << step;
    EXPECT_THAT(mps.there, IsEmpty()) << step;
  }
}

}  // namespace
}  // namespace drover::container
