#include "sim/cuda/heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace drover::sim::cuda {
namespace {

class HeapTest : public testing::Test {
 protected:
  Arena arena_;
  std::uint64_t charged_ = 0;
  std::uint64_t room_ = 64 << 20;
  Heap heap_{arena_,
             {[this](std::uint64_t bytes) {
                if (charged_ + bytes > room_) return false;
                charged_ += bytes;
                return true;
              },
              [this](std::uint64_t bytes) { charged_ -= bytes; }}};
};

TEST_F(HeapTest, SmallPiecesShareABlock) {
  std::set<std::uint64_t> addresses;
  for (int i = 0; i < 4096; ++i) addresses.insert(heap_.allocate(512));
  EXPECT_EQ(addresses.size(), 4096U);
  EXPECT_EQ(charged_, kBlock);
  EXPECT_NE(heap_.allocate(1), 0U);
  EXPECT_EQ(charged_, 2 * kBlock);
  for (const auto address : addresses) heap_.free(address);
  EXPECT_EQ(charged_, kBlock) << "the first is empty";
}

TEST_F(HeapTest, LargePiecesAreWholeBlocks) {
  const auto address = heap_.allocate((1 << 20) + 1);
  EXPECT_EQ(address % kBlock, 0U);
  EXPECT_EQ(charged_, kBlock);
  EXPECT_NE(heap_.allocate(kBlock + 1), 0U);
  EXPECT_EQ(charged_, 3 * kBlock);
  heap_.free(address);
  EXPECT_EQ(charged_, 2 * kBlock);
}

TEST_F(HeapTest, RefusedIsNothingTaken) {
  EXPECT_EQ(heap_.allocate(room_ + 1), 0U);
  EXPECT_EQ(heap_.allocate(UINT64_MAX), 0U);
  EXPECT_EQ(charged_, 0U);
}

TEST_F(HeapTest, MemoryIsReadAndWrittenAndBeginsAsZero) {
  for (int round = 0; round < 2; ++round) {
    const auto address = heap_.allocate(kBlock);
    auto* const bytes = reinterpret_cast<char*>(address);
    EXPECT_EQ(bytes[kBlock - 1], 0);
    std::memset(bytes, 7, kBlock);
    heap_.free(address);
  }
}

}  // namespace
}  // namespace drover::sim::cuda
