#include "base/pause.h"

#include <gtest/gtest.h>

#include <thread>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(Pause, EndsWhenItIsStopped) {
  EXPECT_TRUE(pause(1ms, {}));
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  EXPECT_FALSE(pause(24h, source.get_token()));
  EXPECT_FALSE(pause(24h, source.get_token()));
}

TEST(Backoff, DoublesUpToItsLongest) {
  Backoff backoff(100ms, 350ms, 7);
  for (const auto whole : {100ms, 200ms, 350ms, 350ms}) {
    const auto length = backoff.next();
    EXPECT_GE(length, whole / 2);
    EXPECT_LE(length, whole);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), 100ms);
}

TEST(Backoff, WithoutASeedIsAsLongAsItSays) {
  Backoff backoff(100ms, 350ms);
  for (const auto whole : {100ms, 200ms, 350ms, 350ms}) EXPECT_EQ(backoff.next(), whole);
  backoff.reset();
  EXPECT_EQ(backoff.next(), 100ms);
}

TEST(Backoff, OfOtherSeedsDiffers) {
  EXPECT_EQ(Backoff(1h, 1h, 1).next(), Backoff(1h, 1h, 1).next());
  EXPECT_NE(Backoff(1h, 1h, 1).next(), Backoff(1h, 1h, 2).next());
}

}  // namespace
}  // namespace drover
