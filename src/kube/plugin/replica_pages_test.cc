#include "kube/plugin/replica_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fake_tree.h"
#include "base/files.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using testing::uuid;
using Clock = ReplicaPages::Clock;

class ReplicaPagesTest : public ::testing::Test {
 protected:
  ReplicaPagesTest() { start(); }
  /// As after kill -9.
  void start() {
    pages_.emplace(ReplicaPages::Options{tree_ / "replicas", tree_ / "cdi", [] { return edits(); }});
    ASSERT_TRUE(pages_->take_up(now_));
  }
  static GpuEdits edits() {
    GpuEdits edits;
    edits.guard.program = "/state/hook";
    edits.of_gpu[uuid(0)].device_nodes.push_back({.path = "/dev/" + uuid(0)});
    return edits;
  }
  GuardedReplica make(const std::string& id) {
    const auto made = pages_->make(id, {uuid(0), 10ULL << 30, 250}, edits(), now_);
    EXPECT_TRUE(made) << to_string(made.error());
    return made.value_or(GuardedReplica{});
  }
  void saw(const std::set<std::string>& held) {
    now_ += 1s;
    EXPECT_TRUE(pages_->saw(held, now_));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& replica : pages_->replicas()) names.push_back(replica.name);
    return names;
  }
  std::vector<std::string> files(const char* folder) const {
    return Directory::open(tree_ / folder)->list().value();
  }
  std::string specification(const GuardedReplica& replica) const {
    return read_file(tree_ / ("cdi/k8s.device-plugin.nvidia.com-replica_" + replica.name + ".json"))
        .value_or("");
  }

  FakeTree tree_;
  Clock::time_point now_ = Clock::now();
  std::optional<ReplicaPages> pages_;
  const std::string id_ = uuid(0) + "::2";
};

TEST_F(ReplicaPagesTest, EachContainerHasAnAccountOfItsOwn) {
  const auto init = make(id_), app = make(id_);
  EXPECT_NE(init.name, app.name);
  EXPECT_THAT(init.name, StartsWith(uuid(0) + "_2_"));
  struct stat one{}, other{};
  ASSERT_EQ(::stat((init.pages + "/share/account").c_str(), &one), 0);
  ASSERT_EQ(::stat((app.pages + "/share/account").c_str(), &other), 0);
  EXPECT_NE(one.st_ino, other.st_ino);
  EXPECT_THAT(specification(app), HasSubstr(app.pages + "/share/limits"));
  EXPECT_THAT(specification(app), HasSubstr("check-guard"));
  EXPECT_THAT(specification(app), HasSubstr("/dev/" + uuid(0)));
  EXPECT_EQ(app.limit, (share::Limit{uuid(0), 10ULL << 30, 250}));
}

TEST_F(ReplicaPagesTest, GoWithWhoeverHasTheReplica) {
  make(id_);
  saw({});
  EXPECT_THAT(names(), SizeIs(1)) << "the kubelet tells of it later";
  saw({id_});
  saw({uuid(0) + "::1"});
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(files("replicas"), IsEmpty());
  EXPECT_THAT(files("cdi"), IsEmpty());
  make(id_);
  now_ += ReplicaPages::kPatience;
  saw({});
  EXPECT_THAT(names(), IsEmpty()) << "nobody was started with it";
}

TEST_F(ReplicaPagesTest, AnAnswerOfBeforeSaysNothing) {
  make(id_);
  EXPECT_TRUE(pages_->saw({id_}, now_));
  EXPECT_TRUE(pages_->saw({}, now_ - 1s));
  EXPECT_THAT(names(), SizeIs(1));
}

TEST_F(ReplicaPagesTest, WhoeverTakesThePlaceTakesThemUp) {
  const auto made = make(id_);
  const auto account = made.pages + "/share/account";
  ASSERT_TRUE(write_file(tree_ / "cdi/k8s.device-plugin.nvidia.com-replica_GPU-x_0_aa.json", "{}"));
  std::filesystem::create_directories(tree_ / "replicas/GPU-y_1_bb.unfinished/share");
  tree_.folder("replicas/what is this");
  start();
  EXPECT_THAT(pages_->replicas(), ElementsAre(made));
  EXPECT_THAT(files("replicas"), ElementsAre(made.name));
  EXPECT_THAT(files("cdi"), SizeIs(1));
  std::filesystem::remove_all(tree_ / "cdi");  // as a machine that starts again does
  ASSERT_TRUE(pages_->start(id_));
  EXPECT_THAT(specification(made), HasSubstr(account));
  const auto next = make(id_);
  saw({id_});
  EXPECT_THAT(pages_->replicas(), ElementsAre(next)) << "they were of a pod of before";
  saw({});
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(ReplicaPagesTest, PagesOfAnotherVersionStayWhatContainersHave) {
  const auto made = make(id_);
  ASSERT_TRUE(write_file(made.pages + "/share/limits", "of another layout"));
  start();
  EXPECT_THAT(pages_->replicas(), IsEmpty()) << "nobody knows what they say";
  saw({id_});
  EXPECT_THAT(files("replicas"), ElementsAre(made.name));
  saw({});
  EXPECT_THAT(files("replicas"), IsEmpty());
}

TEST_F(ReplicaPagesTest, ThoseOfEarlierPodsGoWhenTheReplicaIsNeverFree) {
  const auto init = make(id_), app = make(id_);
  ASSERT_TRUE(pages_->start(id_));
  saw({id_});
  ASSERT_TRUE(pages_->start(id_)) << "the other container, or the same again";
  saw({id_});
  EXPECT_THAT(names(), UnorderedElementsAre(init.name, app.name)) << "their pod may start both again";
  const auto never = make(id_);
  saw({id_});
  EXPECT_THAT(names(), ElementsAre(never.name))
      << "a pod is given all that it has before anything of it starts";
  const auto next = make(id_);
  saw({id_});
  EXPECT_THAT(names(), UnorderedElementsAre(never.name, next.name)) << "it may be the same pod's";
  ASSERT_TRUE(pages_->start(id_));
  const auto last = make(id_);
  saw({id_});
  EXPECT_THAT(names(), ElementsAre(last.name));
}

TEST_F(ReplicaPagesTest, WithoutAGpuOrAGuardNothingStarts) {
  ReplicaPages pages({tree_ / "other", tree_ / "cdi", []() -> Result<GpuEdits> {
                        return fail(ErrorKind::kUnsupported, "the driver has no such name");
                      }});
  EXPECT_FALSE(pages.make(id_, {uuid(1), 10ULL << 30, 250}, edits(), now_));
  ASSERT_TRUE(pages.make(id_, {uuid(0), 10ULL << 30, 250}, edits(), now_));
  EXPECT_FALSE(pages.start(id_));
}

}  // namespace
}  // namespace drover::kube
