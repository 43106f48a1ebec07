#include "control/offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kNow;
using ::testing::Pair;

constexpr std::uint64_t kMiB = 1ULL << 20;

ResourceAmounts amounts(int gpus, std::int64_t milli_cpus) {
  return {gpus, milli_cpus, 1024 * kMiB, 0, {}};
}

Supply machine(ResourceAmounts free, ResourceAmounts whole = amounts(4, 8000)) {
  Supply supply;
  supply.free = std::move(free);
  supply.whole = std::move(whole);
  return supply;
}

Bidder bidder(bool knows_gpus = true) {
  Bidder bidder;
  bidder.knows_gpus = knows_gpus;
  return bidder;
}

TEST(OfferBook, AllThatIsFreeGoesToOneFramework) {
  OfferBook book("M");
  book.join("a", bidder());
  book.join("b", bidder());
  auto changes = book.allocate(machine(amounts(3, 4000)), kNow);
  EXPECT_EQ(changes.made, "M-O0");
  EXPECT_EQ(book.offers().at("M-O0").framework, "a");
  EXPECT_EQ(book.offers().at("M-O0").amounts, amounts(3, 4000));
  EXPECT_EQ(book.allocate(machine(amounts(3, 4000)), kNow).made, "") << "nothing is left";

  auto taken = book.take("a", {"M-O0"});
  EXPECT_EQ(taken.mistake, "");
  EXPECT_EQ(taken.amounts, amounts(3, 4000));
  book.refuse("a", taken.role, taken.amounts, 5, kNow);
  EXPECT_EQ(book.allocate(machine(amounts(3, 4000)), kNow).made, "M-O1");
  EXPECT_EQ(book.offers().at("M-O1").framework, "b");
}

TEST(OfferBook, WhoHasLeastIsFirst) {
  OfferBook book("M");
  book.join("a", bidder());
  book.join("b", bidder());
  auto supply = machine(amounts(3, 4000));
  supply.used["a"] = amounts(1, 100);
  const auto made = book.allocate(supply, kNow).made;
  EXPECT_EQ(book.offers().at(made).framework, "b");
}

TEST(OfferBook, RefusalsHoldForTheirTimeAndForNoMore) {
  OfferBook book("M");
  book.join("a", bidder());
  book.refuse("a", "*", amounts(2, 4000), 5, kNow);
  EXPECT_EQ(book.allocate(machine(amounts(2, 4000)), kNow + seconds(4)).made, "");
  EXPECT_EQ(book.allocate(machine(amounts(1, 1000)), kNow + seconds(4)).made, "") << "less than was refused";
  EXPECT_NE(book.allocate(machine(amounts(3, 4000)), kNow + seconds(4)).made, "") << "more than was refused";
  book.join("a", bidder());
  book.refuse("a", "*", amounts(2, 4000), -1, kNow);
  EXPECT_EQ(book.allocate(machine(amounts(2, 4000)), kNow + seconds(4)).made, "") << "5 s is the default";
  EXPECT_NE(book.allocate(machine(amounts(2, 4000)), kNow + seconds(5)).made, "");
  book.join("a", bidder());
  book.refuse("a", "*", amounts(2, 4000), 0, kNow);
  EXPECT_NE(book.allocate(machine(amounts(2, 4000)), kNow).made, "");
}

TEST(OfferBook, AShortRefusalDoesNotEndALongOne) {
  OfferBook book("M");
  book.join("a", bidder());
  book.refuse("a", "*", amounts(1, 1000), 3600, kNow);
  book.refuse("a", "*", amounts(4, 8000), 5, kNow);
  EXPECT_EQ(book.allocate(machine(amounts(1, 1000)), kNow + seconds(60)).made, "");
  EXPECT_NE(book.allocate(machine(amounts(4, 8000)), kNow + seconds(60)).made, "");
}

