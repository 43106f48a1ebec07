#include "cli/table.h"

#include <gtest/gtest.h>

namespace drover::cli {
namespace {

TEST(Table, AlignsTextLeftAndNumbersRight) {
  Table table({"ID", "AGE", "NAME"});
  table.add({"a", "5", "x"});
  table.add({"long", "10.5", ""});
  EXPECT_EQ(table.render(), "ID     AGE  NAME\na        5  x\nlong  10.5\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  Table table({"A", "B"});
  table.add({"\xc3\xbc", "x"});
  table.add({"ab", "y"});
  EXPECT_EQ(table.render(), "A   B\n\xc3\xbc   x\nab  y\n");
}

TEST(Table, AHeaderAloneIsATable) {
  EXPECT_EQ(Table({"A", "B"}).render(), "A  B\n");
}

TEST(Table, ARowOfNothingIsAnEmptyLine) {
  Table table({"A", "B"});
  table.add({"", ""});
  table.add({"a", "b"});
  EXPECT_EQ(table.render(), "A  B\n\na  b\n");
}

TEST(Table, NamesPlayNoTricksOnTheTerminal) {
  Table table({"NAME"});
  table.add({"\033[31mred\r\n"});
  EXPECT_EQ(table.render(), "NAME\n?[31mred??\n");
}

}  // namespace
}  // namespace drover::cli
