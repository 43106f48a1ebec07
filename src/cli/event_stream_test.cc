#include "cli/event_stream.h"

#include <gtest/gtest.h>

namespace drover::cli {
namespace {

std::string parsed_events(const std::vector<std::string>& pieces) {
  EventStreamParser parser;
  std::string text;
  for (const auto& piece : pieces)
    parser.feed(piece, [&](const ServerEvent& event) {
      text += event.name + "|" + event.id + "|" + event.data + "\n";
      return true;
    });
  return text;
}

TEST(EventStreamParser, ReadsEventsHoweverTheyAreCut) {
  const std::string stream = "id: 1\nevent: log\ndata: a\ndata: b\n\n: comment\n\ndata:c\r\n\r\n";
  const std::string expected = "log|1|a\nb\n|1|c\n";
  EXPECT_EQ(parsed_events({stream}), expected);
  std::vector<std::string> bytes;
  for (const char c : stream) bytes.emplace_back(1, c);
  EXPECT_EQ(parsed_events(bytes), expected);
}

TEST(EventStreamParser, NothingWithoutDataAndNothingUnfinished) {
  EXPECT_EQ(parsed_events({"event: x\n\n", "data: cut off\n"}), "");
}

TEST(EventStreamParser, AHandlerEndsIt) {
  EventStreamParser parser;
  int calls = 0;
  EXPECT_FALSE(parser.feed("data: 1\n\ndata: 2\n\n", [&](const ServerEvent&) { return ++calls > 5; }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace drover::cli
