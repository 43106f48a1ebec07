#include "kube_node/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fake_tree.h"
#include "base/files.h"

namespace drover {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

ino_t inode_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_ino;
}

class PlacedGuardTest : public ::testing::Test {
 protected:
  driver::Guard place() {
    auto guard = place_guard(state_.root(), {state_ / "replicas", state_ / "claims"});
    EXPECT_TRUE(guard) << to_string(guard.error());
    return guard.value_or(driver::Guard{});
  }

  FakeTree state_;
  driver::Guard own_ = driver::find_guard().value();
};

TEST_F(PlacedGuardTest, IsACopyThatEverybodyMayRun) {
  const auto guard = place();
  ASSERT_THAT(guard, SizeIs(own_.size()));
  for (std::size_t i = 0; i < guard.size(); ++i) {
    EXPECT_TRUE(guard[i].source.starts_with(state_ / "guard/")) << guard[i].source;
    EXPECT_EQ(read_file(guard[i].source).value(), read_file(own_[i].source).value());
    EXPECT_EQ(fs::status(guard[i].source).permissions(), fs::perms(0755));
    EXPECT_EQ(guard[i].needed, own_[i].needed);
  }
}

TEST_F(PlacedGuardTest, WhatContainersHaveStaysTheSameFile) {
  const auto before = place();
  const auto inode = inode_of(before[0].source);
  EXPECT_EQ(place(), before);
  EXPECT_EQ(inode_of(before[0].source), inode);
  // One that a crash, or somebody, has left with another content is put right.
  ASSERT_TRUE(write_file(before[0].source, "half"));
  EXPECT_EQ(place(), before);
  EXPECT_EQ(read_file(before[0].source).value(), read_file(own_[0].source).value());
}

TEST_F(PlacedGuardTest, AnotherVersionStaysAsLongAsAClaimIsGuarded) {
  state_.file("guard/older/libcuda.so.1", "older").file("claims/some-uid/share/limits", "");
  place();
  EXPECT_TRUE(fs::exists(state_ / "guard/older/libcuda.so.1"));
  fs::remove_all(state_ / "claims/some-uid");
  place();
  EXPECT_FALSE(fs::exists(state_ / "guard/older"));
  fs::remove_all(state_ / "claims");
  EXPECT_THAT(place(), SizeIs(own_.size()));
}

}  // namespace
}  // namespace drover
