// Nobody waits for somebody else's list: next to nothing of it is done on the control strand.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/testing/fake_daemon.h"

namespace drover::api {
namespace {

using testing::ServerFixture;

constexpr int kMany = 2000;

double seconds_on(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Very many tasks: instances of an app, of a framework, those of people, and jobs.
class ListsTest : public ::testing::Test {
 protected:
  ListsTest() {
    expect_status(201, server_.exchange("POST", "/v2/apps", R"({"id":"/web","cmd":"sleep 9","mem":16})"));
    expect_status(
        204, server_.exchange("POST", "/v1/scheduler/iso8601",
                              R"({"name":"job","command":"true","schedule":"R/2099-01-01T00:00:00Z/P1D"})"));
    expect_status(201, server_.exchange("POST", "/v1/tasks", R"({"command":["sleep","9"]})"));
    server_.start_all();
    server_.on_strand([this] {
      auto& daemon = server_.daemon();
      daemon.copy("task-1", kMany);
      auto& state = daemon.state_;
      copy(state, state.tasks.begin()->second);
      const auto job = state.schedules.begin()->second;
      daemon.holders_ = std::make_shared<std::vector<engine::Views::Holder>>();
      for (int i = 0; i < kMany; ++i) {
        state.schedules.insert_or_assign(fmt::format("job-{}", i), job);
        daemon.holders_->push_back({"GPU-1", fmt::format("task-{}", i), "alice"});
      }
    });
  }

  static void expect_status(int status, const std::string& answer) {
    EXPECT_EQ(testing::status_of(answer), status) << answer;
  }

  /// As instances of the app, and as tasks of a framework.
  static void copy(control::State& state, control::TaskRecord record) {
    state.frameworks.insert_or_assign("F", {.name = "fw", .user = "root", .owner = ::getuid(), .info = "{}"});
    for (int i = 0; i < kMany; ++i) {
      if (i == kMany / 2) record.task.origin = {.kind = workload::OriginKind::kFramework, .name = "F"};
      const auto id = fmt::format("copy{}", i);
      record.task.id = id;
      record.task.origin.task_id = fmt::format("web.instance-{}._app.1", i);
      ++record.sequence;
      state.tasks.insert_or_assign(id, record);
      state.by_origin.edit(control::origin_of(record.task)).insert(id);
      state.active.insert(id);
    }
  }

  double strand_seconds() {
    return server_.on_strand([] { return seconds_on(CLOCK_THREAD_CPUTIME_ID); });
  }

  /// How much of the processor's time that the answer takes is taken on the strand.
  double part_on_strand(const char* method, const std::string& target, const std::string& body = "") {
    const auto strand = strand_seconds();
    const auto all = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    const auto answer = server_.exchange(method, target, body);
    const auto on_strand = strand_seconds() - strand;
    const auto part = on_strand / (seconds_on(CLOCK_PROCESS_CPUTIME_ID) - all);
    EXPECT_EQ(testing::status_of(answer), 200) << target;
    EXPECT_GT(answer.size(), 100U * kMany) << target << " is no long list";
    return part;
  }

  ServerFixture server_;
};

TEST_F(ListsTest, AreWrittenBesideTheStrand) {
  for (const auto* target :
       {"/state", "/master/frameworks", "/tasks?limit=100000", "/slave(1)/state", "/containers", "/v1/tasks",
        "/v2/tasks", "/v2/apps/web", "/v2/apps?embed=apps.tasks", "/v1/scheduler/jobs",
        "/v1/scheduler/jobs/summary", "/v1/gpus", "/files/debug"})
    EXPECT_LT(part_on_strand("GET", target), 0.3) << target;
  for (const auto* type : {"GET_STATE", "GET_TASKS", "GET_EXECUTORS"})
    for (const auto* target : {"/api/v1", "/slave(1)/api/v1"})
      EXPECT_LT(part_on_strand("POST", target, fmt::format(R"({{"type":"{}"}})", type)), 0.3) << type;
}

TEST_F(ListsTest, QueuesAreListedBesideTheStrand) {
  server_.on_strand([this] {
    for (int i = 0; i < kMany / 4; ++i) {  // each with some that wait
      const auto queue = fmt::format("queue-{}", i);
      server_.daemon().rules.queues[queue].path = queue;
    }
  });
  EXPECT_LT(part_on_strand("GET", "/v1/queues"), 0.3);
}

}  // namespace
}  // namespace drover::api
