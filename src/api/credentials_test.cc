#include "api/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/testing/fake_daemon.h"

namespace drover::api {
namespace {

class CredentialsTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/credentials";
};

TEST_F(CredentialsTest, MakesOneRandomSecretForRootAndKeepsIt) {
  const auto made = open_credentials(path_);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->size(), 1u);
  EXPECT_EQ(made->front().user, "root");
  EXPECT_EQ(made->front().secret.size(), 64u);
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0600u);
  EXPECT_EQ(open_credentials(path_).value(), *made);
  ::unlink(path_.c_str());
  EXPECT_NE(open_credentials(path_).value(), *made);
}

TEST_F(CredentialsTest, RefusesAFileThatOthersMayRead) {
  ASSERT_TRUE(write_file(path_, "root:0123456789abcdef\n", 0640));
  const auto read = open_credentials(path_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kPermissionDenied);
}

TEST_F(CredentialsTest, RefusesAFileOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_TRUE(write_file(path_, "root:0123456789abcdef\n", 0600));
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(open_credentials(path_));
}

TEST_F(CredentialsTest, RefusesALinkAndAFileThatNamesNobody) {
  ASSERT_TRUE(write_file(path_, "# nobody\n", 0600));
  EXPECT_FALSE(open_credentials(path_));
  const auto link = folder_.path() + "/link";
  ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(open_credentials(link));
}

}  // namespace
}  // namespace drover::api
