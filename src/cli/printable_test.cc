#include "cli/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

TEST(Printable, ControlCharactersOfBothKindsAreTakenOut) {
  EXPECT_EQ(printable("\033[2J\r\n\t\x7f"), "?[2J????");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a?2J");
}

TEST(Printable, SoAreMarksThatTurnTheOrderRound) {
  EXPECT_EQ(printable("\xe2\x80\xaegpj.exe\xe2\x81\xa6\xd8\x9c"), "?gpj.exe??");
}

TEST(Printable, LettersOfAllLanguagesStay) {
  const std::string text = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xd7\xa9 \xe6\xbc\xa2 \xf0\x9f\x90\x91";
  EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatIsCutOffIsNotReadBeyond) {
  for (const std::string cut : {"\xc2", "\xe2", "\xe2\x80", "\xf0\x9f"}) EXPECT_EQ(printable(cut), cut);
}

TEST(Printable, LinesMayStay) {
  EXPECT_EQ(printable_lines("one\ntwo\033\n"), "one\ntwo?\n");
}

TEST(Printable, JsonKeepsItsValue) {
  const nlohmann::json value = {{"a\xc2\x9b", "\x7f\xe2\x80\xae\n"}};
  const auto text = printable_json(value.dump(2));
  EXPECT_EQ(nlohmann::json::parse(text), value);
  EXPECT_EQ(printable_lines(text), text);
}

}  // namespace
}  // namespace drover::cli
