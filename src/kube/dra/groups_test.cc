#include "kube/dra/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace drover::kube::dra {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Matrix = std::vector<std::vector<int>>;

std::vector<Partition> groups_of(const Matrix& matrix, int most = 9) {
  const auto joined = [&](int a, int b) {
    return matrix[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  };
  return joined_groups(static_cast<int>(matrix.size()), joined, most);
}

TEST(Groups, AllBehindSwitchesAreOne) {
  const auto groups = groups_of({{0, 18, 18}, {18, 0, 18}, {18, 18, 0}});
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_THAT(groups[0], ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 1, 2), ElementsAre(0, 1, 2)));
}

TEST(Groups, OfTheCubeMeshAreItsQuadsAndThenThePairsAcross) {
  const auto groups = groups_of({{0, 1, 1, 2, 2, 0, 0, 0},
                                 {1, 0, 2, 1, 0, 2, 0, 0},
                                 {1, 2, 0, 2, 0, 0, 1, 0},
                                 {2, 1, 2, 0, 0, 0, 0, 1},
                                 {2, 0, 0, 0, 0, 1, 1, 2},
                                 {0, 2, 0, 0, 1, 0, 2, 1},
                                 {0, 0, 1, 0, 1, 2, 0, 2},
                                 {0, 0, 0, 1, 2, 1, 2, 0}});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0][0], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups[0][7], ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(groups[1][0], ElementsAre(0, 4));
  EXPECT_THAT(groups[1][7], ElementsAre(3, 7));
}

TEST(Groups, LeaveOutWhoIsAlone) {
  EXPECT_THAT(groups_of({{0, 0}, {0, 0}}), IsEmpty());
  EXPECT_THAT(groups_of({}), IsEmpty());
  // In a chain the strongest pair comes first.
  const auto chain = groups_of({{0, 1, 0}, {1, 0, 2}, {0, 2, 0}});
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_THAT(chain[0], ElementsAre(IsEmpty(), ElementsAre(1, 2), ElementsAre(1, 2)));
  EXPECT_THAT(chain[1], ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1), IsEmpty()));
}

RC_GTEST_PROP(GroupsProperty, AreJoinedAndTogetherHaveEveryPair, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(0, 9);
  Matrix matrix(size, std::vector<int>(size));
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b < a; ++b) matrix[a][b] = matrix[b][a] = *rc::gen::inRange(-1, 3);
  std::set<std::pair<int, int>> together;
  for (const auto& partition : groups_of(matrix, 64)) {
    RC_ASSERT(partition.size() == size);
    for (std::size_t device = 0; device < size; ++device)
      for (const int other : partition[device]) {
        // Whoever I am with is with me, and with nobody that I am not with.
        RC_ASSERT(partition[static_cast<std::size_t>(other)] == partition[device]);
        if (other == static_cast<int>(device)) continue;
        RC_ASSERT(matrix[device][static_cast<std::size_t>(other)] > 0);
        together.emplace(static_cast<int>(device), other);
      }
  }
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b < size; ++b)
      RC_ASSERT(together.contains({static_cast<int>(a), static_cast<int>(b)}) ==
                (a != b && matrix[a][b] > 0));
}

}  // namespace
}  // namespace drover::kube::dra
