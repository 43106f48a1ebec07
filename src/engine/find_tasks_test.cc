#include "engine/find_tasks.h"

#include <gtest/gtest.h>

namespace drover::engine {
namespace {

using control::TaskState;

class FindTasksTest : public ::testing::Test {
 protected:
  control::TaskRecord& add(const std::string& id, const std::string& name, uid_t owner = 0) {
    auto& record = state_.tasks.edit(id);
    record.task.id = id;
    record.task.name = name;
    record.task.owner = owner;
    record.state = TaskState::kRunning;
    record.sequence = ++added_;
    return record;
  }
  std::string found(const std::string& id, const Caller& caller = {}) {
    const auto task = find_task(state_, caller, id);
    return task ? (*task)->task.id : "";
  }

  control::State state_;
  std::uint64_t added_ = 0;
  const Caller alice_{{1001, 1001, {}, "alice", "/"}};
};

TEST_F(FindTasksTest, ByIdByPrefixAndByName) {
  add("t1", "job");
  EXPECT_EQ(found("t1"), "t1");
  EXPECT_EQ(found("t"), "t1");
  EXPECT_EQ(found("job"), "t1");
  add("t2", "job");
  EXPECT_EQ(find_task(state_, {}, "t").error().hint,
            "write more of the id: t1 (job, running), t2 (job, running)");
  EXPECT_EQ(find_task(state_, {}, "t").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(find_task(state_, {}, "").error().kind, ErrorKind::kNotFound) << "nothing is no prefix";
}

TEST_F(FindTasksTest, ANameMeansTheNewestThatGoesOnOrTheNewest) {
  for (const auto* id : {"a", "b", "c", "d"}) add(id, "job");
  EXPECT_EQ(found("job"), "d");
  for (const auto* id : {"c", "d"}) state_.tasks.edit(id).state = TaskState::kFailed;
  EXPECT_EQ(found("job"), "b");
  for (const auto* id : {"a", "b"}) state_.tasks.edit(id).state = TaskState::kFinished;
  EXPECT_EQ(found("job"), "d");
}

TEST_F(FindTasksTest, ByTheIdThatAnAppOrAJobShows) {
  add("t1", "tick").task.origin.task_id = "ct:1795407398570:0:tick:";
  add("t2", "tick").task.origin.task_id = "ct:1795407398571:0:tick:";
  EXPECT_EQ(found("ct:1795407398570:0:tick:"), "t1");
}

TEST_F(FindTasksTest, OnlyAmongThoseThatTheCallerSees) {
  add("t1", "job", alice_.user.uid);
  add("t2", "job", 1002);
  EXPECT_EQ(found("job", alice_), "t1");
  EXPECT_EQ(found("job"), "t2");
  add("t0", "job").state = TaskState::kFinished;
  EXPECT_EQ(found("job"), "t0") << "root means his own";
  EXPECT_EQ(find_task(state_, alice_, "t2").error().kind, ErrorKind::kNotFound);
}

TEST_F(FindTasksTest, AGangIsOneJob) {
  for (int rank = 0; rank < 2; ++rank)
    add("g." + std::to_string(rank), "train").task.gang = workload::GangMembership{"g", rank, 2, {}};
  EXPECT_EQ((*find_job(state_, {}, "g"))->task.id, "g.0");
  EXPECT_EQ((*find_job(state_, {}, "train"))->task.id, "g.0");
  EXPECT_EQ((*find_job(state_, {}, "g.1"))->task.id, "g.1");
  EXPECT_EQ(found("train"), "g.0");
  EXPECT_FALSE(find_task(state_, {}, "g"));
  add("h", "train");
  EXPECT_EQ((*find_job(state_, {}, "train"))->task.id, "h") << "the newer one";
}

}  // namespace
}  // namespace drover::engine
