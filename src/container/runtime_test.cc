#include "container/runtime.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

TEST(RuntimeVersion, IsTheWordAfterVersion) {
  EXPECT_EQ(parse_runtime_version("runc version 1.1.5+ds1\ncommit: x\n"), "1.1.5");
  EXPECT_EQ(parse_runtime_version("crun version 1.8.1\n"), "1.8.1");
  EXPECT_EQ(parse_runtime_version("nonsense"), "");
}

}  // namespace
}  // namespace drover::container
