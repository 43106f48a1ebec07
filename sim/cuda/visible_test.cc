#include "sim/cuda/visible.h"

#include <gmock/gmock.h>

namespace drover::sim::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kUuids{"GPU-11112222", "GPU-11113333", "GPU-4444"};

TEST(Visible, WithoutAValueAllAre) {
  EXPECT_THAT(visible_devices(kUuids, std::nullopt), ElementsAre(0, 1, 2));
  EXPECT_THAT(visible_devices(kUuids, ""), IsEmpty());
}

TEST(Visible, NamesAreInTheOrderOfTheValue) {
  EXPECT_THAT(visible_devices(kUuids, "2,0"), ElementsAre(2, 0));
  EXPECT_THAT(visible_devices(kUuids, " GPU-4 , GPU-11113333"), ElementsAre(2, 1));
}

TEST(Visible, TheFirstBadNameEndsTheList) {
  EXPECT_THAT(visible_devices(kUuids, "1,-1,0"), ElementsAre(1));
  EXPECT_THAT(visible_devices(kUuids, "1,3,0"), ElementsAre(1));
  EXPECT_THAT(visible_devices(kUuids, "GPU-1111,0"), IsEmpty()) << "of two";
  EXPECT_THAT(visible_devices(kUuids, "0x1"), IsEmpty());
  EXPECT_THAT(visible_devices(kUuids, "1,,0"), ElementsAre(1));
}

TEST(Visible, TwiceIsAMistake) {
  EXPECT_THAT(visible_devices(kUuids, "0,1,GPU-11112222"), IsEmpty());
}

}  // namespace
}  // namespace drover::sim::cuda
