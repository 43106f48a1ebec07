#include "engine/event_loop.h"

#include <gmock/gmock.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <mutex>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A journal whose thread writes when the test says so.
class EventLoopTest : public testing::LocalEngineTest {
 protected:
  void SetUp() override {
    LocalEngineTest::SetUp();
    auto all = ports();
    all.journal = [this](Work work) { writes_.push_back(std::move(work)); };
    all.image_variants = [this](const auto&, const auto&, const auto&) -> Result<std::vector<ImageVariant>> {
      ++inspections_;
      return std::vector<ImageVariant>{};
    };
    ASSERT_TRUE(open(node(4), std::move(all), std::make_unique<testing::FakeContainerizer>(world_)));
    write_all();  // the events are counted
  }
  void TearDown() override {
    writes_.clear();
    LocalEngineTest::TearDown();
  }

  void write() {
    ASSERT_FALSE(writes_.empty());
    auto work = std::move(writes_.front());
    writes_.pop_front();
    work();
    run();
  }
  void write_all() {
    while (!writes_.empty()) write();
  }
  /// Somebody asks for a task; what comes of it is in `answers_`.
  void ask(const std::string& name) {
    workload::TaskRequest request;
    request.task.name = name;
    request.task.command = {"true"};
    const auto id = std::make_shared<std::string>();
    engine_->transact(
        [this, request, id] {
          const auto made = engine_->submit({}, request);
          *id = made ? made->task.id : to_string(made.error());
        },
        [this, name, id](const Status& kept) {
          answers_.push_back(name + (kept ? ": " + *id : " failed: " + kept.error().message));
        });
  }
  Result<control::TaskRecord> stop(const std::string& id) {
    Result<control::TaskRecord> answer = fail(ErrorKind::kInternal, "no answer came");
    engine_->stop({}, id, false, [&](auto result) { answer = std::move(result); });
    return answer;
  }

  std::deque<Work> writes_;
  std::vector<std::string> answers_;
  int inspections_ = 0;  ///< of images
};

TEST_F(EventLoopTest, NobodySeesWhatIsNotKept) {
  std::vector<std::string> notified;
  const auto watch = engine_->watch([&](const control::Notice& notice) {
    if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice))
      notified.push_back(moved->record.task.id);
  });
  ask("one");
  run();
  EXPECT_TRUE(engine_->state().tasks.empty());
  EXPECT_THAT(answers_, IsEmpty());
  EXPECT_THAT(notified, IsEmpty());
  EXPECT_THAT(world_.launches, IsEmpty());
  write();
  EXPECT_EQ(state_of("t1"), TaskState::kStarting);
  EXPECT_THAT(answers_, ElementsAre("one: t1"));
  EXPECT_THAT(notified, ::testing::Each("t1"));
  EXPECT_EQ(world_.launches["t1"], 1);
}

TEST_F(EventLoopTest, WhatComesMeanwhileIsWrittenAtOnce) {
  ask("one");
  for (const auto* name : {"two", "three", "four"}) ask(name);
  EXPECT_EQ(writes_.size(), 1u);
  write();
  EXPECT_THAT(answers_, ElementsAre("one: t1"));
  EXPECT_EQ(writes_.size(), 1u) << "one commit for all the others";
  write();
  EXPECT_THAT(answers_, ElementsAre("one: t1", "two: t2", "three: t3", "four: t4"));
  EXPECT_EQ(engine_->state().tasks.size(), 4u);
  write_all();
  begin();
  EXPECT_EQ(engine_->state().tasks.size(), 4u) << "the journal has them, too";
}

TEST_F(EventLoopTest, EachIsDecidedByWhatThoseBeforeItMade) {
  ask("one");
  std::vector<std::string> seen;
  for (const auto* path : {"a", "b", "c"})
    engine_->transact(
        [this, path, &seen] {
          std::string all;
          for (const auto& [name, queue] : engine_->state().rules.queues) all += name;
          seen.push_back(all);
          EXPECT_TRUE(engine_->set_rules({}, {placement::Queue{path}}, {}));
        },
        {});
  write();
  EXPECT_THAT(seen, ElementsAre("", "a", "ab"));
  EXPECT_TRUE(engine_->state().rules.queues.empty()) << "nobody else sees that before it is kept";
  write_all();
  EXPECT_EQ(engine_->state().rules.queues.size(), 3u);
}

TEST_F(EventLoopTest, WhatCannotBeKeptTogetherIsTriedOneByOne) {
  ask("one");
  ask("two");
  engine_->happened(control::event::NodeChanged{node(3)});
  ask("three");
  write();
  disk_.fail();
  write();  // all of them
  write();  // the second
  disk_.recover();
  write_all();
  EXPECT_THAT(answers_, ElementsAre("one: t1", HasSubstr("two failed: "), ::testing::StartsWith("three: t")));
  EXPECT_EQ(engine_->state().machine().inventory.devices.size(), 3u);
  const auto tasks = engine_->state().tasks.size();
  begin(3);
  EXPECT_EQ(tasks, 2u);
  EXPECT_EQ(engine_->state().tasks.size(), 2u) << "what was refused is not in the journal";
}

