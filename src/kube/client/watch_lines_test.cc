#include "kube/client/watch_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::vector<std::string>& pieces, std::size_t longest = 100) {
  LineReader reader(longest);
  std::vector<std::string> lines;
  for (const auto& piece : pieces) {
    const auto fed = reader.feed(piece, [&](std::string_view line) -> Status {
      lines.emplace_back(line);
      return {};
    });
    if (!fed) lines.push_back("! " + fed.error().message);
  }
  return lines;
}

TEST(LineReader, PutsPiecesTogether) {
  EXPECT_THAT(lines_of({"a\nb", "c", "\n\nd\n", "rest"}), ElementsAre("a", "bc", "d"));
}

TEST(LineReader, RefusesALineWithoutEnd) {
  EXPECT_THAT(lines_of({"12345\n", "123", "456", "1\n"}, 5),
              ElementsAre("12345", "! the API server sent an object of more than 5 B", "1"));
  EXPECT_THAT(lines_of({"123456\n1\n"}, 5), ElementsAre(HasSubstr("more than 5 B")));
}

RC_GTEST_PROP(LineReaderProperty, DoesNotDependOnWhereItIsCut, (const std::vector<std::string>& pieces)) {
  std::string whole;
  for (const auto& piece : pieces) whole += piece;
  RC_ASSERT(lines_of(pieces, whole.size() + 1) == lines_of({whole}, whole.size() + 1));
}

TEST(WatchLine, IsAnEvent) {
  const auto event = parse_watch_line(
      R"({"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"7"}}})", {kNodes});
  ASSERT_TRUE(event) << to_string(event.error());
  EXPECT_EQ(event->type, WatchEventType::kDeleted);
  EXPECT_EQ(key_of(*event->object), "a");
  const auto bookmark =
      parse_watch_line(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})", {kNodes});
  ASSERT_TRUE(bookmark);
  EXPECT_EQ(bookmark->type, WatchEventType::kBookmark);
}

TEST(WatchLine, HasManagedFieldsOnlyForWhoWantsThem) {
  constexpr auto kLine =
      R"({"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"f":{}}],"resourceVersion":"7"}}})";
  EXPECT_TRUE(parse_watch_line(kLine, {kNodes})->object->at("metadata").contains("managedFields"));
  const auto event = parse_watch_line(kLine, {.resource = kNodes, .managed_fields = false});
  ASSERT_TRUE(event) << to_string(event.error());
  EXPECT_EQ(event->object->at("metadata"), nlohmann::json({{"name", "a"}, {"resourceVersion", "7"}}));
}

TEST(WatchLine, SaysWhatTheServerSays) {
  const auto old = parse_watch_line(
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version: 1"}
})",
      {kPods, "n"});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(old.error().message, "Failed to watch pods in 'n': too old resource version: 1");
}

TEST(WatchLine, ThatIsNoneIsRefused) {
  for (const auto* line : {"", "[]", "3", "{", R"({"type":"ADDED"})", R"({"type":"ADDED","object":3})",
                           R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
                           R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})",
                           R"({"type":"NEWS","object":{"metadata":{"name":"a","resourceVersion":"1"}}})"}) {
    const auto event = parse_watch_line(line, {kNodes});
    ASSERT_FALSE(event) << line;
    EXPECT_EQ(event.error().kind, ErrorKind::kUnavailable) << line;
  }
}

}  // namespace
}  // namespace drover::kube
