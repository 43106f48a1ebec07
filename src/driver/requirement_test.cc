#include "driver/requirement.h"

#include <gtest/gtest.h>

namespace drover::driver {
namespace {

const RequirementFacts kK80{.cuda = "9.2", .driver = "396.44", .arch = "3.7", .brand = "tesla"};
const RequirementFacts kOldTesla{.cuda = "11.4", .driver = "470.256.02", .arch = "7.0", .brand = "Tesla"};

bool met(std::string_view text, const RequirementFacts& facts) {
  const auto requirement = Requirement::parse(text);
  EXPECT_TRUE(requirement) << text;
  return requirement && requirement->met_by(facts);
}

TEST(Requirement, ComparesNumbersByEachOperator) {
  for (const auto* text :
       {"cuda>=9.2", "cuda<=9.2", "cuda=9.2", "cuda=9.2.0", "cuda<10", "cuda>9.1", "cuda!=9.1", "driver>=396",
        "driver<397", "driver!=396", "arch>=3.5", "arch=3.7", "CUDA>=9", ""})
    EXPECT_TRUE(met(text, kK80)) << text;
  for (const auto* text : {"cuda>=10.0", "cuda<9.2", "cuda>9.2", "cuda=9", "cuda!=9.2", "driver<=396",
                           "driver=396", "arch>3.7", "arch<3", "driver>=410"})
    EXPECT_FALSE(met(text, kK80)) << text;
}

TEST(Requirement, ComparesBrandsInAnyCase) {
  EXPECT_TRUE(met("brand=tesla", kOldTesla));
  EXPECT_TRUE(met("BRAND=TESLA", kK80));
  EXPECT_TRUE(met("brand!=geforce", kK80));
  EXPECT_FALSE(met("brand=geforce", kK80));
  EXPECT_FALSE(met("brand!=Tesla", kK80));
}

TEST(Requirement, ASpaceIsOrAndACommaIsAnd) {
  const auto* const image =
      "cuda>=12.2 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471";
  EXPECT_TRUE(met(image, kOldTesla));
  EXPECT_FALSE(met(image, kK80));
  auto other_branch = kOldTesla;
  other_branch.driver = "471.10";
  EXPECT_FALSE(met(image, other_branch));
  EXPECT_TRUE(met("  cuda>=12,brand=grid   ,cuda>=9,,arch<4, ", kK80)) << "empty parts do not count";
}

TEST(Requirement, WhatIsNotKnownIsTakenToBeMet) {
  EXPECT_TRUE(met("cuda>=99,driver=1,arch>9,brand=titan", {}));
  EXPECT_TRUE(met("cuda>=99", {.cuda = "a development version"}));
}

TEST(Requirement, WhatIsNotUnderstoodIsNamed) {
  for (const auto* text : {"cuda", "cuda>=", ">=9", "cuda==9", "cuda=>9", "cuda>=9 gpu=k80", "memory>=9",
                           "cuda>=9.x", "brand>tesla", "brand=", "cuda>=9;driver>=3", "cuda~9", "=", "!"}) {
    const auto requirement = Requirement::parse(text);
    ASSERT_FALSE(requirement) << text;
    EXPECT_EQ(requirement.error().kind, ErrorKind::kInvalid);
    EXPECT_NE(requirement.error().message.find("is not understood"), std::string::npos);
    EXPECT_FALSE(requirement.error().hint.empty());
  }
  EXPECT_FALSE(Requirement::parse(std::string(100'000, ' '))) << "too long";
}

}  // namespace
}  // namespace drover::driver
