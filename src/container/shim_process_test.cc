#include "container/shim_process.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

TEST(FirstWord, TellsStartedTakenAndWhyNot) {
  EXPECT_EQ(parse_word("started").value(), FirstWord::kStarted);
  EXPECT_EQ(parse_word("taken").value(), FirstWord::kTaken);
  const auto failed = parse_word("failed exhausted no space: at all\nfree some").error();
  EXPECT_EQ(failed.kind, ErrorKind::kExhausted);
  EXPECT_EQ(failed.message, "no space: at all");
  EXPECT_EQ(failed.hint, "free some");
  EXPECT_EQ(parse_word("failed internal why\n").error().message, "why");
  EXPECT_EQ(parse_word("").error().kind, ErrorKind::kInternal);
}

}  // namespace
}  // namespace drover::container
