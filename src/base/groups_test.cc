#include "base/groups.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace drover {
namespace {

TEST(Groups, AreFoundByNameAndByGid) {
  EXPECT_EQ(find_group("root").value(), 0U);
  EXPECT_EQ(find_group("3999999999").value(), 3'999'999'999U);
  EXPECT_EQ(find_group("no-such-group-here").error().kind, ErrorKind::kNotFound);
}

TEST(Groups, ADatabaseThatFailsIsAnErrorAndNoGroupThatThereIsNot) {
  for (const int error : {EIO, ETIMEDOUT, EMFILE, ENOMEM, ERANGE})
    for (const auto* name : {"staff", "1000"}) {
      const auto found = find_group(name, [=](auto&&...) { return error; });
      ASSERT_FALSE(found) << error;
      EXPECT_EQ(found.error().kind, ErrorKind::kUnavailable) << to_string(found.error());
    }
}

TEST(Groups, OneWithManyMembersIsFound) {
  const auto found =
      find_group("everybody", [](const char*, group* entry, char*, std::size_t size, group** answer) {
        if (size < 4 << 20) return ERANGE;
        entry->gr_gid = 100;
        *answer = entry;
        return 0;
      });
  EXPECT_EQ(found.value(), 100U);
}

}  // namespace
}  // namespace drover
