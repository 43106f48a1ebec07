#include "container/status_file.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

TEST(Status, IsReadAsItWasWritten) {
  TaskStatus status;
  status.running = Running{42, TimePoint(std::chrono::milliseconds(1'520'290'800'123))};
  status.ending =
      Ending{137, true, true, false, "in \"words\"", TimePoint(std::chrono::milliseconds(1'600'000'000'000))};
  const auto read = decode_status(encode(status)).value();
  EXPECT_EQ(read.running->pid, 42);
  EXPECT_EQ(read.running->started_at, status.running->started_at);
  EXPECT_EQ(read.ending, status.ending);
  EXPECT_FALSE(decode_status(R"({"ending": {"exit_status": 4000}})"));
}

}  // namespace
}  // namespace drover::container
