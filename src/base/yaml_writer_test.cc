#include "base/yaml_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/yaml.h"

namespace drover {
namespace {

using nlohmann::json;

TEST(YamlWriter, PutsWhatNamesAThingFirstAndWhatIsShortOnALine) {
  const json app = {{"kind", "app"},
                    {"id", "/shop/web"},
                    {"cmd", "echo one\necho two\n"},
                    {"env", {{"A", "1"}, {"B", "yes"}}},
                    {"healthChecks", {{{"protocol", "COMMAND"}, {"command", {{"value", "true"}}}}}},
                    {"mem", 0.5}};
  const json queue = {
      {"kind", "queue"}, {"queue", "research/vision"}, {"limit", {{"gpus", 8}}}, {"users", {"ann"}}};
  EXPECT_EQ(to_yaml({{{"name", "short"}}}), "name: short\n") << "a document is no line of a list";
  EXPECT_EQ(to_yaml({app, queue}), R"(kind: app
id: /shop/web
cmd: |
  echo one
  echo two
env: {A: '1', B: 'yes'}
healthChecks:
- command: {value: 'true'}
  protocol: COMMAND
mem: 0.5
---
kind: queue
queue: research/vision
limit: {gpus: 8}
users: [ann]
)");
}

json yaml_value(int depth) {
  const auto text = [] {
    return *rc::gen::container<std::string>(rc::gen::element<char>(
        'a', 'Z', '0', '1', '.', '-', '+', ' ', '\n', '\t', ':', '#', '\'', '"', '\\', '{', ']', ',', '&',
        '*', '!', '|', '>', '%', '@', '`', '~', '?', '=', '/', '\x01', '\x7f', 'x', 'e', 'n', 'o'));
  };
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::inRange(-1000000, 1000000) / 1024.0;
    case 4:
      return *rc::gen::element<std::string>("", "yes", "NO", "null", "~", "1e3", "0x10", "012", ".inf", "- a",
                                            "a: b", "a #b", "é", "\xe2\x80\xa8", "---", "...", "<<", "=",
                                            "2030-01-31", "12:30:45");
    case 5:
      return text();
    case 6: {
      json list = json::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list.push_back(yaml_value(depth - 1));
      return list;
    }
    default: {
      json object = json::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) object[text()] = yaml_value(depth - 1);
      return object;
    }
  }
}

TEST(YamlWriter, IsReadAsWhatWasWritten) {
  EXPECT_TRUE(rc::check([] {
    const auto value = yaml_value(4);
    const auto text = to_yaml({value});
    const auto read = parse_yaml(text, "it");
    if (!read) RC_FAIL(read.error().message + "\n" + text);
    if (*read != value) RC_FAIL(to_text(value) + " is read as " + to_text(*read) + "\n" + text);
  }));
}

}  // namespace
}  // namespace drover