TEST(OfferBook, RolesAreSuppressedAndRevivedOneByOne) {
  OfferBook book("M");
  auto two = bidder();
  two.roles = {"x", "y"};
  book.join("a", two);
  const auto role_of_next = [&] {
    const auto made = book.allocate(machine(amounts(1, 1000)), kNow).made;
    if (made.empty()) return std::string();
    return book.take("a", {made}).role;
  };
  EXPECT_EQ(role_of_next(), "x");
  book.suppress("a", {"x", "unknown"});
  EXPECT_EQ(role_of_next(), "y");
  book.refuse("a", "y", amounts(1, 1000), 60, kNow);
  EXPECT_EQ(role_of_next(), "") << "what is refused for a role";
  book.revive("a", {"x"});
  EXPECT_EQ(role_of_next(), "x");
  book.suppress("a", {});
  EXPECT_EQ(role_of_next(), "");
  book.revive("a", {});
  EXPECT_EQ(role_of_next(), "x");
  book.suppress("a", {"x"});
  EXPECT_EQ(role_of_next(), "y") << "it was forgotten what was refused";
}

TEST(OfferBook, MachinesWithGpusAreForThoseThatKnowThem) {
  OfferBook book("M");
  book.join("a", bidder(false));
  auto supply = machine(amounts(0, 4000));
  EXPECT_EQ(book.allocate(supply, kNow).made, "") << "also when all its GPUs are taken";
  supply.hides_gpu_machines = false;
  EXPECT_NE(book.allocate(supply, kNow).made, "");
  book.join("b", bidder(false));
  EXPECT_NE(book.allocate(machine(amounts(0, 8000), amounts(0, 8000)), kNow).made, "");
}

TEST(OfferBook, WhatIsTakenAwayIsRescinded) {
  OfferBook book("M");
  book.join("a", bidder());
  book.allocate(machine(amounts(2, 4000)), kNow);
  auto changes = book.allocate(machine(amounts(1, 4000)), kNow);
  EXPECT_THAT(changes.rescinded, ElementsAre(Pair("a", "M-O0")));
  EXPECT_EQ(changes.made, "M-O1") << "what is left is offered anew";
  EXPECT_EQ(book.take("a", {"M-O0"}).mistake, "Offer M-O0 is no longer valid");
}

TEST(OfferBook, WhoSitsOnOffersLosesThemWhenAnotherWaits) {
  OfferBook book("M");
  book.join("a", bidder());
  const auto supply = machine(amounts(2, 4000));
  book.allocate(supply, kNow);
  EXPECT_THAT(book.allocate(supply, kNow + seconds(60)).rescinded, IsEmpty()) << "nobody waits";
  book.join("b", bidder());
  EXPECT_THAT(book.allocate(supply, kNow + seconds(29)).rescinded, IsEmpty());
  const auto changes = book.allocate(supply, kNow + seconds(60));
  EXPECT_THAT(changes.rescinded, ElementsAre(Pair("a", "M-O0")));
  EXPECT_TRUE(changes.more_to_offer);
  const auto made = book.allocate(supply, kNow + seconds(60)).made;
  EXPECT_EQ(book.offers().at(made).framework, "b");
}

TEST(OfferBook, MistakesOfThoseWhoTakeAreTold) {
  OfferBook book("M");
  book.join("a", bidder());
  book.join("b", bidder());
  book.allocate(machine(amounts(2, 4000)), kNow);
  EXPECT_EQ(book.take("a", {}).mistake, "No offers specified");
  EXPECT_EQ(book.take("b", {"M-O0"}).mistake, "Offer M-O0 is no longer valid") << "it is another's";
  EXPECT_EQ(book.take("a", {"M-O0", "M-O0"}).mistake, "Duplicate offer M-O0 in offer list");
  EXPECT_THAT(book.offers(), IsEmpty());
  EXPECT_EQ(book.take("a", {"M-O0"}).mistake, "Offer M-O0 is no longer valid");
}

