#include "engine/local.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "control/instances.h"
#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using testing::LocalEngineTest;

TEST_F(LocalEngineTest, AnswersOnlyWhatTheJournalHas) {
  begin();
  const auto accepted = submit(2);
  ASSERT_TRUE(accepted) << to_string(accepted.error());
  // Killed before anything was launched.
  begin();
  EXPECT_EQ(world_.launches[accepted->task.id], 1);
  EXPECT_EQ(world_.asked[0].gpu_devices.size(), 2u);
  EXPECT_EQ(state_of(accepted->task.id), TaskState::kStarting);
}

TEST_F(LocalEngineTest, ARestartFindsRunningTasksAndDoublesNone) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  engine_->watcher().started(id, {42, now_});
  run();
  begin();
  EXPECT_EQ(world_.launches[id], 1);
  EXPECT_EQ(state_of(id), TaskState::kRunning);
  EXPECT_EQ(engine_->node().gpus_free, 1);
  end(id, 0);
  EXPECT_EQ(state_of(id), TaskState::kFinished);
  EXPECT_EQ(engine_->node().gpus_free, 2);
  EXPECT_EQ(world_.cleaned, std::vector<std::string>{id});
}

TEST_F(LocalEngineTest, AFailedLaunchTellsWhyAndGivesTheGpusBack) {
  begin();
  world_.launch_error = Error{ErrorKind::kInvalid, "The image '/x' is not an image", "look", ""};
  const auto id = submit(2)->task.id;
  run();
  EXPECT_EQ(state_of(id), TaskState::kFailed);
  EXPECT_EQ(engine_->task({}, id)->reason, "The image '/x' is not an image (look)");
  EXPECT_EQ(engine_->node().gpus_free, 2);
}

TEST_F(LocalEngineTest, OnlyRootActsForOthers) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const Caller bob{{1001, 1001, {}, "bob", "/"}};
  const auto own = submit(1, alice);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->task.user.uid, 1000u);
  EXPECT_EQ(own->task.owner, 1000u);
  EXPECT_EQ(submit(0, alice, "root").error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(submit(0, {}, "65534")->task.user.uid, 65534u);
  EXPECT_EQ(engine_->task(bob, own->task.id).error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(engine_->tasks(bob).records().empty());
  EXPECT_FALSE(engine_->sandbox(bob, own->task.id));
  Result<control::TaskRecord> stopped = fail(ErrorKind::kInternal, "no answer came");
  engine_->stop(bob, own->task.id, true, [&](auto result) { stopped = std::move(result); });
  EXPECT_EQ(stopped.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(engine_->holders(bob)().at(0).task_id, "");
  EXPECT_TRUE(told(bob).empty());
  EXPECT_FALSE(told(alice).empty());
}

TEST_F(LocalEngineTest, ExplainsWhyATaskWaitsAndHowItEnded) {
  begin();
  const auto holder = submit(2)->task.id;
  const auto waiting = submit(1)->task.id;
  const auto waits = engine_->explain({}, waiting)();
  EXPECT_EQ(waits->reasons, std::vector<std::string>{"1 GPU is wanted and 0 of 2 are free"});
  EXPECT_EQ(waits->place, 1);
  EXPECT_EQ(engine_->explain({}, holder)()->reasons,
            std::vector<std::string>{"it has GPU 0 (GPU-0), GPU 1 (GPU-1)"});
  end(holder, 3);
  EXPECT_EQ(engine_->explain({}, holder)()->reasons,
            (std::vector<std::string>{"exited with status 3", "it had GPU 0 (GPU-0), GPU 1 (GPU-1)"}));
}

TEST_F(LocalEngineTest, ABackupIsForRootAlone) {
  begin();
  Result<std::shared_ptr<UniqueFd>> answer = fail(ErrorKind::kInternal, "no answer came");
  engine_->backup({{1000, 1000, {}, "alice", "/"}}, [&](auto copy) { answer = std::move(copy); });
  run();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kPermissionDenied);
}

TEST_F(LocalEngineTest, WakesWhenATasksTimeIsUp) {
  begin();
  workload::TaskRequest request;
  request.task.command = {"sleep", "60"};
  request.task.timeout = 5s;
  const auto id = submit(request)->task.id;
  run();
  engine_->watcher().started(id, {42, now_});
  run();
  EXPECT_EQ(wake_at_, now_ + 5s);
  now_ += 5s;
  engine_->tick();
  run();
  EXPECT_EQ(world_.stopped, std::vector<std::string>{id});
}

TEST_F(LocalEngineTest, WhatEndsAndIsForgottenAtOnceIsCleanedUp) {
  begin(0);
  workload::Service service;
  service.id = "/web";
  service.instances = 30;
  service.task.name = "web";
  service.task.command = {"sleep", "60"};
  service.task.resources.gpus = {{1, {}}};
  ASSERT_TRUE(change(control::event::ServicesChanged{.put = {service}}));
  run();
  ASSERT_EQ(engine_->tasks({}).records().size(), 30U) << "all wait";
  ASSERT_TRUE(change(control::event::ServicesChanged{.removed = {"/web"}, .force = true}));
  run();
  EXPECT_EQ(engine_->tasks({}).records().size(), control::kKeptInstances);
  EXPECT_EQ(world_.forgotten.size(), 30 - control::kKeptInstances);
}

TEST_F(LocalEngineTest, AFullDiskRefusesTheTaskAndKeepsWhatHappened) {
  if (::geteuid() != 0 || ::mount("drover", folder_.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here";
  begin();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(submit(0)->task.id);
  run();
  const auto filler = folder_ / "filler";
  {
    std::FILE* file = std::fopen(filler.c_str(), "w");
    const std::string block(4096, 'x');
    while (std::fwrite(block.data(), 1, block.size(), file) == block.size() && std::fflush(file) == 0) {
    }
    std::fclose(file);
  }
  workload::TaskRequest another;
  std::optional<Result<control::TaskRecord>> answer;
  // What the log file had room for, to the last page.
  for (const std::size_t bytes : {100'000, 1'000, 1}) {
    answer.reset();
    for (int i = 0; (!answer || *answer) && i < 1000; ++i) {
      another.task.command = {"sleep", std::to_string(i) + std::string(bytes, '0')};
      answer = submit(another);
    }
  }
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().kind, ErrorKind::kExhausted) << to_string(answer->error());
  for (const auto& id : ids) end(id, 0);  // the first ones may find room
  EXPECT_NE(state_of(ids.back()), TaskState::kFinished) << "what is not in the journal has not happened yet";
  std::filesystem::remove(filler);
  engine_->tick();
  run();
  for (const auto& id : ids) EXPECT_EQ(state_of(id), TaskState::kFinished);
  engine_.reset();
  ::umount(folder_.c_str());
}

}  // namespace
}  // namespace drover::engine
