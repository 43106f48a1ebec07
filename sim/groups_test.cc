#include "sim/groups.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drover::sim {
namespace {

constexpr const char* kMachine =
    "25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
    "26 25 0:24 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Groups, AreFoundWhereTheirTreeIsMounted) {
  EXPECT_EQ(own_group_folder(kMachine, "0::/drover/a\n"), (GroupFolder{"/sys/fs/cgroup", "/drover/a"}));
  EXPECT_EQ(own_group_folder(kMachine, "4:memory:/x\n0::/\n"), (GroupFolder{"/sys/fs/cgroup", ""}));
}

TEST(Groups, OfAContainerAreFoundWithAndWithoutANamespace) {
  const auto mounted = [](const std::string& root) {
    return "26 25 0:24 " + root + " /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
  };
  EXPECT_EQ(own_group_folder(mounted("/"), "0::/inner\n"), (GroupFolder{"/sys/fs/cgroup", "/inner"}));
  EXPECT_EQ(own_group_folder(mounted("/drover/a"), "0::/drover/a\n"), (GroupFolder{"/sys/fs/cgroup", ""}));
  EXPECT_FALSE(own_group_folder(mounted("/drover/a"), "0::/drover/ab\n"));
  EXPECT_FALSE(own_group_folder(mounted("/.."), "0::/\n"));
}

TEST(Groups, AreNoneWithoutVersion2) {
  EXPECT_FALSE(
      own_group_folder("26 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "0::/a\n"));
  EXPECT_FALSE(own_group_folder(kMachine, "4:memory:/x\n"));
  EXPECT_FALSE(own_group_folder("", ""));
  EXPECT_FALSE(own_group_folder("a b - cgroup2 x\n", "0::/\n"));
}

TEST(Groups, AreInodesFromTheInnermostOutwards) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("groups_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "a/b");
  const auto inode = [](const std::filesystem::path& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return Group{info.st_ino};
  };
  const auto groups = own_groups(folder / "a/b");
  EXPECT_EQ(groups[0], inode(folder / "a/b"));
  EXPECT_EQ(groups[1], inode(folder / "a"));
  EXPECT_EQ(groups[2], inode(folder));
  EXPECT_EQ(group_at(folder / "a", true), inode(folder / "a"));
  EXPECT_EQ(group_at(folder / "a", false), 0U) << "no control group";
  EXPECT_EQ(group_at(folder / "c", true), 0U);
  EXPECT_EQ(group_at("a", true), 0U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace drover::sim
