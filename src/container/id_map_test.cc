#include "container/id_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace drover::container {
namespace {

TEST(IdMap, SaysWhoIsWhoOnTheMachine) {
  const IdMap map{300'000};
  EXPECT_EQ(map.on_machine(0), 300'000U);
  EXPECT_EQ(map.on_machine(65'535), 365'535U);
  EXPECT_EQ(IdMap{}.on_machine(7), 7U) << "without a map everybody is who he is";
}

TEST(IdMap, HoldsAUserWithAllHisGroups) {
  const IdMap map{300'000};
  EXPECT_TRUE(map.holds(User{0, 0, {27, 65'535}, "root", "/"}));
  EXPECT_FALSE(map.holds(User{65'536, 0, {}, "far", "/"}));
  EXPECT_FALSE(map.holds(User{0, 0, {27, 100'000}, "root", "/"}));
}

TEST(UserNamespace, IsAnotherThanOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to map users";
  const auto made = UserNamespace::make({300'000});
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_NE(std::filesystem::read_symlink(descriptor_path(made->fd())),
            std::filesystem::read_symlink("/proc/self/ns/user"));
  EXPECT_FALSE(UserNamespace::make({4'294'950'000})) << "there are not so many users";
}

}  // namespace
}  // namespace drover::container
