#include "cli/definitions/document.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Document one(std::string_view text, bool only_json = false) {
  auto documents = parse_documents(text, only_json);
  EXPECT_TRUE(documents) << documents.error().message;
  EXPECT_EQ(documents->size(), 1u);
  return std::move(documents->front());
}

Mistake refused(std::string_view text, bool only_json = false) {
  const auto documents = parse_documents(text, only_json);
  EXPECT_FALSE(documents) << text;
  return documents ? Mistake{} : documents.error();
}

TEST(DocumentTest, ReadsScalarsAsYamlsCoreSchemaHasThem) {
  const auto value =
      one("a: 1\nb: -2.5\nc: 'x'\nd: \"7\"\ne: true\nf: ~\ng: no\nh: 0x1F\ni: 0755\nj: 1e3\nk: .inf\n"
          "l: +4\nm: !!str 5\nn: -\xC3\xA9\n8080: port\n")
          .value;
  EXPECT_EQ(value, json({{"a", 1},
                         {"b", -2.5},
                         {"c", "x"},
                         {"d", "7"},
                         {"e", true},
                         {"f", nullptr},
                         {"g", "no"},
                         {"h", 31},
                         {"i", "0755"},
                         {"j", 1000.0},
                         {"k", ".inf"},
                         {"l", 4},
                         {"m", "5"},
                         {"n", "-\xC3\xA9"},
                         {"8080", "port"}}));
}

TEST(DocumentTest, KnowsWhereEverythingStandsInYamlAndInJson) {
  const auto yaml = one("id: web\nhealthChecks:\n  - path: /a\n  - path: /b\n");
  EXPECT_EQ(yaml.place_of("/healthChecks(1)/path"), (Place{4, 11}));
  EXPECT_EQ(yaml.place_of("/healthChecks/1/path"), (Place{4, 11}));
  EXPECT_EQ(yaml.place_of("/healthChecks(1)/port/deeper"), (Place{4, 5})) << "the nearest around it";
  EXPECT_EQ(yaml.place_of("/"), (Place{1, 1}));
  const auto list = one("{\"a\": [\n  {\"b/c\": 1}]}", true);
  EXPECT_EQ(list.place_of("/a/0/b~1c"), (Place{2, 11}));
}

TEST(DocumentTest, ReadsSeveralDocumentsAndLeavesEmptyOnesOut) {
  const auto documents = parse_documents("---\na: 1\n---\n---\nb: 2\n...\n", false);
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ((*documents)[1].value, json({{"b", 2}}));
  EXPECT_EQ((*documents)[1].place_of("/b"), (Place{5, 4}));
  EXPECT_TRUE(parse_documents("", false)->empty());
  EXPECT_TRUE(parse_documents("# nothing\n", false)->empty());
}

TEST(DocumentTest, FollowsAliasesAsLongAsTheyStaySmall) {
  EXPECT_EQ(one("a: &x {b: [1, 2]}\nc: *x\n").value["c"], json({{"b", {1, 2}}}));
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i)
    bomb +=
        fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  const auto mistake = refused(bomb);
  EXPECT_THAT(mistake.message, HasSubstr("values in it"));
  EXPECT_EQ(mistake.place.line, 6u);
  std::string chain = "a0: &a0 x\n";
  for (int i = 1; i < 100; ++i) chain += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_THAT(refused(chain).message, HasSubstr("nested deeper"));
  EXPECT_THAT(refused("a: &a [*a]").message, HasSubstr("no anchor '&a'"));
  EXPECT_THAT(refused("a: *b").message, HasSubstr("no anchor '&b'"));
  EXPECT_THAT(refused("a: &x {b: 1}\nc:\n  <<: *x\n").message, HasSubstr("merge keys"));
}

TEST(DocumentTest, RefusesKeysThatStandTwiceAndSaysWhere) {
  for (const bool only_json : {false, true}) {
    const auto mistake = refused("{\"a\": {\"b\": 1,\n \"b\": 2}}", only_json);
    EXPECT_EQ(mistake.path, "/a/b");
    EXPECT_THAT(mistake.message, HasSubstr("'b' stands here twice"));
    EXPECT_EQ(mistake.place, (Place{2, 2}));
  }
}

