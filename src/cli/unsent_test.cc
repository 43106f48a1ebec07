#include "cli/unsent.h"

#include <gtest/gtest.h>

namespace drover::cli {
namespace {

TEST(Unsent, KeepsWhatWasNotTaken) {
  Unsent unsent;
  unsent.append("one two");
  EXPECT_TRUE(unsent.take(0));
  EXPECT_EQ(unsent.rest(), "one two");
  EXPECT_TRUE(unsent.take(4));
  EXPECT_EQ(unsent.rest(), "two");
  unsent.append(" three");
  EXPECT_TRUE(unsent.take(7));
  EXPECT_EQ(unsent.rest(), " three");
  EXPECT_TRUE(unsent.take(7));
  EXPECT_EQ(unsent.rest(), " three");
}

TEST(Unsent, KnowsATaskThatWasStartedAnew) {
  Unsent unsent;
  unsent.append("one two");
  EXPECT_TRUE(unsent.take(4));
  EXPECT_FALSE(unsent.take(0));
  EXPECT_EQ(unsent.rest(), "two");
  EXPECT_TRUE(unsent.take(3));
  EXPECT_EQ(unsent.rest(), "");
}

TEST(Unsent, HasRoomForSoMuch) {
  Unsent unsent;
  unsent.append(std::string(Unsent::kMost - 1, 'x'));
  EXPECT_TRUE(unsent.has_room());
  unsent.append("x");
  EXPECT_FALSE(unsent.has_room());
}

TEST(LeaveKeys, AreTwoInARow) {
  LeaveKeys keys;
  EXPECT_EQ(keys.pass("ls\x11\x10"), "ls\x11");
  EXPECT_EQ(keys.pass("x"), "\x10x");
  EXPECT_EQ(keys.pass("\x10\x10"), "\x10");
  EXPECT_FALSE(keys.pressed());
  EXPECT_EQ(keys.pass("\x11rest"), "");
  EXPECT_TRUE(keys.pressed());
}

}  // namespace
}  // namespace drover::cli
