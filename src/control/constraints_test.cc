#include "control/constraints.h"

#include <gtest/gtest.h>

namespace drover::control {
namespace {

using workload::ConstraintKind;

const MachineAttributes kHere = {{"hostname", {"gpu1"}}, {"rack", {"r7"}}, {"gpu", {"A100", "T4"}}};
const MachineAttributes kThere = {{"hostname", {"gpu2"}}, {"rack", {"r8"}}};

bool allows(const std::string& attribute, ConstraintKind kind, const std::string& value,
            const std::vector<MachineAttributes>& others = {}) {
  return !refusal({attribute, kind, value}, kHere, others);
}

TEST(Constraints, UniqueAllowsOnePerValue) {
  EXPECT_TRUE(allows("hostname", ConstraintKind::kUnique, ""));
  EXPECT_TRUE(allows("hostname", ConstraintKind::kUnique, "", {kThere}));
  EXPECT_FALSE(allows("hostname", ConstraintKind::kUnique, "", {kThere, kHere}));
  EXPECT_EQ(refusal({"hostname", ConstraintKind::kUnique, ""}, kHere, {kHere}),
            "no two of its instances may have the same hostname, and one is on 'gpu1'");
}

TEST(Constraints, ClusterKeepsAllTogether) {
  EXPECT_TRUE(allows("rack", ConstraintKind::kCluster, "r7"));
  EXPECT_FALSE(allows("rack", ConstraintKind::kCluster, "r8"));
  EXPECT_TRUE(allows("rack", ConstraintKind::kCluster, ""));
  EXPECT_TRUE(allows("rack", ConstraintKind::kCluster, "", {kHere}));
  EXPECT_FALSE(allows("rack", ConstraintKind::kCluster, "", {kThere}));
}

TEST(Constraints, GroupBySpreadsEvenly) {
  EXPECT_TRUE(allows("rack", ConstraintKind::kGroupBy, ""));
  EXPECT_TRUE(allows("rack", ConstraintKind::kGroupBy, "", {kHere, kThere}));
  EXPECT_FALSE(allows("rack", ConstraintKind::kGroupBy, "", {kHere, kHere, kThere}));
  EXPECT_TRUE(allows("rack", ConstraintKind::kGroupBy, "", {kHere})) << "no other value is known";
  EXPECT_FALSE(allows("rack", ConstraintKind::kGroupBy, "2", {kHere})) << "another value is said to be";
}

TEST(Constraints, LikeUnlikeAndIsJudgeTheValueWhole) {
  EXPECT_TRUE(allows("rack", ConstraintKind::kLike, "r[78]"));
  EXPECT_FALSE(allows("rack", ConstraintKind::kLike, "r"));
  EXPECT_FALSE(allows("rack", ConstraintKind::kUnlike, "r."));
  EXPECT_TRUE(allows("rack", ConstraintKind::kUnlike, "r"));
  EXPECT_TRUE(allows("rack", ConstraintKind::kIs, "r7"));
  EXPECT_FALSE(allows("rack", ConstraintKind::kIs, "r."));
}

TEST(Constraints, OneOfSeveralValuesIsEnough) {
  EXPECT_TRUE(allows("gpu", ConstraintKind::kLike, "T."));
  EXPECT_TRUE(allows("gpu", ConstraintKind::kIs, "A100"));
  EXPECT_FALSE(allows("gpu", ConstraintKind::kUnlike, "T4"));
  EXPECT_TRUE(allows("gpu", ConstraintKind::kCluster, "T4"));
}

TEST(Constraints, MaxPerCounts) {
  EXPECT_TRUE(allows("rack", ConstraintKind::kMaxPer, "2", {kHere, kThere, kThere}));
  EXPECT_FALSE(allows("rack", ConstraintKind::kMaxPer, "2", {kHere, kHere}));
}

TEST(Constraints, WithoutTheAttributeOnlyUnlikeHolds) {
  for (const auto kind : {ConstraintKind::kUnique, ConstraintKind::kCluster, ConstraintKind::kGroupBy,
                          ConstraintKind::kLike, ConstraintKind::kMaxPer, ConstraintKind::kIs})
    EXPECT_FALSE(allows("zone", kind, "1"));
  EXPECT_TRUE(allows("zone", ConstraintKind::kUnlike, "1"));
}

TEST(Constraints, ExpressionsAreChecked) {
  const auto check = [](std::string text, ConstraintKind kind = ConstraintKind::kLike) {
    workload::Service service;
    service.constraints = {{"rack", kind, std::move(text)}};
    return check_constraints(service);
  };
  EXPECT_TRUE(check("r[0-9]+"));
  EXPECT_TRUE(check("(?i)r", ConstraintKind::kUnlike));
  EXPECT_FALSE(check("r["));
  EXPECT_FALSE(check("r[", ConstraintKind::kUnlike));
  EXPECT_FALSE(check("(?=r)"));
  EXPECT_TRUE(check("r[", ConstraintKind::kIs));
  EXPECT_FALSE(check(std::string(2000, 'a')));
  EXPECT_FALSE(check("((((a{1000}){1000}){1000}){1000}"));
}

}  // namespace
}  // namespace drover::control