TEST(DocumentTest, RefusesWhatIsTooDeepOrTooLarge) {
  EXPECT_THAT(refused(std::string(1'000'000, '[')).message, HasSubstr("nested deeper"));
  EXPECT_THAT(refused(std::string(1'000'000, '['), true).message, HasSubstr("nested deeper"));
  EXPECT_THAT(refused(std::string(kMaxDefinitionBytes + 1, ' ')).message, HasSubstr("4 MiB"));
  std::string many;
  for (std::size_t i = 0; i < kMostDefinitionNodes; ++i) many += "- 1\n";
  EXPECT_THAT(refused(many).message, HasSubstr("values in it"));
}

TEST(DocumentTest, TellsWhereTheSyntaxIsWrong) {
  EXPECT_EQ(refused("a: 1\nb: [\n").place.line, 3u);
  const auto comma = refused("{\"a\": 1,\n \"b\": 2,}", true);
  EXPECT_EQ(comma.place.line, 2u);
  EXPECT_THAT(comma.message, HasSubstr("not JSON"));
  EXPECT_THAT(refused("a: \xff\xfe\n").message, HasSubstr("neither YAML nor JSON"));
  EXPECT_THAT(refused("a: !!binary x\n").message, HasSubstr("tag"));
  for (const auto* unquoted : {"a: * 2 * * *\n", "a: */10 * * * *\n", "a: @daily\n"})
    EXPECT_THAT(refused(unquoted).hint, HasSubstr("stands in quotes")) << unquoted;
  EXPECT_EQ(one("{a: 1, b: 2,}").value, json({{"a", 1}, {"b", 2}})) << "YAML that only looks like JSON";
}

TEST(DocumentTest, JsonWithEscapedPairsIsReadThoughYamlCannot) {
  EXPECT_EQ(one("{\"a\": \"\\ud83d\\ude00\"}").value, json({{"a", "\xF0\x9F\x98\x80"}}));
}

TEST(DocumentTest, PointsAtCharactersAndCutsLongLines) {
  EXPECT_EQ(point_at("a: \xC3\xA9 x", {1, 6}), "  a: \xC3\xA9 x\n       ^\n");
  EXPECT_EQ(point_at("a", {1, 9}), "  a\n   ^\n");
  EXPECT_EQ(point_at("a", {}), "");
  const auto cut = point_at(std::string(500, 'a') + "b" + std::string(500, 'c'), {1, 501});
  const auto lines = cut.find('\n');
  EXPECT_EQ(cut[cut.find('^') - lines - 1], 'b');
  EXPECT_LT(cut.size(), 300u);
  EXPECT_EQ(line_of("a\r\nb\n", 1), "a");
  EXPECT_EQ(line_of("a\r\nb\n", 2), "b");
  EXPECT_EQ(line_of("a", 7), "");
}

RC_GTEST_PROP(DocumentProperty, AnyBytesAreReadOrRefused, (std::string text)) {
  for (const bool only_json : {false, true}) {
    const auto read = parse_documents(text, only_json);
    if (!read) {
      RC_ASSERT(!read.error().message.empty());
      (void)point_at(line_of(text, read.error().place.line), read.error().place);
    }
  }
}

RC_GTEST_PROP(DocumentProperty, JsonIsReadAsItself, (std::map<std::string, std::vector<int>> map)) {
  json value = json::object();
  for (const auto& [name, numbers] : map) {
    std::string plain;
    for (const char c : name) plain += static_cast<char>('a' + (static_cast<unsigned char>(c) % 26));
    value[plain] = numbers;
  }
  for (const auto& text : {value.dump(), value.dump(2)}) {
    const auto read = parse_documents(text, true);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->front().value == value);
    for (const auto& [name, numbers] : value.items()) RC_ASSERT(read->front().place_of("/" + name).line > 0);
  }
}

}  // namespace
}  // namespace drover::cli
