#include "gpu/variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover::gpu {
namespace {

using ::testing::HasSubstr;
using Plain = VersionNeed::Plain;

VersionNeed need(std::string_view text, Plain plain) {
  return VersionNeed::parse(text, plain).value();
}
bool allows(std::string_view text, Plain plain, std::string_view version) {
  return need(text, plain).allows(Version::parse(version).value());
}
bool narrower(std::string_view a, std::string_view b, Plain plain, std::string_view version) {
  return need(a, plain).narrower(need(b, plain), Version::parse(version).value());
}

Device card(std::string model, ComputeCapability capability) {
  Device device;
  device.model = std::move(model);
  device.compute_capability = capability;
  return device;
}

MachineFacts machine(const std::string& driver, const std::string& cuda, Device device, const char* cpu) {
  return {driver, cuda, {std::move(device)}, parse_cpu(cpu).value().features};
}
MachineFacts k80(const char* cpu = "broadwell") {
  return machine("396.44", "9.2", card("Tesla K80", {3, 7}), cpu);
}
MachineFacts m60(const char* cpu = "broadwell") {
  return machine("396.44", "9.2", card("Tesla M60", {5, 2}), cpu);
}

VariantNeeds variant(std::string name, std::vector<const char*> cpus = {}, const char* driver = "",
                     const char* capability = "", const char* cuda = "") {
  VariantNeeds needs{.name = std::move(name)};
  for (const auto* cpu : cpus) needs.cpus.push_back(parse_cpu(cpu).value());
  needs.driver = need(driver, Plain::kBranch);
  needs.cuda = need(cuda, Plain::kAtLeast);
  needs.compute_capability = need(capability, Plain::kBinary);
  return needs;
}

std::string chosen(const std::vector<VariantNeeds>& variants, const MachineFacts& facts) {
  const auto choice = choose_variant(variants, facts);
  return choice.chosen ? variants[*choice.chosen].name : "";
}

TEST(VersionNeed, PlainVersionsAreAlternatives) {
  EXPECT_TRUE(allows("390", Plain::kBranch, "390.30"));
  EXPECT_FALSE(allows("390", Plain::kBranch, "396.44"));
  EXPECT_TRUE(allows("390, 396", Plain::kBranch, "396.44"));
  EXPECT_FALSE(allows("390 396", Plain::kBranch, "391.1"));
  EXPECT_TRUE(allows("535.54", Plain::kBranch, "535.54.03"));
  EXPECT_FALSE(allows("535.54", Plain::kBranch, "535.104.05"));
  EXPECT_TRUE(allows("9.2", Plain::kAtLeast, "10.1"));
  EXPECT_FALSE(allows("9.2", Plain::kAtLeast, "9.1"));
  EXPECT_TRUE(allows("5.2", Plain::kBinary, "5.3"));
  for (const auto* other : {"5.0", "6.0", "3.7"}) EXPECT_FALSE(allows("5.2", Plain::kBinary, other)) << other;
  EXPECT_TRUE(allows("3.5,5.2,7.0", Plain::kBinary, "7.5"));
  EXPECT_TRUE(allows("", Plain::kBinary, "1.0"));
}

TEST(VersionNeed, ConditionsHoldTogether) {
  EXPECT_TRUE(allows(">=390,<397", Plain::kBranch, "396.44"));
  EXPECT_FALSE(allows(">=390,<396", Plain::kBranch, "396.44"));
  EXPECT_TRUE(allows(">= 390 < 397", Plain::kBranch, "396.44"));
  EXPECT_FALSE(allows(">=390,!=396.44", Plain::kBranch, "396.44"));
  EXPECT_TRUE(allows("<=9.2", Plain::kAtLeast, "9.2"));
  EXPECT_FALSE(allows("<9.2", Plain::kAtLeast, "9.2"));
  EXPECT_FALSE(allows(">9.2", Plain::kAtLeast, "9.2"));
  EXPECT_FALSE(allows(">9.2,>=9.2", Plain::kAtLeast, "9.2"));
  EXPECT_TRUE(allows("=9.2", Plain::kAtLeast, "9.2"));
  EXPECT_FALSE(allows("=9.2", Plain::kAtLeast, "9.3"));
  EXPECT_TRUE(allows("5.2,>=7.0,<8.0", Plain::kBinary, "7.5")) << "the plain one, or all conditions";
  EXPECT_FALSE(allows("5.2,>=7.0,<8.0", Plain::kBinary, "6.1"));
  for (const auto* text : {">=", "abc", "390.x", "=>3", "==3", "<>3", ">=390;<397", "3..5", "!3"})
    EXPECT_FALSE(VersionNeed::parse(text, Plain::kBranch)) << text;
  EXPECT_FALSE(VersionNeed::parse(std::string(2000, '1'), Plain::kBranch));
}

TEST(VersionNeed, WhatAllowsLessIsNarrower) {
  EXPECT_TRUE(narrower("396", "", Plain::kBranch, "396.44"));
  EXPECT_TRUE(narrower("396", ">=390", Plain::kBranch, "396.44"));
  EXPECT_TRUE(narrower(">=396", ">=390", Plain::kBranch, "396.44"));
  EXPECT_TRUE(narrower(">=390,<397", ">=390", Plain::kBranch, "396.44"));
  EXPECT_TRUE(narrower("396.44", "396", Plain::kBranch, "396.44"));
  EXPECT_TRUE(narrower(">=396,<397", ">=396,<398", Plain::kBranch, "396.44"));
  EXPECT_FALSE(narrower("396", "396", Plain::kBranch, "396.44"));
  EXPECT_FALSE(narrower("", "", Plain::kBranch, "396.44"));
}

TEST(Variant, EachMachineGetsTheImageThatWorks) {
  const std::vector<VariantNeeds> images = {
      variant("driver-390", {}, "390"), variant("driver-396", {}, "396"),
      variant("broadwell", {"broadwell"}, "396"), variant("skylake-avx512", {"skylake-avx512"}, "396"),
      variant("maxwell", {}, "396", "5.2")};
  EXPECT_EQ(chosen(images, k80()), "broadwell");
  EXPECT_EQ(chosen(images, k80("haswell")), "driver-396");
  EXPECT_EQ(chosen(images, k80("skylake-avx512")), "skylake-avx512");
  EXPECT_EQ(chosen(images, k80("znver3")), "broadwell") << "it has all that broadwell has";
  EXPECT_EQ(chosen(images, m60()), "maxwell");
  EXPECT_EQ(chosen(images, machine("390.30", "9.1", card("Tesla K40m", {3, 5}), "broadwell")), "driver-390");
  EXPECT_EQ(chosen(images, machine("410.48", "10.0", card("Tesla M60", {5, 2}), "skylake-avx512")), "");
}

TEST(Variant, ACpuWithoutAvx512NeverGetsTheImageForIt) {
  const std::vector<VariantNeeds> images = {variant("skylake-avx512", {"skylake-avx512"}),
                                            variant("v4", {"x86-64-v4"}), variant("avx512f", {"avx512f"}),
                                            variant("generic")};
  for (const auto* cpu : {"x86-64", "haswell", "broadwell", "skylake", "znver1", "znver3", "knl", "power8"}) {
    const auto choice = choose_variant(images, k80(cpu));
    EXPECT_FALSE(choice.misfits[0].empty()) << cpu;
    EXPECT_FALSE(choice.misfits[1].empty()) << cpu;
  }
  EXPECT_EQ(chosen(images, k80("skylake")), "generic");
  EXPECT_EQ(chosen(images, k80("knl")), "avx512f");
  EXPECT_EQ(chosen(images, k80("cascadelake")), "skylake-avx512");
}

TEST(Variant, TheCpuLevelComesFirstThenTheMicroArchitecture) {
  const std::vector<VariantNeeds> images = {variant("any"),
                                            variant("v2", {"x86-64-v2"}),
                                            variant("v3", {"x86-64-v3"}),
                                            variant("haswell", {"haswell"}),
                                            variant("broadwell", {"broadwell"}),
                                            variant("v4", {"x86-64-v4"}),
                                            variant("skylake", {"skylake"})};
  EXPECT_EQ(chosen(images, k80("nehalem")), "v2");
  EXPECT_EQ(chosen(images, k80("x86-64-v3")), "v3");
  EXPECT_EQ(chosen(images, k80("haswell")), "haswell");
  EXPECT_EQ(chosen(images, k80("broadwell")), "broadwell");
  EXPECT_EQ(chosen(images, k80("cascadelake")), "v4") << "it uses more of the CPU than skylake";
  EXPECT_EQ(chosen(images, k80("core2")), "any");
  EXPECT_EQ(chosen({variant("either", {"znver2", "haswell"}), variant("v3", {"x86-64-v3"})}, k80("haswell")),
            "either");
}

TEST(Variant, OfEqualsTheFirstIsTaken) {
  EXPECT_EQ(chosen({variant("a", {"broadwell"}), variant("b", {"broadwell"})}, k80()), "a");
  EXPECT_EQ(chosen({variant("b"), variant("a")}, k80()), "b");
}

TEST(Variant, EveryMisfitHasItsReason) {
  const auto why = [](const VariantNeeds& needs, const MachineFacts& facts) {
    return misfit(needs, facts).value_or("");
  };
  EXPECT_THAT(why(variant("x", {"skylake-avx512"}), k80()), HasSubstr("this one (broadwell) has no avx512"));
  EXPECT_EQ(why(variant("x", {}, "390"), k80()), "it needs driver 390, and this machine has 396.44");
  EXPECT_EQ(why(variant("x", {}, "", "", "10.0"), k80()), "it needs CUDA 10.0, and its driver has 9.2");
  EXPECT_EQ(why(variant("x", {}, "", "5.2"), k80()),
            "it needs compute capability 5.2, and GPU 0 (Tesla K80) has 3.7");
  auto bare = k80();
  bare.devices.clear();
  EXPECT_THAT(why(variant("x", {}, "", "3.7"), bare), HasSubstr("there is no GPU for it"));
  bare.driver = bare.cuda = "";
  EXPECT_THAT(why(variant("x", {}, ">=300"), bare), HasSubstr("this machine has none"));
  auto mixed = k80();
  mixed.devices.push_back(card("Tesla M60", {5, 2}));
  EXPECT_NE(why(variant("x", {}, "", "5.2"), mixed), "") << "every GPU must fit";
  EXPECT_EQ(why(variant("x", {}, "", "3.7 5.2"), mixed), "");
  EXPECT_EQ(describe(variant("x", {"broadwell"}, "396", "5.2")),
            "compute capability 5.2, driver 396, CPU broadwell");
  EXPECT_EQ(describe(variant("x")), "any machine");
}

VariantNeeds random_variant() {
  const auto pick = [](std::vector<const char*> from) { return *rc::gen::elementOf(from); };
  VariantNeeds needs;
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
    needs.cpus.push_back(parse_cpu(pick({"x86-64", "x86-64-v3", "x86-64-v4", "haswell", "broadwell",
                                         "skylake-avx512", "znver2", "avx2"}))
                             .value());
  needs.driver = need(pick({"", "", "390", "396", ">=390", ">=396,<410", "!=396.44"}), Plain::kBranch);
  needs.cuda = need(pick({"", "", "9.1", "9.2", "<10", "10.0"}), Plain::kAtLeast);
  needs.compute_capability = need(pick({"", "", "3.5", "3.7", "5.2", ">=3.7", "3.7 5.2"}), Plain::kBinary);
  return needs;
}
std::vector<VariantNeeds> random_variants() {
  std::vector<VariantNeeds> variants;
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) variants.push_back(random_variant());
  for (std::size_t i = 0; i < variants.size(); ++i) variants[i].name = std::to_string(i);
  return variants;
}
MachineFacts random_machine() {
  const auto pick = [](std::vector<const char*> from) { return *rc::gen::elementOf(from); };
  auto facts = k80(pick({"x86-64", "haswell", "broadwell", "skylake", "skylake-avx512", "znver2"}));
  facts.driver = pick({"390.30", "396.44", "410.48"});
  facts.cuda = pick({"9.1", "9.2", "10.0"});
  facts.devices.clear();
  const std::vector<ComputeCapability> known{{3, 5}, {3, 7}, {5, 2}};
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
    facts.devices.push_back(card("GPU", *rc::gen::elementOf(known)));
  return facts;
}

