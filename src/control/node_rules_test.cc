#include "control/node_rules.h"

#include <gtest/gtest.h>

namespace drover::control {
namespace {

using workload::ConstraintKind;
using workload::NodeRule;
using workload::NodeRuleKind;
using workload::PlacementConstraint;

const std::vector<MachineAttributes> kNodes = {{{"hostname", {"a1"}}, {"rack", {"r1"}}},
                                               {{"hostname", {"a2"}}, {"rack", {"r2"}}},
                                               {{"hostname", {"b1"}}}};

NodeRule rule_of(const PlacementConstraint& constraint, int set = 0) {
  return node_rules({constraint}, {&kNodes[0], &kNodes[1], &kNodes[2]}, set).at(0);
}

TEST(NodeRules, AreOneForEachConstraint) {
  using enum NodeRuleKind;
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kUnique, ""}), (NodeRule{"rack", kApart}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kMaxPer, "3"}, 2), (NodeRule{"rack", kApart, {}, 2}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kMaxPer, "0"}), (NodeRule{"rack", kOneOf}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kCluster, ""}), (NodeRule{"rack", kTogether}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kCluster, "r9"}), (NodeRule{"rack", kOneOf, {"r9"}}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kIs, "r1"}), (NodeRule{"rack", kOneOf, {"r1"}}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kGroupBy, "4"}), (NodeRule{"rack", kSpread, {}, 4}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kGroupBy, ""}), (NodeRule{"rack", kSpread}));
  EXPECT_EQ(rule_of({"hostname", ConstraintKind::kLike, "a.*"}),
            (NodeRule{"hostname", kOneOf, {"a1", "a2"}}));
  EXPECT_EQ(rule_of({"hostname", ConstraintKind::kLike, "c.*"}), (NodeRule{"hostname", kOneOf}));
  EXPECT_EQ(rule_of({"rack", ConstraintKind::kUnlike, ".*2"}), (NodeRule{"rack", kNoneOf, {"r2"}}));
}

}  // namespace
}  // namespace drover::control
