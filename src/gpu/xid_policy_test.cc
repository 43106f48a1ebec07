#include "gpu/xid_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/files.h"

namespace drover::gpu {
namespace {

using testing::HasSubstr;

XidPolicy policy_of(std::string_view disable, std::string_view enable = "") {
  return XidPolicy::parse(disable, enable).value();
}

TEST(XidPolicyTest, TheTableIsInOrderAndInWords) {
  std::uint64_t last = 0;
  for (const auto& fact : xid_table()) {
    EXPECT_GT(fact.first, last);
    EXPECT_GE(fact.last, fact.first);
    EXPECT_FALSE(fact.text.empty()) << fact.first;
    EXPECT_NE(to_string(fact.subject), "unknown") << fact.first;
    last = fact.last;
  }
}

/// "8, 39–41, 88, 89"
std::string xids_with(XidVerdict verdict) {
  std::string list;
  for (std::uint64_t first = 1, last = 0; first < 1000; first = last + 1) {
    const auto is_one = [&](std::uint64_t xid) {
      return xid_fact(xid).subject != XidSubject::kUnknown && xid_fact(xid).verdict == verdict;
    };
    last = first;
    if (!is_one(first)) continue;
    while (is_one(last + 1)) ++last;
    list += list.empty() ? "" : ", ";
    list += last == first       ? fmt::format("{}", first)
            : last == first + 1 ? fmt::format("{}, {}", first, last)
                                : fmt::format("{}–{}", first, last);
  }
  return list;
}

TEST(XidPolicyTest, TheTableIsWhatTheDocumentationHas) {
  const auto page = read_file(DROVER_SOURCE_DIR "/docs/health.md").value();
  EXPECT_THAT(page, HasSubstr("| told only | " + xids_with(XidVerdict::kIgnore) + " |"));
  EXPECT_THAT(page,
              HasSubstr("| taken out, comes back when it is quiet | " + xids_with(XidVerdict::kRest) + " |"));
  EXPECT_THAT(page, HasSubstr("| taken out, needs a reset | " + xids_with(XidVerdict::kReset) +
                              ", and all others |"));
}

TEST(XidPolicyTest, WhatNvidiasPluginIgnoresIsIgnored) {
  for (const auto xid : {13, 31, 43, 45, 68, 109})
    EXPECT_EQ(XidPolicy().verdict(xid), XidVerdict::kIgnore) << xid;
}

TEST(XidPolicyTest, TheCardsOwnFaultsTakeItOut) {
  for (const auto xid : {48, 64, 74, 79, 95, 119, 140})
    EXPECT_EQ(XidPolicy().verdict(xid), XidVerdict::kReset) << xid;
  EXPECT_EQ(XidPolicy().verdict(94), XidVerdict::kRest);
  EXPECT_EQ(xid_fact(79).text, "it has fallen off the bus");
  EXPECT_EQ(to_string(xid_fact(74).subject), "NVLink");
}

TEST(XidPolicyTest, WhatIsNotKnownIsTakenForTheWorst) {
  for (const auto xid : {0ULL, 90ULL, 9999ULL, ~0ULL}) {
    EXPECT_EQ(XidPolicy().verdict(xid), XidVerdict::kReset) << xid;
    EXPECT_EQ(xid_fact(xid).subject, XidSubject::kUnknown) << xid;
  }
}

TEST(XidPolicyTest, AListOfNumbersIsIgnoredBesidesTheTable) {
  const auto policy = policy_of(" 48, 79,,");
  EXPECT_EQ(policy.verdict(48), XidVerdict::kIgnore);
  EXPECT_EQ(policy.verdict(79), XidVerdict::kIgnore);
  EXPECT_EQ(policy.verdict(13), XidVerdict::kIgnore);
  EXPECT_EQ(policy.verdict(95), XidVerdict::kReset);
  EXPECT_FALSE(policy.only_xids());
}

TEST(XidPolicyTest, WhatIsEnabledWins) {
  EXPECT_EQ(policy_of("all", "48").verdict(48), XidVerdict::kReset);
  EXPECT_EQ(policy_of("all", "48").verdict(79), XidVerdict::kIgnore);
  EXPECT_EQ(policy_of("48", "48").verdict(48), XidVerdict::kReset);
  EXPECT_EQ(policy_of("", "13").verdict(13), XidVerdict::kRest);
  EXPECT_EQ(policy_of("48", "all").verdict(48), XidVerdict::kReset);
  EXPECT_EQ(policy_of("", "xids").verdict(31), XidVerdict::kRest);
}

TEST(XidPolicyTest, AllIsMoreThanEveryXid) {
  EXPECT_TRUE(policy_of("ALL").only_xids());
  EXPECT_FALSE(policy_of("xids").only_xids());
  EXPECT_EQ(policy_of("1,Xids").verdict(9999), XidVerdict::kIgnore);
}

TEST(XidPolicyTest, AnythingElseIsRefused) {
  for (const auto* text : {"none", "48;79", "0", "-1", "4 8x", "0x30", "99999999999999999999"}) {
    const auto policy = XidPolicy::parse(text, "");
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().kind, ErrorKind::kInvalid);
    EXPECT_THAT(policy.error().message, HasSubstr("is no XID"));
  }
  EXPECT_THAT(XidPolicy::parse("", "13,nope").error().message,
              HasSubstr("'nope' in the health checks to enable"));
}

}  // namespace
}  // namespace drover::gpu
