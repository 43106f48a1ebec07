#include "image/entry_path.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace drover::image {
namespace {

TEST(EntryPath, IsRelativeToTheRoot) {
  for (const auto& [raw, path] :
       std::vector<std::pair<std::string, std::string>>{{"a", "a"},
                                                        {"./a/b", "a/b"},
                                                        {"/etc/passwd", "etc/passwd"},
                                                        {"a//b/./c/", "a/b/c"},
                                                        {".", ""},
                                                        {"./", ""},
                                                        {"/", ""},
                                                        {"..a/b..", "..a/b.."}})
    EXPECT_EQ(entry_path(raw).value_or("refused"), path) << raw;
}

TEST(EntryPath, RefusesWhatClimbsOut) {
  for (const auto* raw : {"..", "../a", "a/../b", "/..", "a/..", "./.."})
    EXPECT_FALSE(entry_path(raw)) << raw;
}

TEST(EntryPath, RefusesWhatLinuxCannotHold) {
  EXPECT_FALSE(entry_path(""));
  EXPECT_TRUE(entry_path(std::string(255, 'a')));
  EXPECT_FALSE(entry_path(std::string(256, 'a')));
  std::string deep;
  for (std::size_t i = 0; i < kMaxDepth; ++i) deep += "d/";
  EXPECT_TRUE(entry_path(deep));
  EXPECT_FALSE(entry_path(deep + "d"));
  std::string longest;
  while (longest.size() <= kMaxPath) longest += std::string(200, 'a') + "/";
  EXPECT_FALSE(entry_path(longest));
}

RC_GTEST_PROP(EntryPath, NeverHasAPartThatLeads, (const std::string& raw)) {
  const auto path = entry_path(raw);
  if (!path) return;
  for (const auto& part : path_parts(*path)) RC_ASSERT(!part.empty() && part != "." && part != "..");
}

TEST(Marker, ReadsWhiteouts) {
  const auto kind = [](const std::string& path) { return marker_of(path)->kind; };
  EXPECT_EQ(kind("a/b"), Marker::Kind::kNone);
  EXPECT_EQ(kind(""), Marker::Kind::kNone);
  EXPECT_EQ(kind("a/.wh.b"), Marker::Kind::kWhiteout);
  EXPECT_EQ(marker_of("a/.wh.b")->name, "b");
  EXPECT_EQ(kind("a/.wh..wh..opq"), Marker::Kind::kOpaque);
  EXPECT_EQ(kind(".wh..wh.plnk/12"), Marker::Kind::kIgnored);
  EXPECT_EQ(kind(".wh..wh.aufs"), Marker::Kind::kIgnored);
}

TEST(Marker, RefusesWhiteoutsThatLead) {
  for (const auto* path : {".wh.", "a/.wh..", "a/.wh..."}) EXPECT_FALSE(marker_of(path)) << path;
}

}  // namespace
}  // namespace drover::image
