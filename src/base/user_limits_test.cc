#include "base/user_limits.h"

#include <gtest/gtest.h>

#include <set>

namespace drover {
namespace {

TEST(UserLimits, EachHasANameOfItsOwnAndIsMoreThanNothing) {
  std::set<std::string_view> names;
  for (const auto& limit : user_limits()) {
    EXPECT_TRUE(names.insert(limit.name).second) << limit.name;
    EXPECT_FALSE(limit.help.empty());
    const bool is_part_of_the_disk =
        limit.value == &UserLimits::sandbox_bytes;  // which only the daemon knows
    EXPECT_EQ(UserLimits{}.*limit.value == 0, is_part_of_the_disk) << limit.name;
    EXPECT_NE(allow_more(limit.value).find(std::string(limit.name) + "=N"), std::string::npos);
  }
  EXPECT_EQ(names.size() * sizeof(std::uint64_t), sizeof(UserLimits)) << "one is missing from the table";
}

TEST(UserLimits, AreSetByName) {
  UserLimits limits;
  ASSERT_TRUE(set_limit(limits, "waiting-tasks=7"));
  ASSERT_TRUE(set_limit(limits, "stored-size=1GiB"));
  EXPECT_EQ(limits.waiting_tasks, 7U);
  EXPECT_EQ(limits.stored_bytes, 1ULL << 30);
  EXPECT_EQ(show(user_limits()[0], limits), "7");
}

TEST(UserLimits, RefuseWhatIsNone) {
  UserLimits limits;
  const auto unknown = set_limit(limits, "tasks=7");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "There is no limit 'tasks'");
  EXPECT_NE(unknown.error().hint.find("waiting-tasks"), std::string::npos);
  for (const auto* wrong :
       {"waiting-tasks", "waiting-tasks=", "waiting-tasks=-1", "waiting-tasks=1.5", "waiting-tasks=0",
        "waiting-tasks=1k", "stored-size=big", "pulls=99999999999999999999"})
    EXPECT_FALSE(set_limit(limits, wrong)) << wrong;
  EXPECT_EQ(limits.waiting_tasks, UserLimits{}.waiting_tasks);
}

}  // namespace
}  // namespace drover
