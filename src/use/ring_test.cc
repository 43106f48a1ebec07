#include "use/ring.h"

#include <gtest/gtest.h>

namespace drover::use {
namespace {

Slot slot_at(std::uint32_t time, double gpu) {
  Slot slot{time, {}, {}};
  slot.mean[kGpuPercent] = slot.most[kGpuPercent] = gpu;
  return slot;
}

TEST(RingTest, ValuesComeBackWithThreeDigits) {
  for (const double value : {0.0, 0.001, 0.5, 1.0, 12.3, 99.97, 100.0, 1.5e9, 141e9, 4e15}) {
    Slot slot{1'700'000'000, {}, {}};
    slot.mean[kGpuMemory] = slot.most[kGpuMemory] = value;
    const auto read = decode_slot(encode(slot));
    ASSERT_TRUE(read);
    EXPECT_NEAR(*read->mean[kGpuMemory], value, value / 1000);
    EXPECT_FALSE(read->mean[kCpus]);
    EXPECT_EQ(read->time, slot.time);
  }
}

TEST(RingTest, ValuesOutOfRangeStayWithinIt) {
  Slot slot{60, {}, {}};
  slot.mean[kCpus] = -1;
  slot.mean[kMemory] = 1e300;
  const auto read = decode_slot(encode(slot));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->mean[kCpus], 0);
  EXPECT_GT(*read->mean[kMemory], 4e15);
}

TEST(RingTest, ATornSlotIsNone) {
  const auto before = encode(slot_at(600, 20)), after = encode(slot_at(900, 80));
  for (std::size_t cut = 1; cut < kSlotBytes; ++cut) {
    const auto torn = after.substr(0, cut) + before.substr(cut);
    const auto read = decode_slot(torn);
    if (torn != before && torn != after) EXPECT_FALSE(read) << cut;
  }
  EXPECT_FALSE(decode_slot(std::string(kSlotBytes, '\0')));
  EXPECT_FALSE(decode_slot("short"));
}

TEST(RingTest, SlotsOfOtherTimesAndPlacesAreLeftOut) {
  std::string file(kFileBytes, '\0');
  const auto put = [&](const Slot& slot, std::size_t at) { file.replace(at, kSlotBytes, encode(slot)); };
  const auto& seconds = kResolutions[0];
  put(slot_at(1000, 1), place_of(seconds, 1000));
  put(slot_at(1001, 2), place_of(seconds, 1001));
  put(slot_at(1400, 3), place_of(seconds, 1400));
  put(slot_at(1002, 4), place_of(seconds, 1003));  // where it does not belong
  const auto found = slots_in(file, seconds, 1001, 1500);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].time, 1001U);
  EXPECT_EQ(found[1].time, 1400U);
  EXPECT_TRUE(slots_in(file.substr(0, 700), seconds, 0, UINT32_MAX).empty());
}

TEST(RingTest, FoldingHasTheMeanOfWhatIsKnownAndTheMost) {
  std::vector<Slot> slots = {slot_at(10, 20), slot_at(11, 60), Slot{12, {}, {}}};
  const auto folded = fold(slots, 10);
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->time, 10U);
  EXPECT_EQ(folded->mean[kGpuPercent], 40);
  EXPECT_EQ(folded->most[kGpuPercent], 60);
  EXPECT_FALSE(folded->mean[kMemory]);
  EXPECT_FALSE(fold({}, 10));
}

TEST(RingTest, CountersThatBeginAnewAreAddedUp) {
  Totals totals;
  EXPECT_EQ(count_on(totals, {.cpu_micros = 100, .disk_read = 7}).cpu_micros, 100U);
  EXPECT_EQ(count_on(totals, {.cpu_micros = 150}).cpu_micros, 50U);
  EXPECT_EQ(count_on(totals, {.cpu_micros = 20}).cpu_micros, 20U);
  EXPECT_EQ(totals.sum.cpu_micros, 170U);
  EXPECT_EQ(totals.sum.disk_read, 7U);
  EXPECT_EQ(totals.sum.network_sent, kUncounted);
}

TEST(RingTest, OfTwoTotalsTheNewerOneThatIsWholeCounts) {
  std::string file(kFileBytes, '\0');
  EXPECT_FALSE(totals_in(file));
  NumberedTotals first{1, {}}, second{2, {}};
  first.totals.seconds = 10;
  second.totals.seconds = 20;
  file.replace(kTotalsAt[1], encode(first).size(), encode(first));
  file.replace(kTotalsAt[0], encode(second).size(), encode(second));
  EXPECT_EQ(totals_in(file)->totals.seconds, 20);
  file[kTotalsAt[0] + 9] ^= 1;
  EXPECT_EQ(totals_in(file)->totals.seconds, 10);
}

TEST(RingTest, UseHasOnlyWhatWasMeasured) {
  Totals totals;
  totals.seconds = 100;
  totals.gpus = 2;
  totals.figures[kGpuPercent].add(20, 50);
  totals.figures[kGpuPercent].add(40, 50);
  const auto use = use_of(totals);
  EXPECT_EQ(use.gpu_percent_mean, 30);
  EXPECT_EQ(use.gpu_percent_max, 40);
  EXPECT_EQ(use.gpu_seconds_used, 60);
  EXPECT_FALSE(use.cpu_seconds);
  EXPECT_FALSE(use.memory_bytes_max);
}

}  // namespace
}  // namespace drover::use
