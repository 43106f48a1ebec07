#include "cli/csv.h"

#include <gtest/gtest.h>

namespace drover::cli {
namespace {

TEST(Csv, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_cell("alice"), "alice");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_line({"a", "", "b c"}), "a,,\"b c\"\n");
}

TEST(Csv, NoNameBecomesAFormula) {
  EXPECT_EQ(csv_cell("=HYPERLINK(\"http://x\")"), "\"'=HYPERLINK(\"\"http://x\"\")\"");
  for (const auto* text : {"+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"})
    EXPECT_EQ(csv_cell(text), "\"'" + std::string(text) + "\"") << text;
  EXPECT_EQ(csv_cell("a=1"), "a=1");
}

TEST(Csv, AnEmptyFirstCellIsOneToo) {
  EXPECT_EQ(csv_line({"", "x"}), ",x\n");
}

}  // namespace
}  // namespace drover::cli