TEST(OfferBook, LeavingEndsOffersAndChangingKeepsThem) {
  OfferBook book("M");
  book.join("a", bidder());
  book.allocate(machine(amounts(2, 4000)), kNow);
  EXPECT_THAT(book.change("a", bidder()), IsEmpty());
  EXPECT_EQ(book.offered().at("a"), amounts(2, 4000));
  EXPECT_THAT(book.change("nobody", bidder()), IsEmpty());
  EXPECT_THAT(book.change("a", {.roles = {"x"}, .knows_gpus = true}), ElementsAre("M-O0"))
      << "it was made for another role";
  EXPECT_EQ(book.offered().count("a"), 0u);
  book.leave("a");
  EXPECT_THAT(book.offers(), IsEmpty());
  EXPECT_EQ(book.allocate(machine(amounts(2, 4000)), kNow).made, "");
}

TEST(OfferBook, WhatIsHeldIsCountedByFramework) {
  testing::Machine machine(2);
  FrameworkRecord record;
  record.failover_timeout = seconds(60);
  ASSERT_TRUE(machine.on(event::FrameworkSubscribed{"F", record}));
  auto task = testing::task("", 1);
  task.resources.milli_cpus = 500;
  task.origin = {workload::OriginKind::kFramework, "F", "t", ""};
  ASSERT_TRUE(machine.on(event::FrameworkLaunched{{{"t", task}}}));
  ASSERT_TRUE(machine.on(event::Submitted{{testing::task("own", 1)}}));
  const auto held = held_by_frameworks(machine.state);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held.at("F").gpus, 1);
  EXPECT_EQ(held.at("F").milli_cpus, 500);
  EXPECT_EQ(held_by_all(machine.state).gpus, 2);
}

TEST(OfferBookProperty, NothingIsOfferedTwiceOrAgainstAWish) {
  rc::check([] {
    OfferBook book("M");
    const std::vector<std::string> names{"a", "b", "c"};
    auto now = kNow;
    std::set<std::string> ever;
    std::map<std::string, std::pair<ResourceAmounts, TimePoint>> refused;  // the last of each
    std::set<std::string> suppressed;
    const auto steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      now += seconds(*rc::gen::inRange(0, 20));
      const auto name = *rc::gen::elementOf(names);
      const auto free = amounts(*rc::gen::inRange(0, 5), *rc::gen::inRange(0, 8) * 1000);
      switch (*rc::gen::inRange(0, 7)) {
        case 0:
          book.join(name, bidder());
          refused.erase(name);
          suppressed.erase(name);
          break;
        case 1:
          book.leave(name);
          break;
        case 2:
          book.suppress(name, {});
          suppressed.insert(name);
          break;
        case 3:
          book.revive(name, {});
          refused.erase(name);
          suppressed.erase(name);
          break;
        case 4: {
          if (book.offers().empty()) break;
          const auto [id, offer] = *book.offers().begin();
          const auto taken = book.take(offer.framework, {id});
          RC_ASSERT(taken.mistake.empty());
          RC_ASSERT(taken.amounts == offer.amounts);
          RC_ASSERT(!book.take(offer.framework, {id}).mistake.empty());
          book.refuse(offer.framework, taken.role, taken.amounts, 30, now);
          refused[offer.framework] = {taken.amounts, now + seconds(30)};
          break;
        }
        default: {
          const auto supply = machine(free);
          const auto changes = book.allocate(supply, now);
          ResourceAmounts sum;
          for (const auto& [id, offer] : book.offers()) sum += offer.amounts;
          RC_ASSERT(free.covers(sum));
          if (changes.made.empty()) break;
          RC_ASSERT(ever.insert(changes.made).second);
          const auto& offer = book.offers().at(changes.made);
          RC_ASSERT(!suppressed.contains(offer.framework));
          if (const auto found = refused.find(offer.framework); found != refused.end())
            RC_ASSERT(found->second.second <= now || !found->second.first.covers(offer.amounts));
        }
      }
    }
  });
}

}  // namespace
}  // namespace drover::control
