#include "base/users.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/name_service.h"

namespace drover {
namespace {

/// What ask_name_service() makes of a database that answers with `error`.
Result<bool> answer(int error) {
  return ask_name_service<passwd>([=](passwd*, char*, std::size_t, passwd**) { return error; },
                                  [](const passwd&) { FAIL() << "nobody was found"; });
}

TEST(Users, AUidThatNobodyKnowsIsStillAUser) {
  const auto user = user_of(3'999'999'999, 4711).value();
  EXPECT_EQ(user, (User{3'999'999'999, 4711, {}, "3999999999", "/"}));
  EXPECT_EQ(find_user("3999999999").value().uid, 3'999'999'999);
}

TEST(Users, RootIsFoundByNameAndByUid) {
  EXPECT_EQ(find_user("root").value(), user_of(0, 0).value());
  EXPECT_EQ(find_user("no-such-user-here").error().kind, ErrorKind::kNotFound);
}

TEST(Users, ADatabaseWithoutAnEntryIsNoError) {
  for (const int error : {0, ENOENT, ESRCH}) EXPECT_FALSE(answer(error).value()) << error;
}

TEST(Users, ADatabaseThatFailsIsAnErrorAndNobody) {
  for (const int error : {EIO, EMFILE, ENFILE, ENOMEM, ETIMEDOUT, EAGAIN, ECONNREFUSED, EPERM, EINVAL}) {
    const auto found = answer(error);
    ASSERT_FALSE(found) << std::strerror(error);
    EXPECT_EQ(found.error().kind, ErrorKind::kUnavailable);
  }
}

TEST(Users, AnEntryThatNeedsALargeBufferGetsOne) {
  constexpr std::size_t kNeeded = 1 << 20;
  std::string home;
  const auto found = ask_name_service<passwd>(
      [&](passwd* entry, char* buffer, std::size_t size, passwd** result) {
        if (size < kNeeded) return ERANGE;
        std::memset(buffer, 'x', kNeeded - 1);
        buffer[kNeeded - 1] = '\0';
        entry->pw_dir = buffer;
        *result = entry;
        return 0;
      },
      [&](const passwd& entry) { home = entry.pw_dir; });
  EXPECT_TRUE(found.value());
  EXPECT_EQ(home.size(), kNeeded - 1);
  EXPECT_FALSE(answer(ERANGE)) << "a database that never has enough";
}

}  // namespace
}  // namespace drover
