#include "engine/share_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using control::TaskState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LocalEngineTest;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kGiB = 1ULL << 30;

class ShareWatchTest : public LocalEngineTest {
 protected:
  void begin_watched() {
    engine_.reset();
    work_.clear();
    auto with_watch = ports();
    with_watch.watch_shares = [this](SharedGpus shared) {
      shared_ = std::move(shared);
      ++told_;
    };
    ASSERT_TRUE(open(node(2), std::move(with_watch), std::make_unique<testing::FakeContainerizer>(world_)));
    run();
  }
  std::string running(std::uint64_t memory, const std::function<void(workload::Task&)>& more = {},
                      const std::string& tier = "") {
    const auto id = submit_with([&](workload::Task& task) {
                      task.resources.gpus = {{1, {}}};
                      task.resources.share.memory_bytes = memory;
                      if (more) more(task);
                    })->task.id;
    run();
    engine_->watcher().started(id,
                               {.pid = static_cast<pid_t>(100 + told_), .started_at = now_, .tier = tier});
    run();
    return id;
  }
  void judge(share::Verdict::Kind kind, const std::string& task, std::uint64_t held) {
    for (const auto& allowance : shared_.allowances)
      if (allowance.tasks.contains(task)) engine_->judged({{kind, task, allowance, held}});
    run();
  }
  std::vector<std::string> overruns(const Caller& caller = {}) {
    EventQuery query;
    query.kinds = {"share_overrun"};
    std::vector<std::string> messages;
    for (const auto& event : told(caller, query)) messages.push_back(event.message);
    return messages;
  }

  SharedGpus shared_;
  int told_ = 0;
};

TEST_F(ShareWatchTest, WhoHasSharesIsWatchedAsLongAsHeHasThem) {
  begin_watched();
  const auto whole = submit(1)->task.id;
  run();
  EXPECT_EQ(told_, 0) << "whole GPUs are nobody else's";
  const auto one = running(8 * kGiB), other = running(4 * kGiB);
  ASSERT_THAT(shared_.gpus, SizeIs(1));
  EXPECT_THAT(shared_.allowances,
              ElementsAre(share::Allowance{"GPU-1", one, {one}, 8 * kGiB, "counted"},
                          share::Allowance{"GPU-1", other, {other}, 4 * kGiB, "counted"}));
  ASSERT_THAT(shared_.tasks, SizeIs(2));
  EXPECT_GT(shared_.tasks[0].first, 0) << "it is told where the container's processes are";
  const auto before = told_;
  end(whole, 0);
  EXPECT_EQ(told_, before);
  end(one, 0);
  EXPECT_THAT(shared_.allowances, SizeIs(1));
  end(other, 0);
  EXPECT_THAT(shared_.gpus, IsEmpty());
  EXPECT_THAT(shared_.allowances, IsEmpty());
}

TEST_F(ShareWatchTest, AShareInThousandthsIsThatPartOfTheMemory) {
  begin_watched();
  const auto id = running(0, [](auto& task) { task.resources.share.milli = 250; });
  EXPECT_THAT(shared_.allowances, ElementsAre(share::Allowance{"GPU-0", id, {id}, 4 * kGiB, "counted"}));
  EXPECT_EQ(world_.asked.back().gpu_shares.at(0).memory_bytes, 4 * kGiB) << "as its program is told";
}

TEST_F(ShareWatchTest, AGroupHasItsShareTogether) {
  begin_watched();
  const auto in_group = [](auto& task) { task.resources.group = "team"; };
  const auto one = running(2 * kGiB, in_group), other = running(2 * kGiB, in_group);
  ASSERT_THAT(shared_.allowances, SizeIs(1));
  EXPECT_THAT(shared_.allowances[0].tasks, ElementsAre(one, other));
  EXPECT_EQ(shared_.allowances[0].bytes, 2 * kGiB);
  judge(share::Verdict::Kind::kOffence, other, 3 * kGiB);
  EXPECT_THAT(overruns(),
              ElementsAre("job: it held most of what its group 'team' held: together they held 3 GiB "
                          "of GPU 0 and may hold 2 GiB"));
}

