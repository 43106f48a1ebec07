#include "api/executor_tokens.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "api/testing/fake_daemon.h"

namespace drover::api {
namespace {

TEST(ExecutorTokens, OneIsOfItsTaskAlone) {
  const ExecutorTokens tokens(std::string(64, 'a'));
  const auto token = tokens.of("0123456789ab");
  EXPECT_TRUE(token.starts_with("executor.0123456789ab."));
  EXPECT_EQ(token.size(), std::string("executor.0123456789ab.").size() + 64);
  EXPECT_EQ(tokens.task_of(token), "0123456789ab");
  auto other = token;
  other.replace(9, 12, "0123456789ac");
  for (const auto& wrong : {other, token + "0", token.substr(0, token.size() - 1), std::string("executor."),
                            std::string("executor.."), std::string(), "x" + token,
                            std::string("executor.0123456789ab.") + std::string(64, '0')})
    EXPECT_FALSE(tokens.task_of(wrong)) << wrong;
  EXPECT_FALSE(ExecutorTokens(std::string(64, 'b')).task_of(token)) << "another daemon's";
}

TEST(ExecutorTokens, TheKeyIsMadeOnceAndIsTheDaemonsAlone) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() + "/key";
  const auto made = ExecutorTokens::open(path);
  ASSERT_TRUE(made) << to_string(made.error());
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(ExecutorTokens::open(path)->of("t"), made->of("t"));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_FALSE(ExecutorTokens::open(path));
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(write_file(path, "short", 0600));
  EXPECT_FALSE(ExecutorTokens::open(path));
}

}  // namespace
}  // namespace drover::api
