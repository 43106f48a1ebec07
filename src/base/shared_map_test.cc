#include "base/shared_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace drover {
namespace {

using Map = SharedMap<int, std::string>;

std::vector<std::pair<int, std::string>> items_of(const Map& map) {
  return {map.begin(), map.end()};
}

std::vector<std::pair<int, std::string>> items_of(const std::map<int, std::string>& map) {
  return {map.begin(), map.end()};
}

TEST(SharedMap, IsEmptyAtFirst) {
  const Map map;
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(map.begin() == map.end());
  EXPECT_TRUE(map.find(1) == map.end());
  EXPECT_THROW(map.at(1), std::out_of_range);
}

TEST(SharedMap, KeepsWhatIsThereWhenItIsEmplaced) {
  Map map;
  EXPECT_TRUE(map.emplace(1, "one"));
  EXPECT_FALSE(map.emplace(1, "uno"));
  EXPECT_EQ(map.at(1), "one");
  map.insert_or_assign(1, "uno");
  EXPECT_EQ(map.at(1), "uno");
  EXPECT_EQ(map.size(), 1U);
}

TEST(SharedMap, EditMakesWhatIsNotThere) {
  Map map;
  map.edit(2) += "two";
  map.edit(2) += "!";
  EXPECT_EQ(map.at(2), "two!");
}

/// Who reads a copy must be sure that it does not change below him.
TEST(SharedMap, CopiesShareItemsUntilTheseChange) {
  Map map;
  for (int key = 0; key < 1000; ++key) map.emplace(key, std::to_string(key));
  const auto copy = map;
  EXPECT_EQ(&copy.at(500), &map.at(500));
  map.edit(500) = "changed";
  map.erase(501);
  map.insert_or_assign(502, "replaced");
  EXPECT_EQ(copy.at(500), "500");
  EXPECT_EQ(copy.at(501), "501");
  EXPECT_EQ(copy.at(502), "502");
  EXPECT_EQ(&copy.at(499), &map.at(499)) << "only what changed is copied";
  EXPECT_EQ(copy.size(), 1000U);
  EXPECT_EQ(map.size(), 999U);
}

TEST(SharedMap, GoesBothWays) {
  Map map;
  for (int key = 0; key < 200; ++key) map.emplace(key, "");
  auto at = map.end();
  for (int key = 199; key >= 0; --key) EXPECT_EQ((--at)->first, key);
  EXPECT_TRUE(at == map.begin());
}

TEST(SharedSet, HasEachKeyOnce) {
  SharedSet<std::string> set{"b", "a"};
  EXPECT_FALSE(set.insert("a"));
  EXPECT_TRUE(set.insert("c"));
  EXPECT_EQ(std::vector<std::string>(set.begin(), set.end()), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(set.erase("b"), 1U);
  EXPECT_EQ(set.erase("b"), 0U);
  EXPECT_EQ(set, (SharedSet<std::string>{"a", "c"}));
}

/// Whatever is done to it, it is what std::map is, and so is every copy that was made on the way.
RC_GTEST_PROP(SharedMapProperty, IsAMap, ()) {
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 8), rc::gen::inRange(0, 300)));
  Map map;
  std::map<int, std::string> model;
  std::vector<std::pair<Map, std::map<int, std::string>>> kept;
  for (int round = 0; round < 8; ++round)  // many more than fit into one chunk
    for (const auto& [what, chosen] : steps) {
      const int key = (chosen + 37 * round) % 300;
      const auto text = std::to_string(what * 1000 + round);
      if (what < 3) {
        map.insert_or_assign(key, text);
        model.insert_or_assign(key, text);
      } else if (what < 5) {
        RC_ASSERT(map.emplace(key, text) == model.emplace(key, text).second);
      } else if (what == 5) {
        map.edit(key) += text;
        model[key] += text;
      } else if (what == 6) {
        RC_ASSERT(map.erase(key) == model.erase(key));
      } else if (kept.size() < 20) {
        kept.emplace_back(map, model);
      }
      const auto bound = model.lower_bound(key);
      RC_ASSERT((map.lower_bound(key) == map.end()) == (bound == model.end()));
      if (bound != model.end()) RC_ASSERT(map.lower_bound(key)->first == bound->first);
    }
  kept.emplace_back(map, model);
  for (const auto& [copy, then] : kept) {
    RC_ASSERT(copy.size() == then.size());
    RC_ASSERT(items_of(copy) == items_of(then));
  }
}

}  // namespace
}  // namespace drover
