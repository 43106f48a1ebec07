#include "image/merged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>

#include "base/fake_tree.h"

namespace drover::image {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MergedTest : public ::testing::Test {
 protected:
  std::vector<std::string> layers() const { return {tree_ / "low", tree_ / "high"}; }
  std::vector<MergedEntry> list(const std::string& path) const {
    return list_merged(layers(), path, [](std::string_view name) { return name.starts_with("lib"); }).value();
  }
  std::vector<std::string> names(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& entry : list(path)) names.push_back(entry.name);
    return names;
  }
  bool white_out(const std::string& path) const {
    return ::mknod((tree_ / path).c_str(), S_IFCHR, makedev(0, 0)) == 0;
  }

  FakeTree tree_;
};

TEST_F(MergedTest, ShowsWhatEachLayerHasOnce) {
  tree_.file("low/usr/lib/libold.so", "12").file("low/usr/lib/libboth.so", "low");
  tree_.file("high/usr/lib/libboth.so", "high").file("high/usr/lib/readme", "").folder("high/usr/lib/libs");
  EXPECT_THAT(list("/usr/lib"), ElementsAre(MergedEntry{"libboth.so", MergedEntry::Kind::kFile, 4},
                                            MergedEntry{"libold.so", MergedEntry::Kind::kFile, 2},
                                            MergedEntry{"libs", MergedEntry::Kind::kFolder, 0}));
  EXPECT_THAT(names("/usr/lib64"), IsEmpty());
  EXPECT_THAT(names("//usr//lib/"), ElementsAre("libboth.so", "libold.so", "libs"));
}

TEST_F(MergedTest, WhatAnUpperLayerTakesAwayIsGone) {
  tree_.file("low/usr/lib/libgone.so", "1").file("low/usr/lib/libkept.so", "1").file("low/opt/libc.so", "1");
  tree_.folder("high/usr/lib");
  if (!white_out("high/usr/lib/libgone.so") || !white_out("high/opt"))
    GTEST_SKIP() << "whiteouts are device nodes, which cannot be made here";
  EXPECT_THAT(names("/usr/lib"), ElementsAre("libkept.so"));
  EXPECT_THAT(names("/opt"), IsEmpty());
}

TEST_F(MergedTest, AnOpaqueFolderHidesTheOneBelow) {
  tree_.file("low/usr/lib/libold.so", "1").file("high/usr/lib/libnew.so", "1");
  if (::setxattr((tree_ / "high/usr/lib").c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0)
    GTEST_SKIP() << "the attributes of overlayfs cannot be set here";
  EXPECT_THAT(names("/usr/lib"), ElementsAre("libnew.so"));
}

TEST_F(MergedTest, LinksAreNeverFollowed) {
  tree_.file("outside/lib.so", "1").file("low/usr/lib/liblow.so", "1").folder("high/usr");
  tree_.link("high/usr/lib", "../../outside").link("low/lib64", "/").file("low/usr/lib64/liba.so", "1");
  tree_.link("high/usr/lib64/liblink.so", "liba.so");
  EXPECT_THAT(names("/usr/lib"), IsEmpty()) << "a link hides the folder below it";
  EXPECT_THAT(names("/lib64"), IsEmpty());
  EXPECT_THAT(names("/usr/../../outside"), IsEmpty());
  EXPECT_THAT(list("/usr/lib64"), ElementsAre(MergedEntry{"liba.so", MergedEntry::Kind::kFile, 1},
                                              MergedEntry{"liblink.so", MergedEntry::Kind::kOther, 0}));
}

TEST_F(MergedTest, TooMuchAndMissingLayersAreRefused) {
  for (int i = 0; i < 4200; ++i) tree_.file("low/usr/lib/lib" + std::to_string(i), "");
  tree_.folder("high");
  const auto wanted = [](std::string_view) { return true; };
  const auto listed = list_merged(layers(), "/usr/lib", wanted);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().kind, ErrorKind::kExhausted);
  EXPECT_FALSE(list_merged({tree_ / "nowhere"}, "/", wanted));
  EXPECT_THAT(list_merged({}, "/", wanted).value(), IsEmpty());
}

}  // namespace
}  // namespace drover::image
