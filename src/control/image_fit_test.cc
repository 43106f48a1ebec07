#include "control/image_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/preview.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr gpu::ComputeCapability kKepler{3, 7};
constexpr gpu::ComputeCapability kMaxwell{5, 2};

ImageFit fit_on(std::vector<std::vector<gpu::ComputeCapability>> sets) {
  ImageFit fit;
  fit.without_gpus = "tool: it needs a GPU";
  fit.with_gpus = "tool: it needs another GPU";
  fit.sets = std::move(sets);
  return fit;
}

workload::Task of_image(const std::string& id, int gpus) {
  auto result = task(id, gpus);
  result.image = "tool";
  return result;
}

/// A machine with one GPU of each.
Machine mixed() {
  Machine machine(2);
  auto node = machine.state.machine();
  node.inventory.devices[0].compute_capability = kKepler;
  node.inventory.devices[1].compute_capability = kMaxwell;
  EXPECT_TRUE(machine.on(event::NodeChanged{node}));
  return machine;
}

Status know(Machine& machine, std::optional<ImageFit> fit) {
  return machine.on(event::ImagesKnown{{{ImageName{0, "tool"}, std::move(fit)}}});
}

std::string gpu_of(const Machine& machine, const std::string& id) {
  return machine.state.tasks.at(id).gpus.at(0).uuid;
}

TEST(ImageFit, OnlyGpusThatItWorksOnAreGiven) {
  for (const auto& [capability, uuid] : {std::pair(kKepler, "GPU-0"), std::pair(kMaxwell, "GPU-1")}) {
    auto machine = mixed();
    ASSERT_TRUE(know(machine, fit_on({{capability}})));
    ASSERT_TRUE(machine.on(event::Submitted{{of_image("first", 1)}}));
    EXPECT_EQ(gpu_of(machine, "first"), uuid);
    ASSERT_TRUE(machine.on(event::Submitted{{of_image("second", 1)}}));
    EXPECT_EQ(machine.state.tasks.at("second").state, TaskState::kQueued);
    EXPECT_THAT(waiting_reasons(machine.state, machine.state.tasks.at("second")),
                ElementsAre(HasSubstr("its image has no variant for others")));
    ASSERT_TRUE(machine.on(event::Submitted{{task("other", 1)}})) << "others have what is left";
    EXPECT_NE(gpu_of(machine, "other"), uuid);
  }
}

TEST(ImageFit, WhatCanNeverRunIsRefusedWithTheReasons) {
  auto machine = mixed();
  ASSERT_TRUE(know(machine, fit_on({{kKepler}, {kMaxwell}})));
  const auto both = machine.on(event::Submitted{{of_image("both", 2)}});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("of image 'tool', tool: it needs another GPU"));
  const auto without = machine.on(event::Submitted{{of_image("none", 0)}});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().path, "/image");
  ASSERT_TRUE(know(machine, fit_on({})));
  const auto never = preview(machine.state, {of_image("never", 1)}, kNow);
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("Image 'tool' cannot run here: tool: it needs another GPU"));
  auto others = of_image("others", 1);
  others.owner = 7;
  EXPECT_TRUE(machine.on(event::Submitted{{others}})) << "whose 'tool' may be another";
}

TEST(ImageFit, WhatIsBeingLookedAtWaits) {
  auto machine = mixed();
  ImageFit pending;
  pending.pending = true;
  ASSERT_TRUE(know(machine, pending));
  ASSERT_TRUE(machine.on(event::Submitted{{of_image("early", 1)}}));
  EXPECT_THAT(waiting_reasons(machine.state, machine.state.tasks.at("early")),
              ElementsAre("its image is being looked at"));
  ASSERT_TRUE(know(machine, std::nullopt));
  EXPECT_EQ(machine.state.tasks.at("early").state, TaskState::kStarting);
  EXPECT_TRUE(machine.state.images.empty());
}

}  // namespace
}  // namespace drover::control