TEST_F(ShareWatchTest, NeighboursOnTheGpuAreToldAndNobodyElse) {
  begin_watched();
  const auto one = running(2 * kGiB), other = running(2 * kGiB);
  EventQuery query;
  query.kinds = {"neighbour_overrun"};
  judge(share::Verdict::Kind::kOffence, one, 3 * kGiB);
  ASSERT_THAT(told({}, query), SizeIs(1));
  EXPECT_EQ(told({}, query).back().task_id, other);
  EXPECT_THAT(told({}, query).back().message, HasSubstr("somebody else held 3 GiB of GPU "));
  const auto allowance = *std::ranges::find(shared_.allowances, one, &share::Allowance::name);
  engine_->judged({{share::Verdict::Kind::kOffence, one, allowance, 3 * kGiB},
                   {share::Verdict::Kind::kEnd, one, allowance, 3 * kGiB}});
  run();
  ASSERT_THAT(told({}, query), SizeIs(2)) << "once, with what follows";
  EXPECT_THAT(told({}, query).back().message, HasSubstr("may hold 2 GiB: that task is ended"));
}

TEST_F(ShareWatchTest, AGroupIsGuardedWhenAllOfItAreAndHasOneAccount) {
  begin_watched();
  const auto in_group = [](auto& task) { task.resources.group = "team"; };
  const auto one = running(2 * kGiB, in_group, "guarded"), other = running(2 * kGiB, in_group, "guarded");
  EXPECT_THAT(world_.asked.back().together(), UnorderedElementsAre(one, other));
  ASSERT_THAT(shared_.guarded, SizeIs(1));
  EXPECT_EQ(shared_.guarded.begin()->first, shared_.allowances.at(0).name);
  EXPECT_EQ(shared_.allowances.at(0).tier, "guarded");
  running(2 * kGiB, in_group);
  EXPECT_EQ(shared_.allowances.at(0).tier, "counted");
  running(2 * kGiB);
  EXPECT_FALSE(world_.asked.back().together) << "it has its share alone";
}

TEST_F(ShareWatchTest, AnOffenceIsToldToItsOwnerAndChangesNothing) {
  begin_watched();
  const auto id = running(8 * kGiB);
  judge(share::Verdict::Kind::kOffence, id, 9 * kGiB + (300ULL << 20));
  EXPECT_THAT(overruns(), ElementsAre("job: it held 9.3 GiB of GPU 0 and may hold 8 GiB"));
  Caller stranger;
  stranger.user.uid = 4711;
  EXPECT_THAT(overruns(stranger), IsEmpty());
  EXPECT_EQ(state_of(id), TaskState::kRunning);
  EXPECT_THAT(world_.stopped, IsEmpty());
}

TEST_F(ShareWatchTest, WhoIsEndedReadsWhy) {
  begin_watched();
  const auto id = running(8 * kGiB), other = running(8 * kGiB);
  judge(share::Verdict::Kind::kEnd, id, 10 * kGiB);
  EXPECT_THAT(world_.stopped, ElementsAre(id));
  judge(share::Verdict::Kind::kEnd, id, 11 * kGiB);
  begin_watched();  // killed meanwhile
  end(id, 137);
  const auto record = engine_->task({}, id);
  EXPECT_EQ(record->state, TaskState::kFailed);
  EXPECT_EQ(record->cause, control::Cause::kShare);
  EXPECT_EQ(record->reason, "killed because it held 10 GiB of GPU 0 and may hold 8 GiB");
  EXPECT_EQ(state_of(other), TaskState::kRunning);
  judge(share::Verdict::Kind::kEnd, other, 10 * kGiB);
  EXPECT_THAT(shared_.allowances, SizeIs(1)) << "after the restart the others are watched again";
}

TEST_F(ShareWatchTest, ItIsAFailureLikeOthers) {
  begin_watched();
  const auto id = running(8 * kGiB, [](auto& task) { task.batch.retries = 1; });
  judge(share::Verdict::Kind::kEnd, id, 10 * kGiB);
  end(id, 137);
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  EXPECT_EQ(engine_->task({}, id)->failures, 1);
  EXPECT_THAT(shared_.allowances, IsEmpty());
  now_ += std::chrono::hours(1);
  engine_->tick();
  run();
  end(id, 0);
  EXPECT_EQ(state_of(id), TaskState::kFinished) << "what it did the first time is over";
}

TEST_F(ShareWatchTest, WhatIsJudgedOfATaskThatHasEndedIsNothing) {
  begin_watched();
  const auto id = running(8 * kGiB);
  const auto allowance = shared_.allowances.front();
  end(id, 0);
  engine_->judged({{share::Verdict::Kind::kOffence, id, allowance, 9 * kGiB},
                   {share::Verdict::Kind::kEnd, id, allowance, 9 * kGiB},
                   {share::Verdict::Kind::kEnd, "t99", allowance, 9 * kGiB}});
  run();
  EXPECT_EQ(state_of(id), TaskState::kFinished);
  EXPECT_THAT(overruns(), IsEmpty());
}

}  // namespace
}  // namespace drover::engine
