#include "base/json_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace drover {
namespace {

using nlohmann::json;

void write(JsonWriter& writer, const json& value) {
  if (value.is_object()) {
    writer.begin_object();
    for (const auto& [name, field] : value.items()) {
      writer.key(name);
      write(writer, field);
    }
    writer.end_object();
  } else if (value.is_array()) {
    writer.begin_array();
    for (const auto& item : value) write(writer, item);
    writer.end_array();
  } else if (value.is_string()) {
    writer.value(value.get<std::string>());
  } else if (value.is_boolean()) {
    writer.value(value.get<bool>());
  } else if (value.is_number_unsigned()) {
    writer.value(value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    writer.value(value.get<std::int64_t>());
  } else {
    writer.null();
  }
}

json any_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0:
      return *rc::gen::arbitrary<std::string>();
    case 1:
      return *rc::gen::arbitrary<std::int64_t>();
    case 2:
      return *rc::gen::arbitrary<std::uint64_t>();
    case 3:
      return *rc::gen::arbitrary<bool>();
    case 4:
      return nullptr;
    case 5: {
      json list = json::array();
      for (int count = *rc::gen::inRange(0, 4); count > 0; --count) list.push_back(any_value(depth - 1));
      return list;
    }
    default: {
      json object = json::object();
      for (int count = *rc::gen::inRange(0, 4); count > 0; --count)
        object[*rc::gen::arbitrary<std::string>()] = any_value(depth - 1);
      return object;
    }
  }
}

RC_GTEST_PROP(JsonWriterProperty, WritesTheBytesThatTheLibraryWrites, ()) {
  const auto value = any_value(3);
  std::string text = "before ";
  JsonWriter writer(text);
  write(writer, value);
  RC_ASSERT(text == "before " + to_text(value));
}

TEST(JsonWriter, EscapesWhatMustBeAndReplacesWhatIsNoText) {
  std::string text;
  append_json_text(text, "a\"b\\c\n\x01 \xc3\xa4 \xff");
  EXPECT_EQ(text, "\"a\\\"b\\\\c\\n\\u0001 \xc3\xa4 \xef\xbf\xbd\"");
}

RC_GTEST_PROP(JsonWriterProperty, WritesNumbersListsAndFieldsAsTheLibraryDoes, ()) {
  const auto number = *rc::gen::arbitrary<double>();
  const auto words = *rc::gen::arbitrary<std::vector<std::string>>();
  const auto fields = *rc::gen::arbitrary<std::map<std::string, std::string>>();
  std::string text;
  JsonWriter writer(text);
  writer.begin_array();
  writer.value(number);
  writer.value(words);
  writer.value(fields);
  writer.end_array();
  RC_ASSERT(text == to_text(json::array({number, words, fields})));
}

/// They are written in a way of their own.
RC_GTEST_PROP(JsonWriterProperty, WritesThousandthsAsTheLibraryDoes, ()) {
  const auto digits = *rc::gen::inRange(0, 17);
  const auto most = static_cast<std::int64_t>(std::pow(10.0, digits));
  const auto number = static_cast<double>(*rc::gen::inRange(-most, most)) / 1000;
  std::string text;
  JsonWriter(text).value(number);
  RC_ASSERT(text == json(number).dump());
}

TEST(JsonWriter, WritesZeroAsTheLibraryDoes) {
  for (const double zero : {0.0, -0.0}) {
    std::string text;
    JsonWriter(text).value(zero);
    EXPECT_EQ(text, json(zero).dump());
  }
}

/// Names that stand in the code are added in a way of their own.
TEST(JsonWriter, WritesNamesOfTheCodeAsItWritesOthers) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.field("", 1);
  writer.field("a name", "b");
  writer.field(std::string("an \"other\""), 2);
  writer.field_raw("last", "[]");
  writer.end_object();
  EXPECT_EQ(text, R"({"":1,"a name":"b","an \"other\"":2,"last":[]})");
}

TEST(JsonWriter, TakesTheFieldsOfAnObject) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.fields(json::object());
  writer.field("first", true);
  writer.fields({{"a", 1}, {"b", "\xff"}});
  writer.end_object();
  EXPECT_EQ(text, "{\"first\":true,\"a\":1,\"b\":\"\xef\xbf\xbd\"}");
}

TEST(JsonWriter, TakesFieldsThatAreTextAlready) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.raw(R"("a":1,"b":[])");
  writer.field("c", 0.5);
  writer.end_object();
  EXPECT_EQ(text, R"({"a":1,"b":[],"c":0.5})");
}

TEST(JsonWriter, PutsCommasWhereTheyBelong) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.field("ends with", "[");
  writer.field("and", "{:");
  writer.field_raw("raw", "[]");
  writer.key("list");
  writer.begin_array();
  writer.value(1);
  writer.raw("{}");
  writer.value("x");
  writer.end_array();
  writer.end_object();
  EXPECT_EQ(text, R"({"ends with":"[","and":"{:","raw":[],"list":[1,{},"x"]})");
}

}  // namespace
}  // namespace drover
