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
  supply.machines["S"] = {std::move(whole), std::move(free)};
  return supply;
}

/// The offer that is made of one machine; "" when none is.
std::string made_of(OfferBook& book, const Supply& supply, TimePoint now = kNow) {
  const auto made = book.allocate(supply, now).made;
  EXPECT_LE(made.size(), 1U);
  return made.empty() ? "" : made.front();
}

TakenOffers taken(ResourceAmounts amounts, std::string role = "*", std::string agent = "S") {
  return {std::move(amounts), std::move(role), std::move(agent), ""};
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
  EXPECT_THAT(changes.made, ElementsAre("M-O0"));
  EXPECT_EQ(book.offers().at("M-O0").framework, "a");
  EXPECT_EQ(book.offers().at("M-O0").amounts, amounts(3, 4000));
  EXPECT_EQ(made_of(book, machine(amounts(3, 4000))), "") << "nothing is left";

  auto given = book.take("a", {"M-O0"});
  EXPECT_EQ(given.mistake, "");
  EXPECT_EQ(given.amounts, amounts(3, 4000));
  EXPECT_EQ(given.agent, "S");
  book.refuse("a", given, 5, kNow);
  EXPECT_EQ(made_of(book, machine(amounts(3, 4000))), "M-O1");
  EXPECT_EQ(book.offers().at("M-O1").framework, "b");
}

TEST(OfferBook, WhoHasLeastIsFirst) {
  OfferBook book("M");
  book.join("a", bidder());
  book.join("b", bidder());
  auto supply = machine(amounts(3, 4000));
  supply.used["a"] = amounts(1, 100);
  const auto made = made_of(book, supply);
  EXPECT_EQ(book.offers().at(made).framework, "b");
}

TEST(OfferBook, RefusalsHoldForTheirTimeAndForNoMore) {
  OfferBook book("M");
  book.join("a", bidder());
  book.refuse("a", taken(amounts(2, 4000)), 5, kNow);
  EXPECT_EQ(made_of(book, machine(amounts(2, 4000)), kNow + seconds(4)), "");
  EXPECT_EQ(made_of(book, machine(amounts(1, 1000)), kNow + seconds(4)), "") << "less than was refused";
  EXPECT_NE(made_of(book, machine(amounts(3, 4000)), kNow + seconds(4)), "") << "more than was refused";
  book.join("a", bidder());
  book.refuse("a", taken(amounts(2, 4000)), -1, kNow);
  EXPECT_EQ(made_of(book, machine(amounts(2, 4000)), kNow + seconds(4)), "") << "5 s is the default";
  EXPECT_NE(made_of(book, machine(amounts(2, 4000)), kNow + seconds(5)), "");
  book.join("a", bidder());
  book.refuse("a", taken(amounts(2, 4000)), 0, kNow);
  EXPECT_NE(made_of(book, machine(amounts(2, 4000))), "");
}

TEST(OfferBook, AShortRefusalDoesNotEndALongOne) {
  OfferBook book("M");
  book.join("a", bidder());
  book.refuse("a", taken(amounts(1, 1000)), 3600, kNow);
  book.refuse("a", taken(amounts(4, 8000)), 5, kNow);
  EXPECT_EQ(made_of(book, machine(amounts(1, 1000)), kNow + seconds(60)), "");
  EXPECT_NE(made_of(book, machine(amounts(4, 8000)), kNow + seconds(60)), "");
}

TEST(OfferBook, RolesAreSuppressedAndRevivedOneByOne) {
  OfferBook book("M");
  auto two = bidder();
  two.roles = {"x", "y"};
  book.join("a", two);
  const auto role_of_next = [&] {
    const auto made = made_of(book, machine(amounts(1, 1000)));
    if (made.empty()) return std::string();
    return book.take("a", {made}).role;
  };
  EXPECT_EQ(role_of_next(), "x");
  book.suppress("a", {"x", "unknown"});
  EXPECT_EQ(role_of_next(), "y");
  book.refuse("a", taken(amounts(1, 1000), "y"), 60, kNow);
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
  EXPECT_EQ(made_of(book, supply), "") << "also when all its GPUs are taken";
  supply.hides_gpu_machines = false;
  EXPECT_NE(made_of(book, supply), "");
  book.join("b", bidder(false));
  EXPECT_NE(made_of(book, machine(amounts(0, 8000), amounts(0, 8000))), "");
}

