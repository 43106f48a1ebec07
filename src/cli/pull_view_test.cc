#include "cli/pull_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

json progress_of(const std::string& first, std::uint64_t done) {
  return {{"name", "redis:7"},
          {"layers",
           {{{"digest", "sha256:0123456789abcdef"}, {"bytes", 40 << 20}, {"done", done}, {"state", first}},
            {{"digest", "sha256:fedcba98"}, {"bytes", 100}, {"done", 100}, {"state", "exists"}}}}};
}

TEST(PullView, TellsOfEachLayerOnceWhereNobodyWatches) {
  PullView view(false);
  EXPECT_EQ(view.show(progress_of("downloading", 1 << 20)), "fedcba98  exists  100 B\n");
  EXPECT_EQ(view.show(progress_of("downloading", 2 << 20)), "");
  EXPECT_EQ(view.show(progress_of("done", 40 << 20)), "0123456789ab  done  40 MiB\n");
}

TEST(PullView, PaintsOverItselfOnATerminal) {
  PullView view(true);
  const auto first = view.show(progress_of("downloading", 10 << 20));
  EXPECT_THAT(first, HasSubstr("0123456789ab  [######                  ]  downloading  10 of 40 MiB\n"));
  EXPECT_THAT(view.show(progress_of("unpacking", 40 << 20)), StartsWith("\033[2A\r\033[K0123456789ab"));
}

TEST(PullView, HostileNamesDoNotReachTheTerminal) {
  PullView view(true);
  const json progress = {{"layers", {{{"digest", "sha256:\033[2J"}, {"state", "\033[2J"}}}}};
  EXPECT_EQ(view.show(progress).find("\033[2J"), std::string::npos);
}

}  // namespace
}  // namespace drover::cli
