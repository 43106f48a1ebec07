#include "container/composing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using workload::ContainerType;
constexpr auto kOci = ContainerizerKind::kOci;
constexpr auto kDocker = ContainerizerKind::kDocker;

workload::Task typed_task(std::optional<std::string> image, ContainerType type = ContainerType::kAny) {
  workload::Task task;
  task.image = std::move(image);
  task.container_type = type;
  return task;
}

TEST(Composing, ContainerizersAreNamedInTheOrderOfChoice) {
  const auto parse = [](std::vector<std::string> names) { return parse_containerizers(names); };
  EXPECT_THAT(parse({"docker", "mesos"}).value(), ElementsAre(kDocker, kOci));
  EXPECT_THAT(parse({"oci"}).value(), ElementsAre(kOci));
  for (const auto& bad : std::vector<std::vector<std::string>>{{}, {"podman"}, {"oci", "mesos"}, {""}})
    EXPECT_FALSE(parse(bad));
}

TEST(Composing, ATypeGoesToItsOwnWhereThereIsOne) {
  for (const auto& both : {std::vector{kOci, kDocker}, std::vector{kDocker, kOci}}) {
    EXPECT_EQ(choose_containerizer(typed_task("x", ContainerType::kDocker), both), kDocker);
    EXPECT_EQ(choose_containerizer(typed_task("x", ContainerType::kMesos), both), kOci);
    EXPECT_EQ(choose_containerizer(typed_task(std::nullopt), both), kOci);
    EXPECT_EQ(choose_containerizer(typed_task("oci:/images/x"), both), kOci);
    EXPECT_EQ(choose_containerizer(typed_task("docker-archive:/x.tar"), both), kOci);
    EXPECT_EQ(choose_containerizer(typed_task("/images/x"), both), kOci);
    EXPECT_EQ(choose_containerizer(typed_task("localhost:5000/x:1"), both), both.front());
    EXPECT_EQ(choose_containerizer(typed_task("x"), both), both.front());
    auto with_device = typed_task("x", ContainerType::kDocker);
    with_device.devices = {"vendor.com/nic=0"};
    EXPECT_EQ(choose_containerizer(with_device, both), kOci);
    auto typed_into = typed_task("x", ContainerType::kDocker);
    typed_into.takes_input = true;
    EXPECT_EQ(choose_containerizer(typed_into, both), kOci);
  }
}

TEST(Composing, WithOneOfThemEverythingGoesThere) {
  for (const auto type : {ContainerType::kAny, ContainerType::kMesos, ContainerType::kDocker})
    for (const auto kind : {kOci, kDocker}) {
      EXPECT_EQ(choose_containerizer(typed_task("x", type), {kind}), kind);
      EXPECT_EQ(choose_containerizer(typed_task(std::nullopt, type), {kind}), kind);
    }
}

}  // namespace
}  // namespace drover::container
