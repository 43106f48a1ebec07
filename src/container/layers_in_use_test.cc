#include "container/layers_in_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_tree.h"
#include "container/launch_spec.h"

namespace drover::container {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LayersInUse, AreThoseOfAllLaunchSpecs) {
  FakeTree tree;
  const auto tasks = tree / "tasks";
  ASSERT_TRUE(layers_in_use(tasks)) << "no task ever";
  EXPECT_THAT(*layers_in_use(tasks), IsEmpty());
  LaunchSpec spec;
  spec.task_id = "a";
  spec.runtime = "/usr/bin/runc";
  spec.cgroup = "/drover/a";
  spec.root.layers = {"/images/1", "/images/2"};
  tree.folder("tasks/ended").file("tasks/a/launch.json", encode(spec));
  ASSERT_TRUE(layers_in_use(tasks)) << to_string(layers_in_use(tasks).error());
  EXPECT_THAT(*layers_in_use(tasks), ElementsAre(ElementsAre("/images/1", "/images/2")));
  tree.file("tasks/a/launch.json", "{");
  EXPECT_FALSE(layers_in_use(tasks)) << "who knows what it needs";
}

}  // namespace
}  // namespace drover::container
