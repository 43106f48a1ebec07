#include "engine/image_fits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "placement/testing/clusters.h"

namespace drover::engine {
namespace {

using gpu::ComputeCapability;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Plain = gpu::VersionNeed::Plain;
using Lists = std::map<std::string, std::vector<ImageVariant>>;

constexpr std::array kKnown = {ComputeCapability{3, 7}, ComputeCapability{5, 2}, ComputeCapability{7, 0},
                               ComputeCapability{8, 0}};

ImageVariant variant(const std::string& name, const std::string& capability, const std::string& driver = "") {
  ImageVariant variant;
  variant.reference = variant.needs.name = name;
  variant.needs.compute_capability = gpu::VersionNeed::parse(capability, Plain::kBinary).value();
  variant.needs.driver = gpu::VersionNeed::parse(driver, Plain::kBranch).value();
  return variant;
}

placement::Node machine_with(const std::vector<ComputeCapability>& capabilities) {
  auto node = placement::testing::node("here", {.count = static_cast<int>(capabilities.size())});
  node.inventory.driver_version = "396.44";
  for (std::size_t i = 0; i < capabilities.size(); ++i)
    node.inventory.devices[i].compute_capability = capabilities[i];
  return node;
}

VariantLister from(const Lists& lists) {
  return [&lists](const std::string& name) -> Result<std::vector<ImageVariant>> {
    const auto found = lists.find(name);
    return found == lists.end() ? std::vector<ImageVariant>() : found->second;
  };
}

std::optional<control::ImageFit> fit(const placement::Node& node, const Lists& lists) {
  return fit_of("tool", variant_facts(node), from(lists));
}

/// What image::Store::prepare does with the choice of container::variant_chooser.
bool starts(const placement::Node& node, const std::vector<placement::Grant>& gpus, const Lists& lists) {
  auto facts = facts_of(node);
  std::erase_if(facts.devices, [&](const gpu::Device& device) {
    return std::ranges::find(gpus, device.uuid, &placement::Grant::uuid) == gpus.end();
  });
  std::string image = "tool";
  for (int level = 0; lists.contains(image); ++level) {
    if (level == image::kMostVariantLevels) return false;
    const auto choice = gpu::choose_variant(needs_of(lists.at(image)), facts);
    if (!choice.chosen) return false;
    image = lists.at(image)[*choice.chosen].reference;
  }
  return true;
}

TEST(ImageFits, NothingIsAskedWhereEverythingWorks) {
  const auto node = machine_with({kKnown[0], kKnown[1]});
  EXPECT_FALSE(fit(node, {}));
  EXPECT_FALSE(fit(node, {{"tool", {variant("special", "5.2"), variant("generic", "")}}}));
}

TEST(ImageFits, GpusOfOneVariantGoTogether) {
  const auto found = fit(machine_with({kKnown[0], kKnown[1], kKnown[0]}),
                         {{"tool", {variant("kepler", "3.7"), variant("maxwell", "5.2")}}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sets, (std::vector<std::vector<ComputeCapability>>{{kKnown[0]}, {kKnown[1]}}));
  EXPECT_THAT(found->with_gpus, HasSubstr("kepler: it needs compute capability 3.7, and GPU 1"));
  EXPECT_THAT(found->with_gpus, HasSubstr("maxwell: it needs compute capability 5.2, and GPU 0"));
  EXPECT_THAT(found->without_gpus, HasSubstr("there is no GPU for it"));
}

TEST(ImageFits, AMachineThatNoneFitsHasAReasonForEach) {
  const auto found =
      fit(machine_with({kKnown[0]}), {{"tool", {variant("old", "", "390"), variant("new", "8.0")}}});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sets, IsEmpty());
  EXPECT_THAT(found->with_gpus, HasSubstr("old: it needs driver 390, and this machine has 396.44; new: "));
}

TEST(ImageFits, WhatAVariantsOwnVariantsNeedCounts) {
  const auto found = fit(machine_with({kKnown[0], kKnown[1]}),
                         {{"tool", {variant("inner", "")}}, {"inner", {variant("maxwell", "5.2")}}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sets, (std::vector<std::vector<ComputeCapability>>{{kKnown[1]}}));
}

/// Random images on random machines: what placement gives is what starts, and what could start is given.
TEST(ImageFits, PlacedIsWhatStarts) {
  std::mt19937 random(20);  // NOLINT: the same each time
  const auto below = [&](std::size_t count) { return random() % count; };
  const std::array<std::string, 9> needs = {"",    "3.7",      "5.2",      "7.0",      "8.0",
                                            ">=5", "3.7, 7.0", "5.2, 8.0", ">=3,!=5.2"};
  int placed = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<ComputeCapability> capabilities;
    for (std::size_t i = 1 + below(5); i > 0; --i) capabilities.push_back(kKnown[below(kKnown.size())]);
    const auto node = machine_with(capabilities);
    const bool nested = below(4) == 0;
    Lists lists;
    const auto list = [&](const std::string& name, const std::string& inner) {
      for (std::size_t i = 1 + below(3); i > 0; --i)
        lists[name].push_back(variant(nested && below(2) == 0 ? inner : name + "-image",
                                      needs[below(needs.size())], below(8) == 0 ? "390" : ""));
    };
    list("tool", "inner");
    list("inner", "innermost");
    placement::Cluster cluster;
    cluster.set_node(node);
    workload::Task task;
    task.image = "tool";
    task.resources = placement::testing::gpus(static_cast<int>(1 + below(3)));
    control::ImageFits fits;
    const auto own = fit(node, lists);
    if (own) fits.insert_or_assign({0, "tool"}, *own);
    auto request = task.resources;
    control::narrow(request, task, fits);
    const bool allowed = !own || !control::refusal(*own, task);
    const auto answer = cluster.place(request);
    const auto* decision = allowed ? std::get_if<placement::Decision>(&answer) : nullptr;
    if (decision != nullptr) {
      ++placed;
      ASSERT_TRUE(starts(node, decision->gpus, lists)) << "round " << round;
      continue;
    }
    ++refused;
    const auto count = static_cast<std::size_t>(task.resources.gpu_count());
    for (unsigned set = 0; !nested && set < 1U << capabilities.size(); ++set) {
      std::vector<placement::Grant> gpus;
      for (std::size_t i = 0; i < capabilities.size(); ++i)
        if ((set >> i & 1U) != 0) gpus.push_back({node.inventory.devices[i].uuid});
      if (std::set<std::pair<int, int>> kinds; gpus.size() == count) {
        for (const auto& one : capabilities) kinds.emplace(one.major, one.minor);
        ASSERT_FALSE(kinds.size() < 3 && starts(node, gpus, lists)) << "round " << round;
      }
    }
  }
  EXPECT_GT(placed, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace drover::engine
