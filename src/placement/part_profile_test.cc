#include "placement/part_profile.h"

#include <gtest/gtest.h>

#include "placement/testing/clusters.h"
#include "placement/testing/parts.h"

namespace drover::placement {
namespace {

using testing::with_mig;

constexpr std::uint64_t kGib = 1ULL << 30;

class PartProfile : public ::testing::Test {
 protected:
  std::string of(const Share& share) {
    Request request;
    request.gpus.push_back({1, filter});
    request.share = share;
    const auto profile = profile_with_share(node, request);
    return profile ? *profile : profile.error().message;
  }

  Node node = with_mig(testing::node("n", {.count = 3}), {1, 2});
  DeviceFilter filter;
};

TEST_F(PartProfile, IsTheSmallestThatHasSoMuchMemory) {
  EXPECT_EQ(of({1000, 1}), "1g.5gb") << "not 1g.5gb.me, whose name comes later";
  EXPECT_EQ(of({1000, 5 * kGib}), "1g.5gb");
  EXPECT_EQ(of({1000, 5 * kGib + 1}), "2g.10gb");
  EXPECT_EQ(of({1000, 20 * kGib}), "3g.20gb") << "which has fewer slices than 4g.20gb";
  EXPECT_EQ(of({1000, 21 * kGib}), "7g.40gb");
  EXPECT_EQ(of({1000, 41 * kGib}), "no profile of the GPUs here has 41 GiB: the largest is 7g.40gb");
}

TEST_F(PartProfile, OfAPartOfAGpuHasMemoryAndSlices) {
  EXPECT_EQ(of({125, 0}), "1g.5gb");
  EXPECT_EQ(of({143, 0}), "2g.10gb") << "a seventh is less";
  EXPECT_EQ(of({250, 0}), "2g.10gb");
  EXPECT_EQ(of({428, 0}), "3g.20gb");
  EXPECT_EQ(of({500, 0}), "4g.20gb") << "three of seven slices are no half";
  EXPECT_EQ(of({600, 0}), "7g.40gb");
}

TEST_F(PartProfile, IsOfGpusInMigModeThatTheFiltersAllow) {
  filter.models = {"T4"};
  EXPECT_EQ(of({500, 0}), "no GPU here is in MIG mode that is what is asked for");
  node = testing::node("n", {.count = 3});
  EXPECT_EQ(of({500, 0}), "no GPU here is in MIG mode");
}

}  // namespace
}  // namespace drover::placement
