#include "cel/selector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

namespace drover::cel {
namespace {

Device gpu() {
  Device device;
  device.driver = "gpu.nvidia.com";
  device.attributes = {{"type", "gpu"},
                       {"index", std::int64_t{3}},
                       {"driverVersion", Version{"535.104.5"}},
                       {"names", std::vector<std::string>{"fish", "bird"}},
                       {"resource.kubernetes.io/pcieRoot", "pci0000:00"}};
  device.capacity = {{"memory", Quantity::parse("80Gi").value()}};
  return device;
}

std::string answer(std::string_view text) {
  const auto selector = Selector::compile(text);
  if (!selector) return std::string(error_kind_info(selector.error().kind).name) + " at once";
  const auto matched = selector->matches(gpu());
  if (!matched) return std::string(error_kind_info(matched.error().kind).name);
  return *matched ? "yes" : "no";
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

struct Case {
  const char* text;
  const char* answer;
};

void expect(std::initializer_list<Case> cases) {
  for (const auto& one : cases) EXPECT_EQ(answer(one.text), one.answer) << one.text;
}

const std::string kInvalid(error_kind_info(ErrorKind::kInvalid).name);

TEST(Selector, ReadsWhatADevicePublishes) {
  expect({{"device.driver == 'gpu.nvidia.com'", "yes"},
          {"device.attributes['gpu.nvidia.com'].type == 'gpu'", "yes"},
          {"device.attributes['gpu.nvidia.com']['index'] > 2", "yes"},
          {"device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'", "yes"},
          {"device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('535.54.3'))", "yes"},
          {"device.attributes['gpu.nvidia.com'].names.exists(x, x == 'bird')", "yes"},
          {"device.attributes['gpu.nvidia.com'].names.includes('fish')", "yes"},
          {"device.attributes['gpu.nvidia.com'].type.includes('gpu')", "yes"},
          {"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('81920Mi')) == 0", "yes"},
          {"device.allowMultipleAllocations", "no"}});
}

TEST(Selector, AnUnknownDomainIsEmptyAndAnUnknownNameAnError) {
  expect({{"'other' in device.attributes", "no"},
          {"size(device.attributes['other']) == 0", "yes"},
          {"has(device.attributes['other'].type)", "no"},
          {"device.attributes['other'].?type.orValue('none') == 'none'", "yes"},
          {"device.attributes['other'].type == 'gpu'", kInvalid.c_str()},
          {"device.attributes['gpu.nvidia.com'].typo == 'gpu'", kInvalid.c_str()}});
}

TEST(Selector, WhatDecidesAbsorbsErrors) {
  expect({{"device.attributes['a'].b || true", "yes"},
          {"device.attributes['a'].b && false", "no"},
          {"device.attributes['a'].b || false", kInvalid.c_str()},
          {"[1, 0].exists(x, 1 / x == 1)", "yes"},
          {"[0, 1].all(x, 1 / x == 2)", "no"},
          {"true ? true : device.attributes['a'].b", "yes"}});
}

TEST(Selector, ChecksTypesBeforeItRuns) {
  for (const char* text : {"",
                           "1",
                           "'text'",
                           "device",
                           "device.driver",
                           "1 == 'a'",
                           "true || device.driver",
                           "device.none",
                           "nobody",
                           "[1, 'a'].size() == 2",
                           "quantity(1) == quantity('1')",
                           "'a'.matches('(')",
                           "int('a') == 1",
                           "1 < quantity('1')",
                           "a b",
                           "'open",
                           "1 +",
                           "(true",
                           "true)",
                           "'\\q' == ''",
                           "9223372036854775808 == 1",
                           "if == 1",
                           "true && (1)",
                           "device.attributes['a'].all(1, true)",
                           "{1: 2}['a'] == 2",
                           "x.y{}.z == 1 ? true : 3",
                           "\xff"})
    EXPECT_TRUE(answer(text).ends_with(" at once")) << text << ": " << answer(text);
}

TEST(Selector, NamesWhatItDoesNotKnow) {
  for (const char* name : {"ip", "duration", "timestamp", "url", "isCIDR"}) {
    const auto selector = Selector::compile(fmt::format("{}('x') == {}('x')", name, name));
    ASSERT_FALSE(selector) << name;
    EXPECT_EQ(selector.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(selector.error().message.find(name), std::string::npos) << selector.error().message;
  }
  EXPECT_EQ(Selector::compile("'%d'.format([1]) == '1'").error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(Selector::compile("google.protobuf.Duration{} == 1").error().kind, ErrorKind::kUnsupported);
}

TEST(Selector, KnowsTheLanguage) {
  expect(
      {{"r'\\n' == '\\\\n' && '''a\nb''' == \"a\\nb\" && b'\\101' == b'A' && '\\u00e9' == 'é'", "yes"},
       {"0x10 == 16 && 1u < 2 && dyn(1.0) == 1 && -9223372036854775808 < 0", "yes"},
       {"9223372036854775807 + 1 > 0", kInvalid.c_str()},
       {"1 / 0 == 1", kInvalid.c_str()},
       {"!(device.driver in []) && !(1 in [])", "yes"},
       {"'aba'.replace('a', 'x', -9223372036854775808) == 'xbx'", "yes"},
       {"7 % -3 == 1 && -7 / 2 == -3 && 2 + 3 * 4 == 14 // and that is all", "yes"},
       {"cel.bind(x, [1, 2, 3].map(i, i * 2), x.filter(i, i > 2) == [4, 6] && x.exists_one(i, i == 2))",
        "yes"},
       {"['a', 'b'].all(i, v, v != string(i)) && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", "yes"},
       {"optional.none().or(optional.of(2)).value() == 2 && [1][?5].orValue(7) == 7", "yes"},
       {"[3, 1, 2].sort() == [1, 2, 3] && ['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb'] && [1, 2].sum() == 3",
        "yes"},
       {"'größe'.charAt(2) == 'ö' && 'größe'.size() == 5 && 'a,b'.split(',') == ['a', 'b'] && ['a', "
        "'b'].join('-') == 'a-b'",
        "yes"},
       {"'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']", "yes"},
       {"isSemver('1.2.3') && !isSemver('v1.2') && semver('v1.2', true).minor() == 2 && semver('1.0.0-a') < "
        "semver('1.0.0')",
        "invalid at once"},
       {"quantity('1k').add(1).asInteger() == 1001 && quantity('1.5').isGreaterThan(quantity('1')) && "
        "!isQuantity('x')",
        "yes"},
       {"type(1) == int && type([]) == list && dyn(1) == 1 && string(1e6) == '1e+06' && double('2.5') == 2.5",
        "yes"}});
}

TEST(Selector, RefusesWhatIsTooLong) {
  EXPECT_EQ(answer("true" + std::string(10'237, ' ')), kInvalid + " at once");
  EXPECT_EQ(answer("true" + std::string(10'236, ' ')), "yes");
}

TEST(Selector, RefusesWhatIsNestedTooDeeply) {
  for (const auto& [front, middle, back] :
       std::initializer_list<std::array<std::string, 3>>{{"(", "true", ")"},
                                                         {"[", "", "]"},
                                                         {"true ? true : ", "true", ""},
                                                         {"size([", "1", "])"},
                                                         {"{1: ", "1", "}"}})
    EXPECT_EQ(answer(repeated(front, 600) + middle + repeated(back, 600)), "unsupported at once") << front;
  EXPECT_EQ(answer("1" + repeated("+1", 1000) + " == 1"), "unsupported at once");
  EXPECT_EQ(answer("device" + repeated(".a", 1000)), "unsupported at once");
  EXPECT_EQ(answer(repeated("(", 200) + "true" + repeated(")", 200)), "yes");
  EXPECT_EQ(answer("true" + repeated("&&true", 1600)), "yes");
}

TEST(Selector, HostileOnesTakeBoundedWork) {
  const std::string numbers = "[1,2,3,4,5,6,7,8,9,0]";
  std::string nested = "true", doubled = "size(x) > 0", types = "true", equal = "x == x";
  for (int i = 0; i < 9; ++i) nested = numbers + ".all(v" + std::to_string(i) + ", " + nested + ")";
  for (int i = 0; i < 60; ++i) {
    doubled = "cel.bind(x, x + x, " + doubled + ")";
    types = "cel.bind(x, {x: x}, " + types + ")";
    equal = "cel.bind(x, [x, x], " + equal + ")";
  }
  EXPECT_EQ(answer(nested), "exhausted");
  EXPECT_EQ(answer("cel.bind(x, 'abc', " + doubled + ")"), "exhausted");
  EXPECT_EQ(answer("cel.bind(x, [1], " + doubled + ")"), "exhausted");
  EXPECT_EQ(answer("cel.bind(x, {1: 1}, " + types + ")"), "unsupported at once");
  EXPECT_EQ(answer("cel.bind(x, dyn(1), " + equal + ")"), "exhausted");
  EXPECT_EQ(answer("lists.range(9223372036854775807).size() > 0"), "exhausted");
  EXPECT_EQ(answer("'" + std::string(3000, 'a') + "b'.matches('^(a+)+$')"), "no");
  EXPECT_EQ(answer("lists.range(5000).all(i, 'a'.matches('(a{0,500}){0,2}' + string(i)) || true)"),
            "exhausted");
}

TEST(Selector, IsAskedByManyAtOnce) {
  const auto selector =
      Selector::compile("device.attributes['gpu.nvidia.com'].type.matches('^g.u$')").value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) EXPECT_TRUE(selector.matches(gpu()).value());
    });
  for (auto& thread : threads) thread.join();
}

TEST(Selector, ADeviceWithAWrongVersionIsAnError) {
  auto device = gpu();
  device.attributes["bad"] = Version{"one"};
  EXPECT_FALSE(Selector::compile("true")->matches(device));
}

RC_GTEST_PROP(SelectorProperty, NoTextIsTooStrange, ()) {
  static const std::vector<std::string> kPieces{"device",
                                                ".attributes",
                                                "['a']",
                                                ".b",
                                                "(",
                                                ")",
                                                "[",
                                                "]",
                                                "{",
                                                "}",
                                                ",",
                                                ":",
                                                "?",
                                                "&&",
                                                "||",
                                                "!",
                                                "-",
                                                "+",
                                                "==",
                                                "<",
                                                " in ",
                                                "'",
                                                "\"",
                                                "r'x'",
                                                "1",
                                                "1.5",
                                                "2u",
                                                "0x",
                                                "null",
                                                "true",
                                                "x",
                                                ".all(x, ",
                                                ".map(x, ",
                                                "cel.bind(x, ",
                                                "optional.of(",
                                                ".orValue(",
                                                "has(",
                                                "quantity('1')",
                                                "semver(",
                                                "size(",
                                                "\\",
                                                "'''",
                                                "b'\\377'",
                                                "é",
                                                "\n",
                                                "//",
                                                ".?c",
                                                "[?0]",
                                                "string(",
                                                ".matches('(')",
                                                "type("};
  std::string text;
  for (const auto& piece : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces)))
    text += piece;
  if (const auto selector = Selector::compile(text)) (void)selector->matches(gpu());
}

}  // namespace
}  // namespace drover::cel
