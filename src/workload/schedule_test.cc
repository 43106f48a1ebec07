#include "workload/schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::workload {
namespace {

TEST(Schedule, IsReadBackAsStored) {
  Schedule schedule;
  schedule.name = "nightly";
  schedule.task.command = {"/bin/sh", "-c", "true"};
  schedule.task.fetch = {{"http://x/y", true, false, false, ""}};
  schedule.repetition = "R/2030-01-01T00:00:00.000Z/P1D";
  schedule.time_zone = "Europe/Berlin";
  schedule.parents = {"a", "b"};
  schedule.concurrent = true;
  schedule.epsilon = std::chrono::minutes(15);
  schedule.webhook = "https://example.org/runs";
  schedule.definition = R"({"owner":"x"})";
  const auto read = decode_schedule(encode(schedule));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, schedule);
}

TEST(Schedule, NamesAreThoseOfChronos) {
  for (const auto* name : {"a", "test-gpu", "A.b_c-9"}) EXPECT_TRUE(is_schedule_name(name)) << name;
  for (const auto& name :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("ä"), std::string(256, 'a')})
    EXPECT_FALSE(is_schedule_name(name)) << name;
}

}  // namespace
}  // namespace drover::workload
