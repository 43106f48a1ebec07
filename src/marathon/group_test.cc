#include "marathon/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::marathon {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

GroupChange decoded(const std::string& id, const char* body, const GroupContents& existing = {}) {
  auto group = decode_group(id, json::parse(body), existing, {});
  if (!group) throw std::runtime_error(to_json_text(group.error()));
  return std::move(*group);
}

TEST(Group, IdsAndDependenciesAreSeenFromWhereTheyStand) {
  const auto group = decoded("/shop", R"({"id": "/shop", "groups": [
      {"id": "db", "apps": [{"id": "main", "cmd": "x"}]},
      {"id": "web", "dependencies": ["../db"], "apps": [{"id": "front", "cmd": "x", "dependencies": ["back"]},
                                                        {"id": "/shop/web/back", "cmd": "x"}]}],
      "apps": [{"id": "log", "cmd": "x"}]})");
  std::vector<std::string> ids;
  for (const auto& app : group.apps) ids.push_back(app.service.id);
  EXPECT_THAT(ids, ElementsAre("/shop/log", "/shop/db/main", "/shop/web/front", "/shop/web/back"));
  EXPECT_THAT(group.apps[2].service.dependencies, ElementsAre("/shop/web/back"));
  EXPECT_THAT(group.groups, ElementsAre(Pair("/shop", IsEmpty()), Pair("/shop/db", IsEmpty()),
                                        Pair("/shop/web", ElementsAre("/shop/db"))));
  EXPECT_NE(service_ports(group.apps[0].service), service_ports(group.apps[1].service));
}

TEST(Group, WhatIsLeftOutStays) {
  auto old = decode_app({{"id", "/shop/web/front"}, {"cmd", "x"}}, {})->service;
  auto log = decode_app({{"id", "/shop/log"}, {"cmd", "x"}}, {})->service;
  const GroupContents existing{{{old.id, &old}, {log.id, &log}}, {{"/shop", {}}, {"/shop/web", {"/db"}}}};
  const auto apps = decoded("/shop", R"({"apps": []})", existing);
  EXPECT_THAT(apps.apps, IsEmpty());
  EXPECT_THAT(apps.kept, ElementsAre("/shop/web/front"));
  EXPECT_THAT(apps.groups, ElementsAre(Pair("/shop", IsEmpty()), Pair("/shop/web", ElementsAre("/db"))));
  const auto groups = decoded("/shop", R"({"groups": []})", existing);
  EXPECT_THAT(groups.kept, ElementsAre("/shop/log"));
  EXPECT_EQ(groups.groups.size(), 1U);
  EXPECT_EQ(decoded("/shop", "{}", existing).kept.size(), 2U);
}

TEST(Group, MistakesOfItsAppsHaveTheirPaths) {
  const auto group = decode_group("/shop", json::parse(R"({"apps": [{"id": "a"}, {"id": "/b", "cmd": "x"}],
      "groups": [{"id": "g", "apps": [{"id": "c", "cmd": "x", "cpus": "1"}], "pods": [1]}, {"apps": []}],
      "dependencies": ["/shop/g"]})"),
                                  {}, {});
  ASSERT_FALSE(group);
  const auto text = to_json_text(group.error());
  EXPECT_EQ(group.error().message, "Invalid JSON");
  for (const std::string part : {"apps(0)", "apps(1)/id", "groups(0)/apps(0)/cpus", "groups(0)/pods",
                                 "groups(1)/id", "dependencies(0)"})
    EXPECT_THAT(text, HasSubstr("\"path\":\"/" + part + "\""));
  EXPECT_THAT(text, HasSubstr("is not child of /shop"));
}

TEST(Group, IsRefusedWhenAbsurd) {
  json deep = {{"id", "x"}};
  for (int i = 0; i < 100; ++i) deep = {{"id", "x"}, {"groups", {deep}}};
  EXPECT_FALSE(decode_group("/", deep, {}, {}));
  EXPECT_FALSE(decode_group(
      "/", json::parse(R"({"apps": [{"id": "a", "cmd": "x"}, {"id": "a", "cmd": "x"}]})"), {}, {}));
  EXPECT_FALSE(decode_group(
      "/", json::parse(R"({"apps": [{"id": "a", "cmd": "x"}], "groups": [{"id": "a"}]})"), {}, {}));
  for (const auto* body : {"[]", "3", R"({"apps": 3})", R"({"groups": {}})", R"({"apps": [3]})"})
    EXPECT_FALSE(decode_group("/", json::parse(body), {}, {})) << body;
}

}  // namespace
}  // namespace drover::marathon
