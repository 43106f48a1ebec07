#include "api/logins.h"

#include <gtest/gtest.h>

namespace drover::api {
namespace {

using namespace std::chrono_literals;

const Logins::Time kNoon{std::chrono::seconds(1'795'953'600)};

Logins some_logins(char key = 'a') {
  return Logins(std::string(64, key));
}

TEST(Logins, ASessionIsItsUsersUntilItIsOver) {
  const auto logins = some_logins();
  const auto session = logins.begin("ann.b", kNoon);
  EXPECT_EQ(session.until, kNoon + Logins::kSession);
  EXPECT_EQ(logins.user_of(session.token, kNoon), "ann.b");
  EXPECT_EQ(logins.user_of(session.token, session.until - 1s), "ann.b");
  EXPECT_FALSE(logins.user_of(session.token, session.until));
  EXPECT_EQ(some_logins().user_of(session.token, kNoon), "ann.b") << "a daemon that started again";
  EXPECT_FALSE(some_logins('b').user_of(session.token, kNoon)) << "another daemon";
}

TEST(Logins, WhatWasChangedIsNobodys) {
  const auto logins = some_logins();
  const auto token = logins.begin("ann", kNoon).token;
  auto other = token, later = token;
  other.replace(other.find("ann"), 3, "bob");
  later[later.find(".1795") + 1] = '9';
  for (const auto& wrong : {other, later, token + "0", token.substr(0, token.size() - 1), "x" + token,
                            std::string("session."), std::string("session.."), std::string("session.ann."),
                            "session.ann." + std::string(64, '0'), std::string()})
    EXPECT_FALSE(logins.user_of(wrong, kNoon)) << wrong;
}

TEST(Logins, ASessionIsOverWhenItsUsersSecretsAreOthers) {
  auto logins = some_logins();
  logins.set_credentials({{"ann", "0123456789abcdef"}, {"bob", "fedcba9876543210"}});
  const auto ann = logins.begin("ann", kNoon).token, bob = logins.begin("bob", kNoon).token;
  logins.set_credentials({{"bob", "fedcba9876543210"}, {"eve", "0123456789abcdef"}});
  EXPECT_FALSE(logins.user_of(ann, kNoon));
  EXPECT_EQ(logins.user_of(bob, kNoon), "bob");
  logins.set_credentials({{"bob", "0000000000000000"}});
  EXPECT_FALSE(logins.user_of(bob, kNoon));
}

TEST(Logins, OneThatWasEndedIsOver) {
  auto logins = some_logins();
  const auto token = logins.begin("ann", kNoon).token, other = logins.begin("ann", kNoon + 1s).token;
  logins.end("session.nonsense", kNoon);
  logins.end(token, kNoon);
  EXPECT_FALSE(logins.user_of(token, kNoon + 1s));
  EXPECT_EQ(logins.user_of(other, kNoon + 1s), "ann");
}

TEST(Logins, ATicketIsGoodOnceAndForAMinute) {
  auto logins = some_logins();
  const auto ticket = logins.ticket("ann", kNoon).value(), late = logins.ticket("ann", kNoon).value();
  EXPECT_FALSE(logins.user_of(ticket, kNoon));
  EXPECT_EQ(logins.redeem(ticket, kNoon + 59s), "ann");
  EXPECT_FALSE(logins.redeem(ticket, kNoon + 59s));
  EXPECT_FALSE(logins.redeem(late, kNoon + Logins::kTicket));
  EXPECT_FALSE(logins.redeem("ticket.", kNoon));
}

TEST(Logins, WhoMakesManyTicketsLosesHisOwnOldest) {
  auto logins = some_logins();
  const auto other = logins.ticket("bob", kNoon).value(), first = logins.ticket("ann", kNoon).value();
  std::string last;
  for (std::size_t i = 1; i <= Logins::kTicketsOfOne; ++i)
    last = logins.ticket("ann", kNoon + std::chrono::seconds(i)).value();
  EXPECT_FALSE(logins.redeem(first, kNoon + 30s));
  EXPECT_EQ(logins.redeem(last, kNoon + 30s), "ann");
  EXPECT_EQ(logins.redeem(other, kNoon + 30s), "bob");
}

}  // namespace
}  // namespace drover::api
