#include "placement/schedule/limits.h"

#include <gtest/gtest.h>

#include "placement/testing/workplace.h"

namespace drover::placement::schedule {
namespace {

using namespace placement::testing;

Demand gpus_of(std::int64_t count) {
  return {{count * 1000, 0, 0}, {}};
}

struct Four {
  Rules rules;
  LimitLedger ledger;
  Accounts accounts;

  Four()
      : rules{{{"q", limited("q", 4)}}, {}},
        ledger(rules),
        accounts(ledger.accounts_of(in("q", job("", gpus(1))))) {}

  bool fits(std::int64_t count, Span span) const { return !ledger.excess(accounts, gpus_of(count), span); }
};

TEST(LimitLedger, KnowsOnlyAccountsThatHaveLimits) {
  Rules rules;
  rules.queues["a"] = limited("a", 4);
  rules.queues["a/b"] = queue("a/b");
  rules.quotas[{SubjectKind::kUser, "ann"}] = {{SubjectKind::kUser, "ann"}, {}, 3};
  rules.quotas[{SubjectKind::kNamespace, "lab"}] = {{SubjectKind::kNamespace, "lab"}, {.milli_cpus = 1}, {}};
  LimitLedger ledger(rules);
  EXPECT_EQ(ledger.accounts_of(in("a/b/c", job("", gpus(1)))).size(), 2U);
  EXPECT_EQ(ledger.accounts_of(in("x", job("", gpus(1)))).size(), 1U);
}

TEST(LimitLedger, CountsWhatRuns) {
  Four four;
  four.ledger.start(four.accounts, gpus_of(3), Span::kLasting);
  EXPECT_TRUE(four.fits(1, Span::kLasting));
  EXPECT_FALSE(four.fits(2, Span::kLasting));
  EXPECT_TRUE(four.ledger.excess_now(four.accounts, gpus_of(2)));
}

TEST(LimitLedger, WhatEndsCountsUntilItHasEnded) {
  Four four;
  four.ledger.start(four.accounts, gpus_of(3), Span::kLasting);
  four.ledger.end(four.accounts, gpus_of(3));
  EXPECT_FALSE(four.fits(2, Span::kLasting));
  EXPECT_TRUE(four.ledger.fits_soon(four.accounts, gpus_of(4), {}));
}

TEST(LimitLedger, WhatIsHeldForOneIsNotThereForOthers) {
  Four four;
  four.ledger.start(four.accounts, gpus_of(3), Span::kLasting);
  four.ledger.end(four.accounts, gpus_of(3));
  four.ledger.hold(four.accounts, gpus_of(4));
  EXPECT_FALSE(four.fits(1, Span::kBrief));
  EXPECT_FALSE(four.ledger.excess_now(four.accounts, gpus_of(1)));
  EXPECT_FALSE(four.ledger.fits_soon(four.accounts, gpus_of(1), {}));
}

TEST(LimitLedger, WhoEndsBeforeAReservationMayUseItsPart) {
  Four four;
  four.ledger.start(four.accounts, gpus_of(1), Span::kLasting);
  four.ledger.reserve(four.accounts, gpus_of(4));
  four.ledger.end_later(four.accounts, gpus_of(1));
  EXPECT_FALSE(four.fits(1, Span::kLasting));
  EXPECT_TRUE(four.fits(3, Span::kBrief));
  EXPECT_FALSE(four.fits(4, Span::kBrief));
  four.ledger.start(four.accounts, gpus_of(3), Span::kBrief);
  EXPECT_FALSE(four.fits(1, Span::kBrief));
}

TEST(LimitLedger, VictimsMakeRoom) {
  Four four;
  four.ledger.start(four.accounts, gpus_of(4), Span::kLasting);
  EXPECT_FALSE(four.ledger.fits_soon(four.accounts, gpus_of(2), {{four.accounts[0], {1000, 0, 0}}}));
  EXPECT_TRUE(four.ledger.fits_soon(four.accounts, gpus_of(2), {{four.accounts[0], {2000, 0, 0}}}));
}

TEST(LimitLedger, AGroupsGpusCountOnceUntilTheLastHasEnded) {
  Four four;
  const Demand pod{{0, 500, 0}, {{"pod", 3000}}};
  four.ledger.start(four.accounts, pod, Span::kLasting);
  EXPECT_FALSE(four.ledger.excess(four.accounts, pod, Span::kLasting));
  four.ledger.start(four.accounts, pod, Span::kLasting);
  EXPECT_EQ(four.ledger.account(0).now[0], 3000);
  four.ledger.end(four.accounts, pod);
  EXPECT_EQ(four.ledger.account(0).soon[0], 3000);
  four.ledger.end(four.accounts, pod);
  EXPECT_EQ(four.ledger.account(0).soon[0], 0);
}

TEST(LimitLedger, SaysWhoHoldsHowMuch) {
  Four four;
  four.ledger.start(four.accounts, gpus_of(3), Span::kLasting);
  const auto text = [&](std::int64_t count) {
    return excess_text(four.ledger.account(0),
                       *four.ledger.excess(four.accounts, gpus_of(count), Span::kLasting), gpus_of(count));
  };
  EXPECT_EQ(text(2), "the queue 'q' holds 3 of its 4 GPUs, and 2 more are wanted");
  four.ledger.start(four.accounts, gpus_of(1), Span::kLasting);
  EXPECT_EQ(text(1), "the queue 'q' holds 4 of its 4 GPUs");
}

}  // namespace
}  // namespace drover::placement::schedule
