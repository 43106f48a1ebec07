#include "cli/table.h"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(Table, LettersOfEastAsiaTakeTwoColumns) {
  EXPECT_EQ(display_width("a\u00fc\u8a13\u7df4e\u0301"), 7U);
  Table table({"NAME", "USER"});
  table.add({"\u8a13\u7df4", "x"});
  table.add({"abcde", "y"});
  EXPECT_EQ(table.render(), "NAME   USER\n\u8a13\u7df4   x\nabcde  y\n");
}

TEST(Table, FitsTheTerminal) {
  Table table({"ID", "NAME", "AGE", "STATUS"});
  table.add({"0123456789abcdef", std::string(40, 'n'), "12345678901234567890", std::string(30, 's')});
  table.add({"b", "\u8a13\u7df4\u8a13\u7df4\u8a13\u7df4\u8a13\u7df4\u8a13\u7df4", "1", "short"});
  for (const std::size_t width : {120UL, 80UL, 70UL}) {
    const auto text = table.render({.width = width});
    std::size_t widest = 0;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      widest = std::max(widest, display_width(text.substr(begin, text.find('\n', begin) - begin)));
    EXPECT_LE(widest, width) << text;
    EXPECT_NE(text.find("0123456789abcdef"), text.npos) << "ids are copied";
    EXPECT_NE(text.find("12345678901234567890"), text.npos) << "half a number is another number";
  }
  EXPECT_EQ(cut_to_width("\u8a13\u7df4\u8a13", 4), "\u8a13\u2026");
}

TEST(Table, ColoursTakeNoRoom) {
  Table table({"STATE", "A"});
  table.add({{"failed", Colour::kRed}, "x"});
  EXPECT_EQ(table.render({.colours = true}), "STATE   A\n\033[31mfailed\033[0m  x\n");
  EXPECT_EQ(table.render({.header = false}), "failed  x\n");
}

}  // namespace
}  // namespace drover::cli
