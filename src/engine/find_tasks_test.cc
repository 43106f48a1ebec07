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
    return record;
  }
  std::string found(const std::string& id, const Caller& caller = {}) {
    const auto task = find_task(state_, caller, id);
    return task ? (*task)->task.id : "";
  }

  control::State state_;
  const Caller alice_{{1001, 1001, {}, "alice", "/"}};
};

TEST_F(FindTasksTest, ByIdByPrefixAndByName) {
  auto& first = add("t1", "job");
  EXPECT_EQ(found("t1"), "t1");
  EXPECT_EQ(found("t"), "t1");
  EXPECT_EQ(found("job"), "t1");
  add("t2", "job");
  EXPECT_EQ(find_task(state_, {}, "job").error().hint, "name one by its id: t1, t2");
  EXPECT_EQ(find_task(state_, {}, "t").error().kind, ErrorKind::kInvalid);
  first.state = TaskState::kFinished;
  EXPECT_EQ(found("job"), "t2") << "a name means what goes on now";
  EXPECT_EQ(find_task(state_, {}, "").error().kind, ErrorKind::kNotFound) << "nothing is no prefix";
}

TEST_F(FindTasksTest, OnlyAmongThoseThatTheCallerSees) {
  add("t1", "job", alice_.user.uid);
  add("t2", "job", 1002);
  EXPECT_EQ(found("job", alice_), "t1");
  EXPECT_EQ(find_task(state_, alice_, "t2").error().kind, ErrorKind::kNotFound);
}

TEST_F(FindTasksTest, AGangIsOneJob) {
  for (int rank = 0; rank < 2; ++rank)
    add("g." + std::to_string(rank), "train").task.gang = workload::GangMembership{"g", rank, 2, {}};
  EXPECT_EQ((*find_job(state_, {}, "g"))->task.id, "g.0");
  EXPECT_EQ((*find_job(state_, {}, "train"))->task.id, "g.0");
  EXPECT_EQ((*find_job(state_, {}, "g.1"))->task.id, "g.1");
  EXPECT_FALSE(find_task(state_, {}, "train"));
  add("h", "train");
  EXPECT_FALSE(find_job(state_, {}, "train")) << "of two jobs none is meant";
}

}  // namespace
}  // namespace drover::engine