RC_GTEST_PROP(VariantProperty, WhatIsChosenFitsAndNothingThatFitsSaysMore, ()) {
  const auto variants = random_variants();
  const auto facts = random_machine();
  const auto choice = choose_variant(variants, facts);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    RC_ASSERT(choice.misfits[i].empty() == !misfit(variants[i], facts));
    if (choice.misfits[i].empty()) {
      RC_ASSERT(choice.chosen.has_value());
      RC_ASSERT(!more_specific(variants[i], variants[*choice.chosen], facts));
    }
  }
  if (choice.chosen) RC_ASSERT(!misfit(variants[*choice.chosen], facts));
}

RC_GTEST_PROP(VariantProperty, AVariantThatDoesNotFitChangesNothing, ()) {
  auto variants = random_variants();
  const auto facts = random_machine();
  const auto before = chosen(variants, facts);
  auto other = random_variant();
  other.name = "other";
  RC_PRE(misfit(other, facts).has_value());
  const auto place = *rc::gen::inRange<std::size_t>(0, variants.size() + 1);
  variants.insert(variants.begin() + static_cast<std::ptrdiff_t>(place), other);
  RC_ASSERT(chosen(variants, facts) == before);
}

RC_GTEST_PROP(VariantProperty, WhatSaysMoreIsAnOrder, ()) {
  const auto facts = random_machine();
  std::vector<VariantNeeds> fitting;
  for (int i = 0; i < 12; ++i)
    if (auto made = random_variant(); !misfit(made, facts)) fitting.push_back(std::move(made));
  for (const auto& a : fitting)
    for (const auto& b : fitting) {
      RC_ASSERT(!(more_specific(a, b, facts) && more_specific(b, a, facts)));
      for (const auto& c : fitting)
        if (more_specific(a, b, facts) && more_specific(b, c, facts)) RC_ASSERT(more_specific(a, c, facts));
    }
}

}  // namespace
}  // namespace drover::gpu
