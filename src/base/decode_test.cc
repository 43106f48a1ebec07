#include "base/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <nlohmann/json.hpp>

namespace drover {
namespace {

using nlohmann::json;

TEST(Decoder, GathersMistakesWithTheirPaths) {
  const auto document = json::parse(R"({"a": 1, "b": {"c/d": "x", "e": 2.5}, "f": [{"g": true}, {"g": 3}]})");
  std::vector<Error> mistakes;
  Decoder decoder(document, mistakes);
  EXPECT_EQ(decoder.string("a"), std::nullopt);
  auto inner = decoder.object("b");
  EXPECT_EQ(inner->boolean("c/d"), std::nullopt);
  EXPECT_EQ(inner->integer("e", 0, 9), std::nullopt);
  for (auto& item : decoder.objects("f")) item.boolean("g");
  std::vector<std::string> paths;
  for (const auto& mistake : mistakes) paths.push_back(mistake.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"/a", "/b/c~1d", "/b/e", "/f/1/g"}));
}

TEST(Decoder, TextThatIsNoneIsToldWhereItStandsAndHowItIsWritten) {
  const auto document = json::parse(
      R"({"name": 5, "env": {"A": "b", "c/d": true, "e": 1}, "words": ["a", 7, 8], "list": "a", "map": []})");
  std::vector<Error> mistakes;
  Decoder decoder(document, mistakes);
  EXPECT_EQ(decoder.string("name"), std::nullopt);
  EXPECT_EQ(decoder.string_map("env"), std::nullopt);
  EXPECT_EQ(decoder.string_list("words"), std::nullopt);
  EXPECT_EQ(decoder.string_list("list"), std::nullopt);
  EXPECT_EQ(decoder.string_map("map"), std::nullopt);
  std::vector<std::string> told;
  for (const auto& mistake : mistakes) told.push_back(mistake.path + " " + mistake.hint);
  EXPECT_EQ(told, (std::vector<std::string>{"/name write it in quotes: \"5\"",
                                            "/env/c~1d write it in quotes: \"true\"",
                                            "/words/1 write it in quotes: \"7\"",
                                            "/list write for example [\"one\", \"two\"]", "/map "}));
}

TEST(Decoder, NullIsAbsentAndUnknownFieldsAreMistakes) {
  const json document = {{"name", nullptr}, {"nmae", "x"}};
  std::vector<Error> mistakes;
  Decoder decoder(document, mistakes);
  EXPECT_EQ(decoder.string("name"), std::nullopt);
  decoder.finish();
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_EQ(mistakes[0].hint, "did you mean 'name'?");
}

TEST(Decoder, IntegersKeepTheirValueAndBounds) {
  const json document = {{"large", (1LL << 53) + 1}, {"whole", 3.0}, {"low", -1}};
  std::vector<Error> mistakes;
  Decoder decoder(document, mistakes);
  EXPECT_EQ(decoder.integer("large", 0, 1LL << 60), (1LL << 53) + 1);
  EXPECT_EQ(decoder.integer("whole", 0, 9), 3);
  EXPECT_EQ(decoder.integer("low", 0, 9), std::nullopt);
  EXPECT_EQ(mistakes.size(), 1u);
}

TEST(ParseJson, SaysWhereTheMistakeIs) {
  const auto parsed = parse_json("{\n  \"a\": ,\n}", "The file");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "The file is not JSON: line 2, column 8");
  EXPECT_EQ(parsed.error().path, "/a");
  const auto path_of = [](std::string_view text) { return parse_json(text, "It").error().path; };
  EXPECT_EQ(path_of(R"({"a": 1, "b": [{}, {"c/d": NaN}]})"), "/b/1/c~1d");
  EXPECT_EQ(path_of(R"({"a": {"b": 1}, "c": "\udc00"})"), "/c");
  EXPECT_EQ(path_of("x"), "");
  const auto large = parse_json(R"({"gpus": [1, 1e400]})", "The body");
  EXPECT_EQ(large.error().message, "The body holds a number that is too large: 1e400");
  EXPECT_EQ(large.error().path, "/gpus/1");
}

