#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace drover::metrics {
namespace {

constexpr Metric kHeat{"heat", Type::kGauge, "How warm it is"};
constexpr Metric kSteps{"steps_total", Type::kCounter, "Steps"};

std::string line_of(const std::string& label) {
  const auto text = write({{&kHeat, {{{{"a", label}}, 1}}}});
  return text.substr(text.find("heat{"));
}

TEST(Exposition, WritesOneBlockForEachName) {
  EXPECT_EQ(write({{&kHeat, {{{{"gpu", "0"}, {"pod", ""}, {"UUID", "GPU-1"}}, 36.5}, {{}, 0}}},
                   {&kSteps, {{{{"pod", ""}}, 1e20}}}}),
            "# HELP heat How warm it is\n# TYPE heat gauge\n"
            "heat{gpu=\"0\",UUID=\"GPU-1\"} 36.5\nheat 0\n"
            "# HELP steps_total Steps\n# TYPE steps_total counter\nsteps_total 1e+20\n");
}

TEST(Exposition, LeavesOutWhatHasNoValue) {
  EXPECT_EQ(write({{&kHeat, {}}}), "");
  EXPECT_EQ(write({}), "");
}

TEST(Exposition, EscapesLabels) {
  EXPECT_EQ(line_of("say \"hi\"\\\nbye\t"), "heat{a=\"say \\\"hi\\\"\\\\\\nbye\t\"} 1\n");
  EXPECT_EQ(line_of("größer"), "heat{a=\"größer\"} 1\n");
  EXPECT_EQ(line_of("\xff\"x"), "heat{a=\"\xEF\xBF\xBD\\\"x\"} 1\n");
}

TEST(Exposition, WritesNumbersExactly) {
  const auto value = [](double number) {
    const auto text = write({{&kHeat, {{{}, number}}}});
    return text.substr(text.rfind(' ') + 1);
  };
  EXPECT_EQ(value(0.1), "0.1\n");
  EXPECT_EQ(value(42949672960.0), "42949672960\n");
  EXPECT_EQ(value(-3), "-3\n");
  EXPECT_EQ(value(std::numeric_limits<double>::quiet_NaN()), "NaN\n");
  EXPECT_EQ(value(std::numeric_limits<double>::infinity()), "+Inf\n");
  EXPECT_EQ(value(-std::numeric_limits<double>::infinity()), "-Inf\n");
}

}  // namespace
}  // namespace drover::metrics
