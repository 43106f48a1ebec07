#include "container/task_folder.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

TEST(TaskIds, MakeNoPaths) {
  EXPECT_TRUE(check_task_id("web-1_a.b"));
  for (const char* bad : {"", ".", "..", "../x", "a/b", "-rf", ".hidden", "a b", "a\n"})
    EXPECT_FALSE(check_task_id(bad)) << bad;
  EXPECT_FALSE(check_task_id(std::string(129, 'a')));
}

}  // namespace
}  // namespace drover::container
