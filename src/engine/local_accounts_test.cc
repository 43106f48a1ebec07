// Accounts over the lives of a daemon.

#include <gtest/gtest.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;

class LocalAccountsTest : public testing::LocalEngineTest {
 protected:
  Report report(const Caller& caller = {}) {
    Result<Report> answer = fail(ErrorKind::kInternal, "no answer came");
    engine_->report(caller, {TimePoint(), now_ + 1h}, [&](auto made) { answer = std::move(made); });
    run();
    EXPECT_TRUE(answer) << to_string(answer.error());
    return answer.value_or(Report{});
  }
  std::string start(int gpus, const Caller& caller = {}) {
    const auto id = submit(gpus, caller)->task.id;
    run();
    engine_->watcher().started(id, {42, now_});
    run();
    return id;
  }
};

TEST_F(LocalAccountsTest, AnAttemptThatEndedIsThereOnceWhateverIsKilled) {
  begin();
  const auto id = start(2);
  now_ += 10min;
  EXPECT_EQ(report().total.held, 1200) << "it runs";
  EXPECT_EQ(report().total.running, 1);
  begin();
  EXPECT_EQ(report().total.held, 1200);
  end(id, 3);
  end(id, 3);
  for (int life = 0; life < 2; ++life) {
    begin();
    now_ += 1min;
    const auto made = report();
    EXPECT_EQ(made.total.held, 1200);
    EXPECT_EQ(made.total.failures, (std::map<std::string, std::int64_t>{{"exit", 1}}));
    EXPECT_EQ(made.total.waits.count, 1);
    EXPECT_EQ(made.total.running, 0);
  }
  ASSERT_TRUE(remove(id));
  begin();
  EXPECT_EQ(report().total.held, 1200) << "the task is forgotten";
}

TEST_F(LocalAccountsTest, EverybodyHasHisOwn) {
  begin();
  Caller ann;
  ann.user = {1001, 1001, {}, "ann", "/"};
  end(start(1, ann), 0);
  const auto runs = start(1);
  now_ += 1h;
  const auto own = report(ann);
  ASSERT_EQ(own.rows.size(), 1u);
  EXPECT_EQ(own.rows[0].key, "ann");
  EXPECT_EQ(own.total.held, 0);
  EXPECT_EQ(report().rows.size(), 2u);
  EXPECT_EQ(report().total.held, 3600);
}

TEST_F(LocalAccountsTest, OnlySoManyAtOnce) {
  begin();
  auto beside = ports();
  std::deque<Work> held;
  beside.journal = [&](Work work) { held.push_back(std::move(work)); };
  engine_.reset();
  ASSERT_TRUE(open(node(2), std::move(beside), std::make_unique<testing::FakeContainerizer>(world_)));
  int made = 0, refused = 0;
  for (int i = 0; i < 5; ++i)
    engine_->report({}, {TimePoint(), now_},
                    [&](const Result<Report>& answer) { ++(answer ? made : refused); });
  EXPECT_EQ(refused, 3);
  for (int i = 0; i < 20; ++i) {
    run();
    for (auto& work : std::exchange(held, {})) work();
  }
  run();
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace drover::engine
