#include "base/in_parallel.h"

#include <gtest/gtest.h>

#include <barrier>
#include <numeric>

namespace drover {
namespace {

TEST(InParallel, EachIsDoneOnce) {
  for (const std::size_t threads : {0, 1, 3, 100}) {
    std::vector<int> items(50);
    in_parallel(items, threads, [](int& item) { ++item; });
    EXPECT_EQ(std::accumulate(items.begin(), items.end(), 0), 50);
    EXPECT_EQ(std::ranges::max(items), 1);
  }
  std::vector<int> none;
  in_parallel(none, 4, [](int&) { FAIL(); });
}

TEST(InParallel, SeveralAtOnce) {
  std::vector<int> items(4);
  std::barrier all(4);
  in_parallel(items, 4, [&](int&) { all.arrive_and_wait(); });  // would not end one after the other
}

}  // namespace
}  // namespace drover
