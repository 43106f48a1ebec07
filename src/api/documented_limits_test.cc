// The numbers that the documentation tells are those of the code.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "api/server.h"
#include "base/units.h"
#include "base/user_limits.h"

namespace drover::api {
namespace {

/// Of a file in docs/, on one line.
std::string page(const std::string& name) {
  std::ifstream file(DROVER_SOURCE_DIR "/docs/" + name);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

TEST(DocumentedLimits, AreThoseOfTheServer) {
  const Limits limits;
  EXPECT_EQ(limits.header_time, limits.body_time);
  EXPECT_THAT(
      page("api.md"),
      ::testing::HasSubstr(fmt::format(
          "Header {}, body {}; {} s for each of them; an idle connection is kept for {} h; {} s for a client "
          "to take a piece of an answer. {} connections, of which one user, or one address over TCP, may "
          "hold "
          "{}, and of which {} are for root alone.",
          format_bytes(limits.header_bytes), format_bytes(limits.body_bytes), limits.header_time.count(),
          std::chrono::duration_cast<std::chrono::hours>(limits.idle_time).count(), limits.write_time.count(),
          limits.connections, limits.connections_per_peer, limits.connections_for_root)));
}

TEST(DocumentedLimits, OfUsersAreThoseOfTheTable) {
  const auto text = page("limits.md");
  for (const auto& limit : user_limits()) {
    auto value = show(limit, UserLimits{});
    std::erase(value, ' ');
    if (limit.value == &UserLimits::sandbox_bytes) continue;  // a part of the disk, in words
    EXPECT_THAT(text, ::testing::HasSubstr(fmt::format("| `{}` | `{}` |", limit.name, value)));
  }
}

}  // namespace
}  // namespace drover::api
