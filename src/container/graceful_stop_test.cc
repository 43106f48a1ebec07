#include "container/graceful_stop.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace drover::container {
namespace {

TEST(SignalDisposition, IsDefaultUnlessCaughtOrIgnored) {
  const std::string head = "Name:\tx\nSigBlk:\t0000000000004000\n";
  EXPECT_TRUE(
      has_default_disposition(head + "SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n", SIGTERM));
  EXPECT_FALSE(
      has_default_disposition(head + "SigIgn:\t0000000000004000\nSigCgt:\t0000000000000000\n", SIGTERM));
  EXPECT_FALSE(
      has_default_disposition(head + "SigIgn:\t0000000000000000\nSigCgt:\t0000000000004002\n", SIGTERM));
}

}  // namespace
}  // namespace drover::container