TEST(ParseJson, RefusesFieldsThatAreGivenTwice) {
  const auto twice = parse_json(R"({"gpus": 1, "a/b": [{}, {"x": 1, "y": {}, "x": 2}]})", "The body");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "The body has the field 'x' twice");
  EXPECT_EQ(twice.error().path, "/a~1b/1/x");
  EXPECT_TRUE(parse_json(R"({"x": {"x": 1}, "y": [{"x": 1}, {"x": 2}]})", "It"));
}

TEST(ParseJson, SaysWhereTheTextIsNotUtf8) {
  const auto parsed = parse_json("{\n \"a\": [0, \"\xc3\x28\"]}", "The body");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "The body is not UTF-8: line 2, column 13");
  EXPECT_EQ(parsed.error().path, "/a/1");
  for (const auto* bytes :
       {"\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc0\xaf\"", "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\""})
    EXPECT_FALSE(parse_json(bytes, "It")) << bytes;
}

TEST(ParseJson, RefusesDeepNestingBeforeReadingOn) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(parse_json(nested(kMostJsonLevels), "It"));
  for (const auto levels : {kMostJsonLevels + 1, std::size_t{1'000'000}}) {
    const auto parsed = parse_json(nested(levels), "The body");
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().message, "The body is nested deeper than 64 levels");
    EXPECT_LT(parsed.error().path.size(), 500u);
  }
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(parse_json(objects, "It").error().message, "It is nested deeper than 64 levels");
}

TEST(ParseJson, ReadsWhatWasWritten) {
  EXPECT_TRUE(rc::check([](const std::map<std::uint16_t, std::vector<std::int64_t>>& members) {
    json document = {{"empty", json::object()}, {"list", json::array({json::array(), 0.5, nullptr, true})}};
    for (const auto& [name, numbers] : members) {
      document["list"].push_back({{std::to_string(name), numbers}});
      document["ä/" + std::to_string(name)] = numbers;
    }
    RC_ASSERT(parse_json(document.dump(), "It").value() == document);
  }));
}

TEST(Decoder, MistakesStayShort) {
  const std::string name(100'000, 'n');
  std::string umlauts;
  for (int i = 0; i < 50'000; ++i) umlauts += "ä";
  const json document = {{"a", umlauts}, {name, 1}};
  std::vector<Error> mistakes;
  Decoder decoder(document, mistakes);
  constexpr std::array<std::string_view, 1> kWords = {"b"};
  EXPECT_EQ(decoder.choice("a", kWords), std::nullopt);
  decoder.finish();
  ASSERT_EQ(mistakes.size(), 2u);
  for (const auto& mistake : mistakes) {
    EXPECT_LT(mistake.message.size() + mistake.path.size(), 1000u);
    EXPECT_NO_THROW((void)json(mistake.message).dump());  // still UTF-8
  }
  mistakes.resize(1000, mistakes.front());
  EXPECT_THAT(join_mistakes(mistakes, "It").message, ::testing::EndsWith("… and 980 more"));
}

TEST(Decoder, WhatNoIntegerHoldsIsAMistakeWhateverTheBound) {
  const auto value = json::parse(
      R"({"float": 9223372036854775808.0, "whole": 9223372036854775808, "most": 9223372036854775807})");
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(decoder.integer("float", 0, kMost), std::nullopt);
  EXPECT_EQ(decoder.integer("whole", 0, kMost), std::nullopt);
  EXPECT_EQ(decoder.integer("most", 0, kMost), 9223372036854775807);
}

TEST(Nearest, FindsATypingMistakeAndNothingElse) {
  EXPECT_EQ(nearest("gpsu", {"gpus", "cpus", "memory"}), "gpus");
  EXPECT_EQ(nearest("completely", {"gpus", "cpus", "memory"}), "");
}

}  // namespace
}  // namespace drover
