#include "container/composing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_tree.h"
#include "container/task_folder.h"

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

/// Does nothing, and says what it was asked for.
class AskedLauncher final : public Launcher {
 public:
  AskedLauncher(std::string name, std::vector<std::string>& asked)
      : Launcher({}), name_(std::move(name)), asked_(asked) {}

  Status prepare(const Directory&, const Launch&) const override { return note("prepare"); }
  Status clear(const Directory&, const std::string&) const override { return note("clear"); }
  Status change_memory_limit(const Directory&, const std::string&, const MemoryLimiter&) const override {
    return note("change_memory_limit");
  }
  Result<std::unique_ptr<ExecProcess>> exec(const Directory&, const std::string&,
                                            const ExecRequest&) const override {
    return note("exec").map([] { return std::unique_ptr<ExecProcess>(); });
  }
  void end_forgotten_execs(const Directory&, const std::string&) const override {
    (void)note("end_forgotten_execs");
  }

 private:
  Status note(const char* what) const {
    asked_.push_back(name_ + " " + what);
    return {};
  }
  std::string name_;
  std::vector<std::string>& asked_;
};

TEST(Composing, WhoHasLaunchedATaskIsAskedForAllOfIt) {
  std::vector<std::string> asked;
  const ComposingLauncher both({kOci, kDocker}, std::make_unique<AskedLauncher>("oci", asked),
                               std::make_unique<AskedLauncher>("docker", asked), {});
  const FakeTree tree;
  const auto folder = Directory::open(tree.root()).value();
  for (const auto* name : {"oci", "docker"}) {
    ASSERT_TRUE(folder.write(kContainerizerFile, name));
    asked.clear();
    EXPECT_TRUE(both.clear(folder, "t"));
    EXPECT_TRUE(both.change_memory_limit(folder, "t", {}));
    EXPECT_TRUE(both.exec(folder, "t", {}));
    both.end_forgotten_execs(folder, "t");
    const std::string begin(name);
    EXPECT_THAT(asked, ElementsAre(begin + " clear", begin + " change_memory_limit", begin + " exec",
                                   begin + " end_forgotten_execs"));
  }
}

}  // namespace
}  // namespace drover::container
