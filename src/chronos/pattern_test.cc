#include "chronos/pattern.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <regex>

namespace drover::chronos {
namespace {

TEST(Pattern, MatchesTheWholeText) {
  const auto racks = Pattern::parse("rack-[1]");
  EXPECT_FALSE(racks);
  EXPECT_TRUE(Pattern::parse("rack-.*")->matches("rack-7"));
  EXPECT_TRUE(Pattern::parse("^rack-.*$")->matches("rack-"));
  EXPECT_FALSE(Pattern::parse("rack-.+")->matches("rack-"));
  EXPECT_FALSE(Pattern::parse("rack")->matches("rack-7"));
  EXPECT_TRUE(Pattern::parse("a|b.c|")->matches("bxc"));
  EXPECT_TRUE(Pattern::parse("a\\.b")->matches("a.b"));
  EXPECT_FALSE(Pattern::parse("a\\.b")->matches("axb"));
}

TEST(Pattern, RefusesWhatItDoesNotRead) {
  for (const auto* text : {"(a)", "a*", "a+", "a?", "[ab]", "a{2}", "\\d", "a\\", "a^b"})
    EXPECT_FALSE(Pattern::parse(text)) << text;
  EXPECT_FALSE(Pattern::parse(std::string(257, 'a')));
}

RC_GTEST_PROP(PatternProperty, AgreesWithRegularExpressions, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "b", ".", ".*", ".+", "|", "\\."));
  std::string text;
  for (const auto& piece : pieces) text += text.size() + piece.size() <= 12 ? piece : "";
  const auto subject = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '.'));
  const auto pattern = Pattern::parse(text);
  RC_ASSERT(pattern.has_value());
  RC_ASSERT(pattern->matches(subject.substr(0, 12)) ==
            std::regex_match(subject.substr(0, 12), std::regex(text)));
}

}  // namespace
}  // namespace drover::chronos
