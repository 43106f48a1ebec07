#include "cli/words.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/foreground.h"

namespace drover::cli {
namespace {

using nlohmann::json;

const json kListing = json::parse(
    R"({"gpus": [{"uuid": "GPU-a", "index": 0, "model": "Tesla V100"}, {"uuid": "GPU-b", "index": 3}]})");

TEST(Words, SayWhatWasGranted) {
  const KnownGpus gpus(kListing);
  const auto grants =
      json::parse(R"([{"gpu": "GPU-a", "milli": 500, "tier": "counted"}, {"gpu": "GPU-b", "milli": 500}])");
  EXPECT_EQ(granted(grants, json(), gpus), "0,3");
  EXPECT_EQ(granted(grants, {{"milli", 500}}, gpus), "0.5 of 0,3 (counted, not enforced)");
  EXPECT_EQ(granted(grants, {{"memory_bytes", 8ULL << 30}}, gpus), "8 GiB of 0,3 (counted, not enforced)");
  EXPECT_EQ(granted(json::array(), {{"milli", 500}}, gpus), "");
  EXPECT_EQ(granted(json::parse(R"([{"gpu": "GPU-b", "milli": 500}])"), {{"milli", 500}}, gpus), "0.5 of 3")
      << "what would hold it is not known before it starts";
  EXPECT_EQ(
      granted(json::parse(R"([{"gpu": "GPU-b", "milli": 500, "tier": "hard"}])"), {{"milli", 500}}, gpus),
      "0.5 of 3 (hard)");
  EXPECT_EQ(granted(json::parse(R"([{"gpu": "GPU-x"}])"), json(), gpus), "?");
  EXPECT_EQ(gpus.model("GPU-a"), "Tesla V100");
}

TEST(Words, SayWhatIsWanted) {
  EXPECT_EQ(wanted({{"gpus", 0}}), "-");
  EXPECT_EQ(wanted({{"gpus", 2}}), "2");
  EXPECT_EQ(wanted({{"gpus", 2}, {"gpu_share", {{"milli", 250}}}}), "0.25 of 2");
}

TEST(Words, SayAmounts) {
  const json some = {{"gpus", 1.0}, {"cpus", 0.0}, {"memory", 24ULL << 30}};
  EXPECT_EQ(amounts(some, false), "1 GPU, 24 GiB");
  EXPECT_EQ(amounts(some, true), "1 GPU, 0 CPUs, 24 GiB");
  EXPECT_EQ(amounts({{"gpus", 0.5}}, true), "0.5 GPUs");
  EXPECT_EQ(amounts(json::object(), true), "-");
}

TEST(RankedLines, NameTheRankBeforeEachLine) {
  RankedLines lines(3);
  EXPECT_EQ(lines.take("one\ntw"), "[3] one\n");
  EXPECT_EQ(lines.take("o\n\nthree"), "[3] two\n[3] \n");
  EXPECT_EQ(lines.rest(), "[3] three\n");
  EXPECT_EQ(lines.rest(), "");
}

TEST(RankedLines, DoNotHoldBackALineThatNeverEnds) {
  RankedLines lines(0);
  const auto shown = lines.take(std::string(200'000, 'x'));
  EXPECT_GT(shown.size(), 100'000u);
}

}  // namespace
}  // namespace drover::cli
