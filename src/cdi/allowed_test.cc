#include "cdi/allowed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::cdi {
namespace {

using ::testing::HasSubstr;

User somebody(uid_t uid, gid_t gid, std::vector<gid_t> groups = {}) {
  return {uid, gid, std::move(groups), "u" + std::to_string(uid), "/"};
}

bool may(const std::vector<std::string>& rules, const std::string& device, const User& user) {
  const auto allowed = Allowed::parse(rules);
  EXPECT_TRUE(allowed) << to_string(allowed.error());
  return allowed && allowed->check(*parse_device_name(device), user).has_value();
}

TEST(Allowed, NobodyHasWhatNoRuleNames) {
  EXPECT_FALSE(may({}, "vendor.com/net=eth1", somebody(1001, 1001)));
  EXPECT_FALSE(may({"vendor.com/net", "vendor.com/disk=a"}, "vendor.com/disk=b", somebody(1001, 1001)));
  EXPECT_FALSE(may({"vendor.com/net"}, "vendor.com/netx=eth1", somebody(1001, 1001)));
}

TEST(Allowed, ARuleIsForEverybodyOrForThoseItNames) {
  EXPECT_TRUE(may({"vendor.com/net"}, "vendor.com/net=eth1", somebody(1001, 1001)));
  EXPECT_TRUE(may({"1001:vendor.com/net"}, "vendor.com/net=eth1", somebody(1001, 7)));
  EXPECT_FALSE(may({"1001:vendor.com/net"}, "vendor.com/net=eth1", somebody(1002, 1001)));
  EXPECT_TRUE(may({"1001,@55:vendor.com/net"}, "vendor.com/net=eth1", somebody(1002, 55)));
  EXPECT_TRUE(may({"1001,@55:vendor.com/net"}, "vendor.com/net=eth1", somebody(1002, 7, {4, 55})));
  EXPECT_FALSE(may({"@55:vendor.com/net"}, "vendor.com/net=eth1", somebody(55, 7))) << "a group is no user";
  EXPECT_TRUE(may({"1:vendor.com/net", "2:vendor.com/net"}, "vendor.com/net=eth1", somebody(2, 2)));
  EXPECT_TRUE(may({"root,@root:vendor.com/net"}, "vendor.com/net=eth1", somebody(5, 0)));
}

TEST(Allowed, AColonInANameIsNoneOfIt) {
  EXPECT_TRUE(may({"vendor.com/net=a:1"}, "vendor.com/net=a:1", somebody(1001, 1001)));
  EXPECT_TRUE(may({"1001:vendor.com/net=a:1"}, "vendor.com/net=a:1", somebody(1001, 1001)));
  EXPECT_FALSE(may({"1001:vendor.com/net=a:1"}, "vendor.com/net=a:1", somebody(1002, 1002)));
}

TEST(Allowed, ARefusalSaysWhatAnAdministratorDoes) {
  const auto refused = Allowed().check({"vendor.com/net", "eth1"}, somebody(1001, 1001));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(refused.error().message, "The device 'vendor.com/net=eth1' is not for the user 'u1001'");
  EXPECT_THAT(refused.error().hint, HasSubstr("drover serve --allow-device u1001:vendor.com/net=eth1"));
}

TEST(Allowed, AMistakeIsNotARule) {
  for (const char* rule : {"", "net", "vendor.com/", "vendor.com/net=", ":vendor.com/net",
                           "1001,:vendor.com/net", "@:vendor.com/net", "nobody-has-this-name:vendor.com/net",
                           "@nobody-has-this-name:vendor.com/net", "*:vendor.com/net", "vendor.com/*",
                           "vendor.com/net=*", "1001: vendor.com/net", "1001:vendor.com/net\n", "1001:"}) {
    const auto parsed = Allowed::parse({"vendor.com/net", rule});
    ASSERT_FALSE(parsed) << rule;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid);
    EXPECT_THAT(parsed.error().hint, HasSubstr("[USER,@GROUP,...:]KIND[=NAME]"));
  }
}

}  // namespace
}  // namespace drover::cdi