TEST_F(EventLoopTest, ADiskThatDoesNotAnswerHoldsUpChangesAlone) {
  ask("one");
  write_all();
  now_ += 5s;
  ask("two");
  ask("three");
  now_ += 9s;
  engine_->tick();
  EXPECT_EQ(answers_.size(), 1u);
  EXPECT_THAT(engine_->problems(), IsEmpty());
  now_ += 1s;
  ASSERT_TRUE(wake_at_ && *wake_at_ <= now_) << "somebody looks at it in time";
  engine_->tick();
  ask("four");
  engine_->transact([] {}, {});  // nobody wants to know
  EXPECT_THAT(answers_,
              ElementsAre("one: t1", HasSubstr("three failed: The disk of the state folder has not taken"),
                          HasSubstr("four failed: The disk of the state folder has not taken")));
  ASSERT_FALSE(engine_->problems().empty());
  EXPECT_THAT(engine_->problems().front().message, HasSubstr("for 10 s"));
  EXPECT_EQ(state_of("t1"), TaskState::kStarting) << "who only reads is answered";
  EXPECT_TRUE(stop("t1")) << "it may be what keeps the disk busy";
  run();
  EXPECT_THAT(world_.stopped, ElementsAre("t1"));
  write_all();
  EXPECT_EQ(answers_.back(), "two: t2") << "it was on its way to the disk";
  EXPECT_EQ(state_of("t1"), TaskState::kStopping);
  EXPECT_THAT(engine_->problems(), IsEmpty());
  ask("five");
  write_all();
  EXPECT_THAT(answers_.back(), ::testing::StartsWith("five: t"));
}

TEST_F(EventLoopTest, WhatIsDueWhileTheDiskDoesNotAnswerIsLookedForAgain) {
  ask("one");
  now_ += 12s;
  wake_at_.reset();
  engine_->tick();
  ASSERT_TRUE(wake_at_) << "this tick has passed";
  EXPECT_LE(*wake_at_, now_ + 1s);
}

TEST_F(EventLoopTest, NothingThatHappenedIsOvertakenOrLostWhileTheDiskIsFull) {
  ask("one");
  write_all();
  disk_.fail();
  engine_->watcher().started("t1", {42, now_});
  run();
  write();
  end("t1", 3);
  for (int i = 0; i < 5; ++i) {
    now_ += 1s;
    engine_->tick();
    run();
    write_all();
  }
  EXPECT_EQ(state_of("t1"), TaskState::kStarting);
  disk_.recover();
  now_ += 1s;
  engine_->tick();
  run();
  write_all();
  EXPECT_EQ(state_of("t1"), TaskState::kFailed);
  EXPECT_EQ(engine_->state().tasks.at("t1").exit_status, 3);
}

TEST_F(EventLoopTest, AnImageIsInspectedWhenItIsKnownThatItsTasksWaitForIt) {
  workload::Service service;
  service.id = "/web";
  service.instances = 1;
  service.task.name = "web";
  service.task.command = {"sleep", "60"};
  service.task.image = "registry.example/web";
  engine_->transact([&] { EXPECT_TRUE(engine_->change(control::event::ServicesChanged{.put = {service}})); },
                    {});
  run();
  EXPECT_EQ(inspections_, 0);
  while (!writes_.empty()) write();
  EXPECT_GT(std::exchange(inspections_, 0), 0);
  for (const auto& [name, fit] : engine_->state().images) EXPECT_FALSE(fit.pending);
  ASSERT_EQ(engine_->state().active.size(), 1u) << "it need not wait any more";
  // The same when the machine is another one.
  auto machine = node(4);
  machine.inventory.driver_version = "1.0";
  engine_->set_machine(machine);
  run();
  while (!writes_.empty()) write();
  EXPECT_GT(inspections_, 0);
  for (const auto& [name, fit] : engine_->state().images) EXPECT_FALSE(fit.pending);
}

TEST_F(EventLoopTest, NothingChangesOutsideOfATransaction) {
  const auto changed = engine_->change(control::event::RulesChanged{});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().kind, ErrorKind::kInternal);
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(EventLoopTest, ABackupIsMadeBetweenCommits) {
  ask("one");
  Result<std::shared_ptr<UniqueFd>> copy = fail(ErrorKind::kInternal, "no answer came");
  engine_->backup({}, [&](auto result) { copy = std::move(result); });
  ask("two");
  write_all();
  ASSERT_TRUE(copy) << to_string(copy.error());
  EXPECT_EQ(answers_.size(), 2u);
}

/// As in the daemon: the journal has a thread, and this is the strand.
TEST_F(EventLoopTest, WritesWhileOthersAreDecided) {
  engine_.reset();
  std::mutex mutex;
  std::condition_variable news;
  std::deque<Work> posted;
  boost::asio::thread_pool thread(1);
  auto all = ports();
  all.post = [&](Work work) {
    const std::lock_guard lock(mutex);
    posted.push_back(std::move(work));
    news.notify_one();
  };
  all.pool = all.slow_pool = [&](uid_t, const Work& work) { all.post(work); };
  all.journal = [&](Work work) { boost::asio::post(thread, std::move(work)); };
  ASSERT_TRUE(open(node(4), all, std::make_unique<testing::FakeContainerizer>(world_)));
  constexpr int kTasks = 200;
  for (int i = 0; i < kTasks; ++i) ask("job");
  std::vector<std::shared_ptr<const control::State>> seen;
  while (answers_.size() < kTasks) {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(news.wait_for(lock, 60s, [&] { return !posted.empty(); }));
    const auto work = std::move(posted.front());
    posted.pop_front();
    lock.unlock();
    work();
    seen.push_back(engine_->snapshot());
  }
  thread.join();
  EXPECT_EQ(engine_->state().tasks.size(), kTasks);
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_LE(seen[i - 1]->tasks.size(), seen[i]->tasks.size());
  engine_.reset();
}

}  // namespace
}  // namespace drover::engine
