#include "container/mount_table.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

constexpr const char* kTable =
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "22 21 0:20 / /proc rw,nosuid - proc proc rw\n"
    "30 21 8:1 /var/lib/drover /mnt/alias rw - ext4 /dev/sda1 rw\n"
    "31 21 8:1 /var/lib/drover/tasks/t1 /mnt/many/deep rw - ext4 /dev/sda1 rw\n"
    "32 21 8:1 / /mnt/everything rw - ext4 /dev/sda1 rw\n"
    "33 21 8:2 / /srv rw - ext4 /dev/sda2 rw\n"
    "34 21 8:1 /home/ada /mnt/ada\\040s\\040home rw - ext4 /dev/sda1 rw\n"
    "no mount at all\n";
constexpr const char* kState = "/var/lib/drover";

bool shows_state(const std::string& path) {
  return shows(parse_mount_table(kTable), path, kState);
}

TEST(MountTable, TheSamePathShowsIt) {
  EXPECT_TRUE(shows_state("/var/lib/drover"));
  EXPECT_TRUE(shows_state("/var/lib/drover/tasks/t1/sandbox"));
  EXPECT_TRUE(shows_state("/var/lib"));
  EXPECT_TRUE(shows_state("/"));
}

TEST(MountTable, SoDoesASecondPlaceOfItOrOfAFolderAroundOrInIt) {
  EXPECT_TRUE(shows_state("/mnt/alias"));
  EXPECT_TRUE(shows_state("/mnt/alias/tasks/t1"));
  EXPECT_TRUE(shows_state("/mnt/many/deep"));
  EXPECT_TRUE(shows_state("/mnt/everything"));
  EXPECT_TRUE(shows_state("/mnt/everything/var"));
}

TEST(MountTable, AndAFolderBelowWhichThereIsOne) {
  EXPECT_TRUE(shows_state("/mnt/many"));
  EXPECT_TRUE(shows_state("/mnt"));
}

TEST(MountTable, OthersDoNot) {
  for (const char* path : {"/home/ada", "/srv", "/srv/var/lib/drover", "/mnt/ada s home",
                           "/var/lib/drover-other", "/mnt/everything/home", "/proc"})
    EXPECT_FALSE(shows_state(path)) << path;
}

TEST(MountTable, AStateOnAFileSystemOfItsOwnIsNotInThatAroundIt) {
  const auto mounts = parse_mount_table(
      "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "22 21 8:3 / /var/lib/drover rw - ext4 /dev/sda3 rw\n"
      "23 21 8:1 / /mnt/everything rw - ext4 /dev/sda1 rw\n"
      "24 21 8:3 /tasks /mnt/tasks rw - ext4 /dev/sda3 rw\n");
  EXPECT_FALSE(shows(mounts, "/mnt/everything", kState));
  EXPECT_TRUE(shows(mounts, "/mnt/tasks", kState));
}

TEST(MountTable, TheLastMountOfAPlaceCounts) {
  const auto mounts = parse_mount_table(
      "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "22 21 8:1 /var/lib/drover /mnt rw - ext4 /dev/sda1 rw\n"
      "23 22 0:40 / /mnt rw - tmpfs tmpfs rw\n");
  EXPECT_FALSE(shows(mounts, "/mnt/a", kState));
}

}  // namespace
}  // namespace drover::container
