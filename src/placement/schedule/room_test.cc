#include "placement/schedule/room.h"

#include <gtest/gtest.h>

#include "placement/gang.h"
#include "placement/testing/workplace.h"

namespace drover::placement::schedule {
namespace {

using namespace placement::testing;

Request with_cpus(int gpu_count, std::int64_t milli_cpus) {
  auto request = gpus(gpu_count);
  request.milli_cpus = milli_cpus;
  return request;
}

bool fits(Cluster& cluster, const Request& request) {
  return try_place(cluster, {{request}}).has_value();
}

std::vector<Decision> placed(Cluster& cluster, const Job& job) {
  return try_place(cluster, job.gang).value();
}

TEST(Room, KeepsWhatAReservationNeedsAndIsFreeNow) {
  Workplace work(1, 4);  // 64 CPUs
  work.run(job("runs", with_cpus(2, 10'000)));
  const auto& runs = work.running.at("runs");
  {
    Room room(work.cluster, {});
    const auto waits = job("waits", with_cpus(4, 30'000));
    Cluster without = work.cluster;
    give_back(without, runs.job);
    room.reserve(waits, placed(without, waits), {&runs});
    EXPECT_TRUE(fits(room.brief(), with_cpus(2, 54'000)));
    EXPECT_FALSE(fits(room.lasting(), gpus(1)));
    // 64 − 30 are left when it runs, which is less than the 54 that are free now.
    EXPECT_TRUE(fits(room.lasting(), cpu_only(34'000)));
    EXPECT_FALSE(fits(room.lasting(), cpu_only(34'001)));
  }
  EXPECT_TRUE(fits(work.cluster, with_cpus(2, 54'000)));
}

TEST(Room, WhatIsOnlyFreeLaterIsNotGivenNow) {
  Workplace work(1, 4);
  work.run(job("runs", with_cpus(2, 60'000)));
  const auto& runs = work.running.at("runs");
  Room room(work.cluster, {});
  const auto waits = job("waits", with_cpus(4, 10'000));
  Cluster without = work.cluster;
  give_back(without, runs.job);
  room.reserve(waits, placed(without, waits), {&runs});
  EXPECT_TRUE(fits(room.lasting(), cpu_only(4'000)));
  EXPECT_FALSE(fits(room.lasting(), cpu_only(4'001)));
}

TEST(Room, HoldsForVictimsRoomForTheirSuccessorOnly) {
  Workplace work(1, 4);
  work.run(job("victim", gpus(3)));
  const auto& victim = work.running.at("victim");
  Room room(work.cluster, {});
  auto& soon = room.soon();
  const auto next = job("next", gpus(2));
  give_back(soon, victim.job);
  const auto decisions = placed(soon, next);
  take(soon, victim.job, victim.decisions);
  room.hold(next, decisions, {&victim});
  EXPECT_TRUE(room.changes_soon());
  EXPECT_TRUE(fits(room.soon(), gpus(2)));  // what the victim leaves beside it, and what is free
  EXPECT_FALSE(fits(room.soon(), gpus(3)));
}

TEST(Room, WhoEndsInTimeMayStandInTheWay) {
  Workplace work(1, 4);
  work.run(job("runs", gpus(2)));
  const auto& runs = work.running.at("runs");
  Room room(work.cluster, {});
  const auto waits = job("waits", gpus(4));
  Cluster without = work.cluster;
  give_back(without, runs.job);
  room.reserve(waits, placed(without, waits), {&runs});
  const auto brief = job("brief", gpus(2));
  ASSERT_TRUE(room.start(brief, placed(room.brief(), brief), Span::kBrief));
  EXPECT_FALSE(fits(room.brief(), gpus(1)));
  EXPECT_FALSE(fits(room.lasting(), gpus(1)));
}

TEST(Room, TwoCannotStartAtOnePlace) {
  Workplace work(1, 1);
  Room room(work.cluster, {});
  const auto first = job("first", gpus(1));
  const auto second = gang("second", 2, gpus(1));
  const auto where = placed(room.brief(), first);
  ASSERT_TRUE(room.start(first, where, Span::kLasting));
  EXPECT_FALSE(room.start(second, {where[0], where[0]}, Span::kLasting));
}

}  // namespace
}  // namespace drover::placement::schedule
