#include "base/trusted_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace drover {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kSomebody = 60601;

class TrustedPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/drover-trusted-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = static_cast<char*>(folder);
    fs::create_directories(folder_ + "/above/state");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string said(const std::string& path) {
    const auto checked = check_trusted(folder_ + path);
    return checked ? "" : checked.error().message;
  }

  std::string folder_;
};

TEST_F(TrustedPathTest, AFolderOfOnesOwnBelowTmpIsSafe) {
  EXPECT_EQ(said("/above/state"), "");
  EXPECT_EQ(said("/above/../above/state/"), "");
}

TEST_F(TrustedPathTest, OneThatOthersCanWriteToIsNot) {
  for (const std::string path : {"/above/state", "/above"}) {
    ASSERT_EQ(::chmod((folder_ + path).c_str(), 0777), 0);
    EXPECT_NE(said("/above/state").find("can be written to by others"), std::string::npos);
    ASSERT_EQ(::chmod((folder_ + path).c_str(), 01777), 0);
    EXPECT_EQ(said("/above/state"), "");
  }
}

TEST_F(TrustedPathTest, NorIsOneBelowSomebodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown((folder_ + "/above").c_str(), kSomebody, kSomebody), 0);
  EXPECT_NE(said("/above/state").find("belongs to user 60601"), std::string::npos);
}

TEST_F(TrustedPathTest, NorIsALinkOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto link = folder_ + "/link";
  fs::create_directory_symlink(folder_ + "/above/state", link);
  EXPECT_EQ(said("/link"), "");
  ASSERT_EQ(::lchown(link.c_str(), kSomebody, kSomebody), 0);
  EXPECT_NE(said("/link").find("belongs to user 60601"), std::string::npos);
}

TEST_F(TrustedPathTest, WhatIsNotThereIsAnError) {
  EXPECT_NE(said("/absent").find("Failed to look at"), std::string::npos);
}

}  // namespace
}  // namespace drover
