#include "marathon/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::marathon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Path, IsMadeAbsolute) {
  EXPECT_EQ(absolute_path("web"), "/web");
  EXPECT_EQ(absolute_path("web", "/shop"), "/shop/web");
  EXPECT_EQ(absolute_path("/web", "/shop"), "/web");
  EXPECT_EQ(absolute_path("../db", "/shop/web"), "/shop/db");
  EXPECT_EQ(absolute_path("./a/./b", "/shop"), "/shop/a/b");
  EXPECT_EQ(absolute_path("../../../x", "/a"), "/x");
  EXPECT_EQ(absolute_path("//a//b/"), "/a/b");
  EXPECT_EQ(absolute_path("", "/shop"), "/shop");
  EXPECT_EQ(absolute_path(""), "/");
}

TEST(Path, HasParentsAndSegments) {
  EXPECT_EQ(parent_path("/shop/web"), "/shop");
  EXPECT_EQ(parent_path("/shop"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(last_segment("/shop/web"), "web");
  EXPECT_EQ(last_segment("/"), "");
}

TEST(Path, IsWithinItsGroups) {
  EXPECT_TRUE(is_within("/shop/web", "/shop"));
  EXPECT_TRUE(is_within("/shop", "/shop"));
  EXPECT_TRUE(is_within("/shop", "/"));
  EXPECT_FALSE(is_within("/shopping", "/shop"));
  EXPECT_FALSE(is_within("/shop", "/shop/web"));
}

TEST(Path, SegmentsAreLabelsWithDots) {
  for (const auto* good : {"/", "/a", "/a-b", "/a.b", "/0", "/a1/b2.c-d"})
    EXPECT_THAT(path_mistakes(good), IsEmpty()) << good;
  for (const auto* bad : {"/A", "/a_b", "/-a", "/a-", "/a..b", "/.a", "/a.", "/ä", "/a b"})
    EXPECT_THAT(path_mistakes(bad),
                ElementsAre(StartsWith("must fully match regular expression '^(([a-z0-9]")))
        << bad;
  EXPECT_THAT(path_mistakes("/" + std::string(kMaxPath, 'a')), ElementsAre(StartsWith("must not be longer")));
}

TEST(Path, AnAppMayNotEndWithWhatRoutesEndWith) {
  EXPECT_THAT(app_path_mistakes("/"), ElementsAre("must not be root"));
  for (const auto* word : {"/a/restart", "/tasks", "/a/b/versions"})
    EXPECT_THAT(app_path_mistakes(word),
                ElementsAre("must not end with any of the following reserved keywords: "
                            "restart, tasks, versions, ., .."));
  EXPECT_THAT(app_path_mistakes("/tasks/a"), IsEmpty());
}

}  // namespace
}  // namespace drover::marathon