TEST(OfferBook, WhatIsTakenAwayIsRescinded) {
  OfferBook book("M");
  book.join("a", bidder());
  book.allocate(machine(amounts(2, 4000)), kNow);
  auto changes = book.allocate(machine(amounts(1, 4000)), kNow);
  EXPECT_THAT(changes.rescinded, ElementsAre(Pair("a", "M-O0")));
  EXPECT_THAT(changes.made, ElementsAre("M-O1")) << "what is left is offered anew";
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
  const auto made = made_of(book, supply, kNow + seconds(60));
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
  EXPECT_EQ(made_of(book, machine(amounts(2, 4000))), "");
}

TEST(OfferBook, EachMachineIsOfferedByItself) {
  OfferBook book("M");
  book.join("a", bidder());
  book.join("b", bidder());
  auto supply = machine(amounts(2, 4000));
  supply.machines["T"] = {amounts(4, 8000), amounts(4, 8000)};
  EXPECT_THAT(book.allocate(supply, kNow).made, ElementsAre("M-O0", "M-O1"));
  EXPECT_EQ(book.offers().at("M-O0").framework, "a");
  EXPECT_EQ(book.offers().at("M-O1").framework, "b") << "who has least by then";
  EXPECT_EQ(book.offers().at("M-O1").agent, "T");
  supply.machines.erase("S");
  EXPECT_THAT(book.allocate(supply, kNow).rescinded, ElementsAre(Pair("a", "M-O0"))) << "it is gone";
}

TEST(OfferBook, RefusalsAreOfOneMachine) {
  OfferBook book("M");
  book.join("a", bidder());
  auto supply = machine(amounts(2, 4000));
  supply.machines["T"] = supply.machines["S"];
  book.refuse("a", taken(amounts(4, 8000)), 60, kNow);
  EXPECT_EQ(book.offers().at(made_of(book, supply)).agent, "T");
}

TEST(OfferBook, OffersOfTwoMachinesAreNotTakenTogether) {
  OfferBook book("M");
  book.join("a", bidder());
  auto supply = machine(amounts(2, 4000));
  supply.machines["T"] = supply.machines["S"];
  book.allocate(supply, kNow);
  EXPECT_EQ(book.take("a", {"M-O0", "M-O1"}).mistake,
            "Aggregated offers must belong to one single agent. Offer M-O1 uses agent T and agent S");
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
    // The last of each framework and agent.
    std::map<std::pair<std::string, std::string>, std::pair<ResourceAmounts, TimePoint>> refused;
    const auto forget = [&](const std::string& framework) {
      std::erase_if(refused, [&](const auto& entry) { return entry.first.first == framework; });
    };
    std::set<std::string> suppressed;
    const auto steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      now += seconds(*rc::gen::inRange(0, 20));
      const auto name = *rc::gen::elementOf(names);
      const auto free = amounts(*rc::gen::inRange(0, 5), *rc::gen::inRange(0, 8) * 1000);
      switch (*rc::gen::inRange(0, 7)) {
        case 0:
          book.join(name, bidder());
          forget(name);
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
          forget(name);
          suppressed.erase(name);
          break;
        case 4: {
          if (book.offers().empty()) break;
          const auto [id, offer] = *book.offers().begin();
          const auto given = book.take(offer.framework, {id});
          RC_ASSERT(given.mistake.empty());
          RC_ASSERT(given.amounts == offer.amounts);
          RC_ASSERT(!book.take(offer.framework, {id}).mistake.empty());
          book.refuse(offer.framework, given, 30, now);
          refused[{offer.framework, offer.agent}] = {given.amounts, now + seconds(30)};
          break;
        }
        default: {
          auto supply = machine(free);
          supply.machines["T"] = {amounts(4, 8000), amounts(*rc::gen::inRange(0, 5), 1000)};
          const auto changes = book.allocate(supply, now);
          std::map<std::string, ResourceAmounts> sums;
          for (const auto& [id, offer] : book.offers()) sums[offer.agent] += offer.amounts;
          for (const auto& [agent, sum] : sums) RC_ASSERT(supply.machines.at(agent).free.covers(sum));
          for (const auto& made : changes.made) {
            RC_ASSERT(ever.insert(made).second);
            const auto& offer = book.offers().at(made);
            RC_ASSERT(!suppressed.contains(offer.framework));
            if (const auto found = refused.find({offer.framework, offer.agent}); found != refused.end())
              RC_ASSERT(found->second.second <= now || !found->second.first.covers(offer.amounts));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace drover::control
