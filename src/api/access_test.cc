#include "api/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace drover::api {
namespace {

const std::vector<Credential> kCredentials = {{"root", "0123456789abcdef"}, {"alice", "fedcba9876543210"}};

TEST(ParseCredentials, ReadsLinesAndSkipsComments) {
  const auto read = parse_credentials("# who\n\nroot:0123456789abcdef\nalice:fedcba9876543210");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, kCredentials);
}

TEST(ParseCredentials, ASecretMayHoldColons) {
  EXPECT_EQ(parse_credentials("bob:aa:bb:cc:dd:ee:ff:00").value().front().secret, "aa:bb:cc:dd:ee:ff:00");
}

TEST(ParseCredentials, OneNameIsNoUsers) {
  const auto read = parse_credentials("@metrics:0123456789abcdef").value();
  EXPECT_EQ(authenticate(read, "Bearer 0123456789abcdef"), kMetricsReader);
}

TEST(ParseCredentials, NamesTheLineThatIsWrong) {
  for (const auto* text :
       {"root:0123456789abcdef\nalice", "root:0123456789abcdef\n:0123456789abcdef",
        "root:0123456789abcdef\nalice:short", "root:0123456789abcdef\n@admin:0123456789abcdef",
        "root:0123456789abcdef\nalice:0123456789 abcdef"}) {
    const auto read = parse_credentials(text);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, ::testing::StartsWith("line 2 "));
  }
}

TEST(Authenticate, TakesBearerAndBasic) {
  EXPECT_EQ(authenticate(kCredentials, "Bearer fedcba9876543210"), "alice");
  EXPECT_EQ(authenticate(kCredentials, "bearer 0123456789abcdef"), "root");
  EXPECT_EQ(authenticate(kCredentials, "token=fedcba9876543210"), "alice");
  EXPECT_EQ(authenticate(kCredentials, "Basic " + encode_base64("alice:fedcba9876543210")), "alice");
}

TEST(Authenticate, RefusesEverythingElse) {
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), std::string("token="),
        std::string("token=fedcba987654321"), std::string("token fedcba9876543210"),
        std::string("Bearer fedcba987654321"), std::string("Bearer fedcba98765432100"),
        std::string("fedcba9876543210"), std::string("Basic !!!!"),
        "Basic " + encode_base64("root:fedcba9876543210"), "Basic " + encode_base64(":fedcba9876543210"),
        "Basic " + encode_base64("alice"), std::string("Digest fedcba9876543210")})
    EXPECT_EQ(authenticate(kCredentials, header), std::nullopt) << header;
}

TEST(Authenticate, NobodyComesInWithoutCredentials) {
  EXPECT_EQ(authenticate({}, "Bearer "), std::nullopt);
  EXPECT_EQ(authenticate({}, "Bearer x"), std::nullopt);
}

TEST(HostAllowed, OnlyOwnNamesWithTheRightPort) {
  const ListenAddress address{"10.0.0.7", 8080};
  for (const auto* host : {"10.0.0.7:8080", "localhost:8080", "LOCALHOST:8080", "127.0.0.1:8080",
                           "[::1]:8080", "gpu1:8080", "localhost", "gpu1", "[::1]"})
    EXPECT_TRUE(host_allowed(host, address, {"gpu1"})) << host;
  for (const auto* host : {"", "evil.example", "localhost:80", "localhost:", "evil.example:8080",
                           "10.0.0.8:8080", "localhost.evil:8080", "localhost:8080x", "localhost:8080,evil"})
    EXPECT_FALSE(host_allowed(host, address, {"gpu1"})) << host;
}

TEST(HostAllowed, FurtherNamesAreAsTheMachines) {
  const std::vector<std::string> names = {"gpu1", "marathon.mesos"};
  EXPECT_TRUE(host_allowed("marathon.mesos:8080", {"127.0.0.1", 8080}, names));
  EXPECT_TRUE(host_allowed("Marathon.mesos", {"127.0.0.1", 8080}, names));
  EXPECT_FALSE(host_allowed("marathon.mesos:80", {"127.0.0.1", 8080}, names));
  EXPECT_FALSE(host_allowed("x.marathon.mesos:8080", {"127.0.0.1", 8080}, names));
}

TEST(CheckHostName, ANameAndNoMore) {
  for (const auto* name : {"marathon.mesos", "gpu-1", "a_b", "10.0.0.7"})
    EXPECT_TRUE(check_host_name(name)) << name;
  for (const auto* name : {"", "a:80", "http://a", "*", "a b", "[::1]"})
    EXPECT_FALSE(check_host_name(name)) << name;
}

TEST(HostAllowed, OnAllAddressesAnyLiteralButNoForeignName) {
  const ListenAddress everywhere{"0.0.0.0", 8080};
  EXPECT_TRUE(host_allowed("192.168.1.9:8080", everywhere, {"gpu1"}));
  EXPECT_TRUE(host_allowed("[fe80::1]:8080", everywhere, {"gpu1"}));
  EXPECT_FALSE(host_allowed("evil.example:8080", everywhere, {"gpu1"}));
}

TEST(OriginAllowed, OnlyThisServersOwnPages) {
  EXPECT_TRUE(origin_allowed("http://localhost:8080", "localhost:8080"));
  EXPECT_TRUE(origin_allowed("https://GPU1:8080", "gpu1:8080"));
  for (const auto* origin : {"null", "http://evil.example", "http://localhost:8081", "localhost:8080",
                             "http://localhost:8080/", "file://localhost:8080"})
    EXPECT_FALSE(origin_allowed(origin, "localhost:8080")) << origin;
}

TEST(Base64, ThereAndBack) {
  for (const std::string& text : {std::string(), std::string("a"), std::string("ab"), std::string("abc"),
                                  std::string("\0\xff\x80 x", 5)})
    EXPECT_EQ(decode_base64(encode_base64(text)), text);
  EXPECT_EQ(encode_base64("user:secret"), "dXNlcjpzZWNyZXQ=");
  EXPECT_EQ(decode_base64("abc"), std::nullopt);
  EXPECT_EQ(decode_base64("a*=="), std::nullopt);
}

}  // namespace
}  // namespace drover::api
