#include "container/shim_process.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

TEST(Readiness, TellsStartedTakenAndWhyNot) {
  EXPECT_EQ(parse_readiness("started").value(), Readiness::kStarted);
  EXPECT_EQ(parse_readiness("taken").value(), Readiness::kTaken);
  const auto failed = parse_readiness("failed exhausted no space: at all\nfree some").error();
  EXPECT_EQ(failed.kind, ErrorKind::kExhausted);
  EXPECT_EQ(failed.message, "no space: at all");
  EXPECT_EQ(failed.hint, "free some");
  EXPECT_EQ(parse_readiness("failed internal why\n").error().message, "why");
  EXPECT_EQ(parse_readiness("").error().kind, ErrorKind::kInternal);
}

}  // namespace
}  // namespace drover::container
