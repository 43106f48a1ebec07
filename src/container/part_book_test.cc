#include "container/part_book.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "base/fake_tree.h"

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const gpu::MigPart kLowPart{"GPU-1", 19, {0, 1}};
const gpu::MigPart kHighPart{"GPU-1", 9, {4, 4}};

/// A driver, with what is there, and a step at which it fails.
struct FakeDriver {
  std::map<gpu::MigPart, std::string> there;
  int calls = 0;
  int fails_at = 0;  ///< counted from 1; and from then on
  bool in_use = false;

  bool fails() { return ++calls >= fails_at && fails_at != 0; }
};

class FakeMaker : public PartMaker {
 public:
  explicit FakeMaker(FakeDriver& driver) : driver_(driver) {}
  Result<bool> exists(const gpu::MigPart& part) override {
    if (driver_.fails()) return died();
    return driver_.there.contains(part);
  }
  Result<MadePart> make(const gpu::MigPart& part) override {
    if (driver_.fails()) return died();
    driver_.there[part] = fmt::format("MIG-{}", part.profile_id);
    return MadePart{driver_.there[part], {}};
  }
  Status destroy(const gpu::MigPart& part) override {
    if (driver_.fails()) return died();
    if (driver_.in_use) return fail(ErrorKind::kConflict, "it is used");
    driver_.there.erase(part);
    return {};
  }

 private:
  static Failure died() { return fail(ErrorKind::kUnavailable, "the driver is gone"); }
  FakeDriver& driver_;
};

class PartBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tree.file("tasks/a/sandbox/stdout", "").file("tasks/b/sandbox/stdout", "");
    open();
  }
  /// What a daemon that was started anew knows.
  void open() {
    auto opened = PartBook::open(tree.root(), std::make_unique<FakeMaker>(driver));
    ASSERT_TRUE(opened) << to_string(opened.error());
    book = std::move(*opened);
  }
  Directory folder(const std::string& task) { return Directory::open(tree / ("tasks/" + task)).value(); }

  FakeTree tree;
  FakeDriver driver;
  std::unique_ptr<PartBook> book;
};

TEST_F(PartBookTest, MakesAndDestroysThemAndTellsTheirNames) {
  const auto made = book->make(folder("a"), "a", {kLowPart, kHighPart});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT(PartBook::uuids(folder("a")), ElementsAre("MIG-19", "MIG-9"));
  EXPECT_THAT(book->parts(), ElementsAre(kHighPart, kLowPart));
  EXPECT_TRUE(book->release(folder("a"), "a"));
  EXPECT_TRUE(book->release(folder("a"), "a")) << "once more is fine";
  EXPECT_THAT(driver.there, IsEmpty());
  EXPECT_THAT(book->parts(), IsEmpty());
  EXPECT_THAT(PartBook::uuids(folder("a")), IsEmpty());
}

TEST_F(PartBookTest, WhatIsAnothersIsNeitherTakenNorDestroyed) {
  driver.there[kHighPart] = "MIG-of-somebody";
  const auto made = book->make(folder("a"), "a", {kLowPart, kHighPart});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::kConflict);
  EXPECT_TRUE(book->release(folder("a"), "a"));
  EXPECT_EQ(driver.there.at(kHighPart), "MIG-of-somebody");
  EXPECT_FALSE(driver.there.contains(kLowPart));
}

TEST_F(PartBookTest, TheOneOfATaskThatIsNotGoneYetIsInTheWay) {
  ASSERT_TRUE(book->make(folder("a"), "a", {kLowPart}));
  driver.in_use = true;
  EXPECT_FALSE(book->release(folder("a"), "a"));
  const gpu::MigPart over{"GPU-1", 14, {0, 2}};
  EXPECT_THAT(to_string(book->make(folder("b"), "b", {over}).error()), HasSubstr("of task 'a'"));
  driver.in_use = false;
  EXPECT_TRUE(book->release(folder("a"), "a"));
  EXPECT_TRUE(book->make(folder("b"), "b", {over}));
}

/// The daemon dies at each step of making and of destroying, and comes back.
TEST_F(PartBookTest, NothingIsLostWhereverTheDaemonDies) {
  for (int step = 1; step <= 8; ++step) {
    driver.calls = 0;
    driver.fails_at = step;
    const bool made = book->make(folder("a"), "a", {kLowPart, kHighPart}).has_value();
    const bool released = made && book->release(folder("a"), "a").has_value();
    driver.fails_at = 0;
    const auto left = driver.there;
    open();
    for (const auto& [part, uuid] : left) EXPECT_TRUE(book->parts().contains(part)) << step;
    EXPECT_TRUE(book->release(folder("a"), "a"));
    EXPECT_THAT(driver.there, IsEmpty()) << step;
    EXPECT_EQ(released, step > 6) << step;
  }
}

TEST_F(PartBookTest, WhatAnotherStartOfTheMachineLeftIsNobodys) {
  driver.there[kLowPart] = "MIG-of-somebody";
  tree.file(
      "tasks/a/parts",
      R"({"boot":"another","parts":[{"gpu":"GPU-1","profile_id":19,"start":0,"size":1,"uuid":"MIG-x"}]})");
  open();
  EXPECT_THAT(book->parts(), IsEmpty());
  EXPECT_TRUE(book->release(folder("a"), "a"));
  EXPECT_TRUE(driver.there.contains(kLowPart));
}

TEST_F(PartBookTest, WhatIsNoTasksFolderHasNone) {
  tree.file("tasks/file", "").link("tasks/link", "/etc");
  open();
  EXPECT_THAT(book->parts(), IsEmpty());
}

TEST_F(PartBookTest, AFileThatCannotBeReadIsToldOf) {
  tree.file("tasks/b/parts", "{\"parts\": [{\"gpu\": 7");
  const auto opened = PartBook::open(tree.root(), std::make_unique<FakeMaker>(driver));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(opened.error().message, HasSubstr("tasks/b/parts"));
}

}  // namespace
}  // namespace drover::container
