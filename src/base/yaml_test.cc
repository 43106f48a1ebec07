#include "base/yaml.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace drover {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json parsed(std::string_view text) {
  const auto value = parse_yaml(text, "test");
  EXPECT_TRUE(value) << (value ? "" : value.error().message);
  return value ? *value : json();
}

std::string yaml_mistake(std::string_view text) {
  const auto value = parse_yaml(text, "test");
  EXPECT_FALSE(value) << text;
  return value ? "" : value.error().message;
}

TEST(Yaml, ScalarsHaveTypes) {
  EXPECT_EQ(parsed("{a: 1, b: 0x1F, c: -3, d: 1.5, e: true, f: false, g: null, h: ~, i: text}"),
            json::parse(R"({"a":1,"b":31,"c":-3,"d":1.5,"e":true,"f":false,"g":null,"h":null,"i":"text"})"));
}

TEST(Yaml, WhatLooksLikeANumberInPartIsText) {
  EXPECT_EQ(parsed("[0-9, 0 1 2, 92.00.19.00.01, 0000:82:00.0, nan, inf]"),
            json::parse(R"(["0-9","0 1 2","92.00.19.00.01","0000:82:00.0","nan","inf"])"));
}

TEST(Yaml, QuotedScalarsAreText) {
  EXPECT_EQ(parsed("['1', \"true\", '']"), json::parse(R"(["1","true",""])"));
}

TEST(Yaml, NestsListsAndObjects) {
  EXPECT_EQ(parsed("a:\n  - {b: [1, 2]}\n  - c: {}\n"), json::parse(R"({"a":[{"b":[1,2]},{"c":{}}]})"));
}

TEST(Yaml, AnEmptyDocumentIsNull) {
  EXPECT_EQ(parsed(""), json());
  EXPECT_EQ(parsed("# nothing\n"), json());
}

TEST(Yaml, MistakesNameTheLine) {
  EXPECT_THAT(yaml_mistake("a: 1\nb: [1\n"), HasSubstr("test: line 3"));
  EXPECT_THAT(yaml_mistake("a: 1\na: 2\n"), HasSubstr("line 2: the key 'a' stands here twice"));
}

TEST(Yaml, RefusesWhatCouldGrowWithoutEnd) {
  EXPECT_THAT(yaml_mistake("a: &x [1]\nb: *x\n"), HasSubstr("aliases"));
  EXPECT_THAT(yaml_mistake("--- 1\n--- 2\n"), HasSubstr("second document"));
  EXPECT_THAT(yaml_mistake(std::string(40, '[') + std::string(40, ']')), HasSubstr("nested"));
}

TEST(Yaml, AnyBytesAreReadOrRefused) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const auto value = parse_yaml(bytes, "test");
    if (!value) RC_ASSERT(value.error().kind == ErrorKind::kInvalid);
  }));
}

TEST(Yaml, TextInQuotesComesBack) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
    RC_ASSERT(*parse_yaml(json(text).dump(), "test") == json(text));
  }));
}

TEST(Yaml, ReadsFiles) {
  const auto file = std::filesystem::path(testing::TempDir()) / "yaml_test.yaml";
  std::ofstream(file) << "a: 1\n";
  EXPECT_EQ(*read_yaml(file), json::parse(R"({"a":1})"));
  std::ofstream(file) << std::string((1 << 20) + 1, '#');
  EXPECT_THAT(read_yaml(file).error().message, HasSubstr("larger than 1 MiB"));
  std::filesystem::remove(file);
  EXPECT_EQ(read_yaml(file).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace drover
