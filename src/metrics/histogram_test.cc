#include "metrics/histogram.h"

#include <gtest/gtest.h>

namespace drover::metrics {
namespace {

TEST(Histogram, IsWrittenAsPrometheusReadsIt) {
  constexpr Metric kWait{"wait_seconds", Type::kHistogram, "How long it took"};
  Histogram histogram({0.01, 0.5});
  for (const auto value : {0.25, 0.01, 0.5, 7.0}) histogram.observe(value);
  EXPECT_EQ(write({{&kWait, histogram.samples()}}),
            "# HELP wait_seconds How long it took\n# TYPE wait_seconds histogram\n"
            "wait_seconds_bucket{le=\"0.01\"} 1\nwait_seconds_bucket{le=\"0.5\"} 3\n"
            "wait_seconds_bucket{le=\"+Inf\"} 4\nwait_seconds_sum 7.76\nwait_seconds_count 4\n");
}

}  // namespace
}  // namespace drover::metrics
