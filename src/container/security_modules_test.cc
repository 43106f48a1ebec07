#include "container/security_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace drover::container {
namespace {

using AppArmor = SecurityModules::AppArmor;
using ::testing::MatchesRegex;

/// A folder that looks like /sys.
class SysTest : public ::testing::Test {
 protected:
  SysTest() { EXPECT_NE(::mkdtemp(sys_.data()), nullptr); }
  ~SysTest() override { std::filesystem::remove_all(sys_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(sys_ + path).parent_path());
    std::ofstream(sys_ + path) << text;
  }
  SecurityModules found() const { return find_security_modules(sys_); }

  std::string sys_ = std::filesystem::temp_directory_path() / "drover-sys-XXXXXX";
};

TEST_F(SysTest, AMachineWithoutThemHasNone) {
  EXPECT_EQ(found(), SecurityModules());
}

TEST_F(SysTest, AppArmorIsUsedOnceItsProfileIsLoaded) {
  constexpr const char* kEnabled = "/module/apparmor/parameters/enabled";
  constexpr const char* kProfiles = "/kernel/security/apparmor/profiles";
  write(kEnabled, "N\n");
  write(kProfiles, "drover-default (enforce)\n");
  EXPECT_EQ(found().apparmor, AppArmor::kAbsent);
  write(kEnabled, "Y\n");
  EXPECT_EQ(found().apparmor, AppArmor::kReady);
  write(kProfiles, "lsb_release (enforce)\ndrover-default (enforce)\n");
  EXPECT_EQ(found().apparmor, AppArmor::kReady);
  for (const char* others :
       {"", "lsb_release (enforce)\n", "drover-default (complain)\n", "not-drover-default (enforce)\n"}) {
    write(kProfiles, others);
    EXPECT_EQ(found().apparmor, AppArmor::kProfileMissing) << others;
  }
}

TEST_F(SysTest, SelinuxCountsWhileItEnforces) {
  write("/fs/selinux/enforce", "0");
  EXPECT_FALSE(found().selinux_enforcing);
  write("/fs/selinux/enforce", "1");
  EXPECT_TRUE(found().selinux_enforcing);
}

TEST(SelinuxLabels, AreThoseOfContainersWithCategoriesOfTheTask) {
  const auto labels = selinux_labels("0123456789abcdef");
  EXPECT_THAT(labels.process, MatchesRegex("system_u:system_r:container_t:s0:c[0-9]+,c[0-9]+"));
  EXPECT_THAT(labels.files, MatchesRegex("system_u:object_r:container_file_t:s0:c[0-9]+,c[0-9]+"));
  EXPECT_EQ(labels.process.substr(labels.process.rfind(":s0:")),
            labels.files.substr(labels.files.rfind(":s0:")));
  EXPECT_EQ(selinux_labels("0123456789abcdef").process, labels.process);
}

TEST(SelinuxLabels, DifferFromTaskToTaskAndNameTwoCategoriesInOrder) {
  std::set<std::string> seen;
  for (int i = 0; i < 500; ++i) {
    const auto label = selinux_labels("task-" + std::to_string(i)).process;
    unsigned low = 0, high = 0;
    ASSERT_EQ(std::sscanf(label.c_str(), "system_u:system_r:container_t:s0:c%u,c%u", &low, &high), 2)
        << label;
    EXPECT_LT(low, high) << label;
    EXPECT_LT(high, 1024U) << label;
    seen.insert(label);
  }
  EXPECT_GT(seen.size(), 495U);
}

}  // namespace
}  // namespace drover::container
