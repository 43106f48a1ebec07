#include "api/sse.h"

#include <gtest/gtest.h>

namespace drover::api {
namespace {

TEST(SseEvent, HasIdNameAndData) {
  EXPECT_EQ(sse_event("log", "7", "{}"), "id: 7\nevent: log\ndata: {}\n\n");
}

TEST(SseEvent, EveryLineOfTheDataIsMarked) {
  EXPECT_EQ(sse_event("", "", "a\n\nb"), "data: a\ndata: \ndata: b\n\n");
  EXPECT_EQ(sse_event("end", "", ""), "event: end\ndata: \n\n");
}

TEST(SseHeartbeat, IsAComment) {
  EXPECT_LE(kSseHeartbeat, std::chrono::seconds(10)) << "clients of Marathon give up after 15 s";
  EXPECT_EQ(sse_heartbeat().front(), ':');
  EXPECT_TRUE(sse_heartbeat().ends_with("\n\n"));
}

}  // namespace
}  // namespace drover::api
