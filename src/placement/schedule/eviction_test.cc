#include "placement/schedule/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "placement/schedule/room.h"
#include "placement/schedule/subsets.h"
#include "placement/testing/workplace.h"

namespace drover::placement::schedule {
namespace {

using namespace placement::testing;

const auto kAlways = [](const Subset&) { return true; };

TEST(Subsets, ComeInColexicographicOrder) {
  std::vector<Subset> all;
  for (Colex subsets(5, 3); subsets; ++subsets) all.push_back(*subsets);
  EXPECT_EQ(all.size(), 10U);
  EXPECT_EQ(all.front(), (Subset{0, 1, 2}));
  EXPECT_EQ(all[1], (Subset{0, 1, 3}));
  EXPECT_EQ(all.back(), (Subset{2, 3, 4}));
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_TRUE(comes_before(all[i - 1], all[i]));
  EXPECT_FALSE(Colex(2, 3));
}

/// lo … hi − 1, also while RapidCheck still tries small cases.
int draw(int lo, int hi) {
  return *rc::gen::resize(100, rc::gen::inRange(lo, hi));
}

/// The best set by trying all, smallest first.
std::optional<Subset> brute_force(Cluster& world, const Gang& gang,
                                  const std::vector<const RunningJob*>& candidates) {
  for (std::size_t count = 1; count <= candidates.size(); ++count)
    for (Colex subsets(candidates.size(), count); subsets; ++subsets) {
      Cluster without = world;
      for (const auto i : *subsets) give_back(without, candidates[i]->job);
      if (try_place(without, gang)) return *subsets;
    }
  return std::nullopt;
}

/// Fills a small cluster with random work and returns it as candidates.
struct Filled {
  Workplace work;
  std::vector<const RunningJob*> candidates;

  Filled(int nodes, int gpus_each, int jobs) : work(nodes, gpus_each) {
    for (int i = 0; i < jobs; ++i) {
      auto request = draw(0, 4) == 0 ? cpu_only(draw(1, 40) * 1000) : gpus(draw(1, gpus_each + 1));
      if (request.gpu_count() == 1 && draw(0, 2) == 0) request.share.milli = 500;
      const auto members = draw(0, 4) == 0 ? 2 : 1;
      work.submit(gang("r" + std::to_string(10 + i), members, request));
    }
    work.step();
    for (const auto& [id, running] : work.running) candidates.push_back(&running);
  }
};

Gang any_gang(int gpus_each, int most_members) {
  auto request = gpus(draw(1, gpus_each + 1));
  request.milli_cpus = draw(0, 50) * 1000;
  if (request.gpu_count() == 1 && draw(0, 2) == 0) request.share.milli = 500;
  Gang gang;
  gang.members.assign(static_cast<std::size_t>(draw(1, most_members + 1)), request);
  return gang;
}

void check_fewest(Filled& filled, const Gang& gang) {
  auto& cluster = filled.work.cluster;
  if (try_place(cluster, gang)) return;
  const auto found = fewest_evictions(cluster, {gang, filled.candidates, kAlways, kAlways});
  const auto expected = brute_force(cluster, gang, filled.candidates);
  RC_ASSERT(found.has_value() == expected.has_value());
  if (found) RC_ASSERT(found->gone == *expected);
  RC_ASSERT(!try_place(cluster, gang));  // all is as before
}

RC_GTEST_PROP(EvictionProperty, ASingleJobEndsTheFewestThatWill, ()) {
  Filled filled(draw(1, 4), 4, draw(4, 12));
  check_fewest(filled, any_gang(4, 1));
}

RC_GTEST_PROP(EvictionProperty, ASmallGangEndsTheFewestThatWill, ()) {
  Filled filled(3, 2, draw(4, 10));
  check_fewest(filled, any_gang(2, 3));
}

TEST(Eviction, OfALargeGangNobodyCanBeSpared) {
  Workplace work(8, 4);
  for (int i = 0; i < 32; ++i) work.run(job("r" + std::to_string(10 + i), gpus(1)));
  std::vector<const RunningJob*> candidates;
  for (const auto& [id, running] : work.running) candidates.push_back(&running);
  const auto wanted = gang("g", 3, gpus(3)).gang;
  const auto found = fewest_evictions(work.cluster, {wanted, candidates, kAlways, kAlways});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gone.size(), 9U);
  Cluster without = work.cluster;
  for (const auto i : found->gone) give_back(without, candidates[i]->job);
  for (std::size_t rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(without.allocate("g" + std::to_string(rank), wanted.members[rank], found->decisions[rank]));
}

TEST(Eviction, RespectsWhoMayGoTogetherAndWhatIsEnough) {
  Workplace work(1, 4);
  for (int i = 0; i < 4; ++i) work.run(job("r" + std::to_string(i), gpus(1)));
  std::vector<const RunningJob*> candidates;
  for (const auto& [id, running] : work.running) candidates.push_back(&running);
  const auto wanted = job("w", gpus(2)).gang;
  const auto not_first = [](const Subset& subset) { return subset.empty() || subset.front() != 0; };
  EXPECT_EQ(fewest_evictions(work.cluster, {wanted, candidates, not_first, kAlways})->gone, (Subset{1, 2}));
  const auto three = [](const Subset& subset) { return subset.size() >= 3; };
  EXPECT_EQ(fewest_evictions(work.cluster, {wanted, candidates, kAlways, three})->gone, (Subset{0, 1, 2}));
  const auto one = [](const Subset& subset) { return subset.size() <= 1; };
  EXPECT_FALSE(fewest_evictions(work.cluster, {wanted, candidates, one, kAlways}));
}

}  // namespace
}  // namespace drover::placement::schedule
