#include "kube/dra/preparer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/property_steps.h"
#include "cdi/decode.h"
#include "kube/dra/devices.h"
#include "kube/dra/testing/fake_claims.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kGpus = 3;

std::string gpu_uuid(int gpu) {
  return "GPU-" + std::to_string(gpu);
}

GpuEdits some_edits(bool guarded) {
  GpuEdits edits;
  edits.common.device_nodes = {{.path = "/dev/nvidiactl"}};
  for (int i = 0; i < kGpus; ++i)
    edits.of_gpu[gpu_uuid(i)].device_nodes = {{.path = "/dev/nvidia" + std::to_string(i)}};
  const cdi::Mount guard{"/state/guard", "/usr/lib/libcuda.so.1", "", {}};
  if (!guarded) return edits;
  edits.guard = {{guard}, "/state/hook"};
  edits.common.mounts = {guard};
  return edits;
}

Result<GpuEdits> edits_of(bool guarded, bool unfit) {
  if (guarded && unfit) return fail(ErrorKind::kUnsupported, "the driver has no such name");
  return some_edits(guarded);
}

std::unique_ptr<Preparer> preparer_over(std::shared_ptr<FakeClaims> claims,
                                        std::shared_ptr<FakeClaimFiles> files, PreparerOptions options = {},
                                        bool unfit = false) {
  options.driver = "gpu.nvidia.com";
  options.pool = "node1";
  options.source = std::move(claims);
  options.files = std::move(files);
  options.edits = [unfit](bool guarded) { return edits_of(guarded, unfit); };
  auto preparer = std::make_unique<Preparer>(std::move(options));
  std::map<std::string, NodeGpu> gpus;
  for (int i = 0; i < kGpus; ++i) gpus["gpu-" + std::to_string(i)] = {gpu_uuid(i), 80LL << 30};
  preparer->set_gpus(gpus);
  return preparer;
}

ClaimReference claim_named(const std::string& name) {
  return {"team-a", name, "uid-of-" + name};
}

class PreparerTest : public ::testing::Test {
 protected:
  std::string refusal_of(const std::string& name) {
    const auto prepared = preparer->prepare(claim_named(name));
    return prepared ? "" : to_string(prepared.error());
  }
  void restart() { preparer = preparer_over(claims, files); }

  std::shared_ptr<FakeClaims> claims = std::make_shared<FakeClaims>();
  std::shared_ptr<FakeClaimFiles> files = std::make_shared<FakeClaimFiles>();
  std::unique_ptr<Preparer> preparer = preparer_over(claims, files);
};

TEST_F(PreparerTest, WritesWhatContainersGet) {
  claims->add(claim_named("a"), {result_of("gpu-2"), result_of("gpu-0", {{"share", "500"}}, "s1")});
  const auto prepared = preparer->prepare(claim_named("a"));
  ASSERT_TRUE(prepared) << to_string(prepared.error());
  EXPECT_EQ(prepared->devices.at(0).uuid, "GPU-2");
  EXPECT_EQ(cdi_device_id("gpu.nvidia.com", "uid-of-a", prepared->devices.at(1).allocated),
            "k8s.gpu.nvidia.com/claim=uid-of-a-gpu-0-s1");
  const auto specification = cdi::decode_specification(files->specifications["uid-of-a"], "file");
  ASSERT_TRUE(specification) << to_string(specification.error());
  EXPECT_EQ(specification->kind, "k8s.gpu.nvidia.com/claim");
  EXPECT_THAT(specification->edits.environment, ElementsAre("NVIDIA_VISIBLE_DEVICES=void"));
  ASSERT_THAT(specification->devices, SizeIs(2));
  EXPECT_EQ(specification->devices[0].name, "uid-of-a-gpu-2");
  EXPECT_EQ(specification->devices[0].edits.device_nodes.at(0).path, "/dev/nvidia2");
  EXPECT_EQ(specification->devices[1].name, "uid-of-a-gpu-0-s1");
  EXPECT_THAT(specification->devices[1].edits.environment, ElementsAre("DROVER_GPU_0_SHARE=0.5"));
}

TEST_F(PreparerTest, NamesGpusWhereContainersHaveNoOthers) {
  const auto told = [&](const std::string& name) {
    const auto text = files->specifications["uid-of-" + name];
    const auto specification = cdi::decode_specification(text, "file");
    return specification ? specification->edits.environment : std::vector<std::string>{text};
  };
  claims->add_sole(claim_named("a"), {result_of("gpu-2"), result_of("gpu-0", {{"share", "500"}}, "s1"),
                                      result_of("gpu-0", {{"share", "100"}}, "s2")});
  ASSERT_EQ(refusal_of("a"), "");
  EXPECT_THAT(told("a"), ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-0,GPU-2"));
  files->specifications.clear();
  claims->down = true;
  restart();
  ASSERT_EQ(refusal_of("a"), "");
  EXPECT_THAT(told("a"), ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-0,GPU-2"));
  claims->down = false;
  auto other = result_of("gpu-0", {{"share", "100"}}, "s3");
  other["request"] = "more";
  claims->add_sole(claim_named("b"), {result_of("gpu-1"), other});
  ASSERT_EQ(refusal_of("b"), "");
  EXPECT_THAT(told("b"), ElementsAre("NVIDIA_VISIBLE_DEVICES=void")) << "a container may have one request";
}

TEST_F(PreparerTest, HoldsAClaimToItsSharesTogether) {
  claims->add(claim_named("a"),
              {result_of("gpu-0", {{"share", "250"}}, "s1"), result_of("gpu-2"),
               result_of("gpu-0", {{"share", "100"}}, "s2"), result_of("gpu-1", {{"memory", "20Gi"}}, "s3"),
               result_of("gpu-1", {{"memory", "60Gi"}}, "s4")});
  ASSERT_EQ(refusal_of("a"), "");
  const std::vector<share::Limit> limits{{gpu_uuid(0), (80ULL << 30) / 1000 * 350, 350},
                                         {gpu_uuid(1), 80ULL << 30, 1000}};
  EXPECT_EQ(files->pages["uid-of-a"], limits);
  const auto specification = cdi::decode_specification(files->specifications["uid-of-a"], "file");
  ASSERT_TRUE(specification) << to_string(specification.error());
  const auto& edits = specification->edits;
  ASSERT_THAT(edits.mounts, SizeIs(3));
  EXPECT_EQ(edits.mounts[0].host_path, "/state/guard");
  EXPECT_EQ(edits.mounts[1].host_path, "/shares/uid-of-a/share/limits");
  EXPECT_EQ(edits.mounts[1].container_path, "/usr/local/nvidia/share/limits");
  EXPECT_EQ(edits.mounts[1].options.at(0), "ro");
  EXPECT_EQ(edits.mounts[2].container_path, "/usr/local/nvidia/share/account");
  EXPECT_EQ(edits.mounts[2].options.at(0), "rw");
  ASSERT_THAT(edits.hooks, SizeIs(1));
  EXPECT_EQ(edits.hooks[0].name, "createContainer");
  EXPECT_EQ(edits.hooks[0].path, "/state/hook");
  EXPECT_THAT(
      edits.hooks[0].arguments,
      ElementsAre("drover", "cdi-hook", "check-guard", "--mount", "/state/guard::/usr/lib/libcuda.so.1",
                  "--mount", "/shares/uid-of-a/share/limits::/usr/local/nvidia/share/limits", "--mount",
                  "/shares/uid-of-a/share/account::/usr/local/nvidia/share/account"));
  const dra::ClaimShare share{claim_named("a"), limits, "/shares/uid-of-a"};
  EXPECT_THAT(preparer->shares(), ElementsAre(share));
  // Of the book alone, after a crash: pages that are there stay.
  claims->down = true;
  files->pages["uid-of-a"] = {{"in use", 1, 1}};
  files->specifications.clear();
  restart();
  ASSERT_EQ(refusal_of("a"), "");
  EXPECT_THAT(preparer->shares(), ElementsAre(share));
  EXPECT_EQ(files->pages["uid-of-a"].at(0).gpu, "in use");
  EXPECT_EQ(cdi::decode_specification(files->specifications["uid-of-a"], "file"), specification);
  ASSERT_TRUE(preparer->unprepare("uid-of-a"));
  EXPECT_THAT(files->pages, IsEmpty());
  EXPECT_THAT(preparer->shares(), IsEmpty());
}

TEST_F(PreparerTest, CountsWhatCannotBeHeldAndRefusesItWhereTheGuardIsAMust) {
  claims->add(claim_named("small"), {result_of("gpu-0", {{"memory", "512Mi"}}, "s1")});
  claims->add(claim_named("all"), {result_of("gpu-1", {{"memory", "80Gi"}}, "s1")});
  claims->add(claim_named("some"), {result_of("gpu-2", {{"memory", "8Gi"}}, "s1")});
  std::vector<std::string> warned;
  const auto preparer_by = [&](workload::ShareBy way, bool unfit) {
    preparer = preparer_over(
        claims, files, {.share_by = way, .warn = [&](const auto& text) { warned.push_back(text); }}, unfit);
  };
  preparer_by(workload::ShareBy::kAuto, false);
  for (const char* name : {"small", "all"}) ASSERT_EQ(refusal_of(name), "");
  EXPECT_THAT(warned, ElementsAre(HasSubstr("the share of the claim 'team-a/small' is counted")));
  ASSERT_THAT(preparer->shares(), SizeIs(1));
  EXPECT_EQ(preparer->shares()[0].pages, "");
  preparer_by(workload::ShareBy::kAuto, true);
  ASSERT_EQ(refusal_of("some"), "");
  EXPECT_THAT(warned.back(), HasSubstr("the driver has no such name"));
  EXPECT_THAT(files->pages, IsEmpty());
  for (const char* name : {"small", "all", "some"}) ASSERT_TRUE(preparer->unprepare(claim_named(name).uid));
  preparer_by(workload::ShareBy::kNone, false);
  ASSERT_EQ(refusal_of("some"), "");
  EXPECT_THAT(files->pages, IsEmpty());
  ASSERT_TRUE(preparer->unprepare("uid-of-some"));
  preparer_by(workload::ShareBy::kLimits, true);
  EXPECT_THAT(refusal_of("some"), HasSubstr("the claim 'team-a/some' cannot be held to its share"));
  EXPECT_THAT(refusal_of("small"), HasSubstr("1 GiB"));
  EXPECT_EQ(refusal_of("all"), "");
  EXPECT_THAT(files->specifications, SizeIs(1));
}

TEST_F(PreparerTest, LeavesNoPagesOfClaimsThatAreGone) {
  claims->add(claim_named("a"), {result_of("gpu-0", {{"memory", "8Gi"}}, "s1")});
  ASSERT_EQ(refusal_of("a"), "");
  const auto pages = files->pages;
  files->pages["leftover"] = {};
  files->checkpoint.reset();  // what the specification tells of keeps its pages
  restart();
  ASSERT_TRUE(preparer->recover());
  EXPECT_EQ(files->pages, pages);
  claims->remove(claim_named("a"));
  restart();
  ASSERT_TRUE(preparer->recover());
  EXPECT_THAT(files->pages, IsEmpty());
}

TEST_F(PreparerTest, AnswersAgainWithoutTheApiServer) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  const auto first = preparer->prepare(claim_named("a"));
  ASSERT_TRUE(first);
  claims->down = true;
  EXPECT_EQ(preparer->prepare(claim_named("a")), first);
  files->specifications.clear();
  restart();
  EXPECT_EQ(preparer->prepare(claim_named("a")), first);
  EXPECT_THAT(files->specifications, SizeIs(1));
}

TEST_F(PreparerTest, GivesNoGpuTwice) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  claims->add(claim_named("b"), {result_of("gpu-1"), result_of("gpu-0")});
  ASSERT_EQ(refusal_of("a"), "");
  EXPECT_THAT(refusal_of("b"), HasSubstr("'team-a/a' has it"));
  EXPECT_THAT(files->specifications, SizeIs(1));
  ASSERT_TRUE(preparer->unprepare("uid-of-a"));
  EXPECT_EQ(refusal_of("b"), "");
  claims->add(claim_named("twice"), {result_of("gpu-2"), result_of("gpu-2")});
  EXPECT_NE(refusal_of("twice"), "");
}

TEST_F(PreparerTest, GivesNoMoreThanAllOfAGpu) {
  for (const char* name : {"a", "b", "c"})
    claims->add(claim_named(name), {result_of("gpu-0", {{"share", "500"}})});
  claims->add(claim_named("whole"), {result_of("gpu-0")});
  claims->add(claim_named("memory"), {result_of("gpu-0", {{"memory", "40Gi"}})});
  ASSERT_EQ(refusal_of("a"), "");
  EXPECT_NE(refusal_of("whole"), "");
  ASSERT_EQ(refusal_of("b"), "");
  EXPECT_NE(refusal_of("c"), "");
  ASSERT_TRUE(preparer->unprepare("uid-of-b"));
  // By memory and by thousandths at once, while the node goes from the one to the other.
  ASSERT_EQ(refusal_of("memory"), "");
  EXPECT_NE(refusal_of("b"), "");
}

TEST_F(PreparerTest, LetsAdministratorsIn) {
  auto looking = result_of("gpu-0");
  looking["adminAccess"] = true;
  claims->add(claim_named("admin"), {looking});
  claims->add(claim_named("a"), {result_of("gpu-0")});
  EXPECT_EQ(refusal_of("admin"), "");
  EXPECT_EQ(refusal_of("a"), "");
}

TEST_F(PreparerTest, TakesBackWhatItDoesNotKnow) {
  EXPECT_TRUE(preparer->unprepare("never-seen"));
  EXPECT_FALSE(preparer->unprepare("../../etc/passwd"));
  EXPECT_FALSE(preparer->prepare({"team-a", "a", "../x"}));
  EXPECT_THAT(files->specifications, IsEmpty());
}

TEST_F(PreparerTest, CleansUpAfterClaimsThatAreGone) {
  for (const char* name : {"a", "b", "c"})
    claims->add(claim_named(name), {result_of("gpu-" + std::to_string(name[0] - 'a'))});
  for (const char* name : {"a", "b", "c"}) ASSERT_EQ(refusal_of(name), "");
  claims->remove(claim_named("a"));
  claims->add({"team-a", "b", "another-uid"}, {result_of("gpu-1")});
  files->specifications["leftover"] = "garbage";
  restart();
  ASSERT_TRUE(preparer->recover());
  EXPECT_THAT(preparer->book(), SizeIs(1));
  EXPECT_THAT(files->specifications, ElementsAre(::testing::Key("uid-of-c")));
}

TEST_F(PreparerTest, DoesNotCleanUpWhileTheApiServerIsSilent) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  claims->add(claim_named("b"), {result_of("gpu-1")});
  ASSERT_EQ(refusal_of("a"), "");
  claims->down = true;
  restart();
  EXPECT_FALSE(preparer->recover());
  EXPECT_THAT(refusal_of("b"), HasSubstr("does not answer"));
  EXPECT_THAT(files->specifications, SizeIs(1));
  claims->down = false;
  EXPECT_EQ(refusal_of("b"), "");
}

TEST_F(PreparerTest, MakesALostCheckpointAnew) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  claims->add(claim_named("b"), {result_of("gpu-0")});
  ASSERT_EQ(refusal_of("a"), "");
  for (const auto& damage :
       {std::optional<std::string>(), std::optional<std::string>("{\"checksum\": 5, \"v1\": {}}"),
        std::optional(files->checkpoint->substr(0, 30))}) {
    files->checkpoint = damage;
    files->aside.reset();
    restart();
    EXPECT_THAT(refusal_of("b"), HasSubstr("'team-a/a' has it"));
    EXPECT_EQ(files->aside, damage);
    EXPECT_THAT(preparer->book(), SizeIs(1));
  }
}

TEST_F(PreparerTest, GivesWhatIsUnhealthyToThoseOnlyWhoTolerateIt) {
  preparer->set_gpus({{"gpu-0", {.uuid = gpu_uuid(0), .unhealthy = "XID 79"}}});
  auto tolerated = result_of("gpu-0");
  tolerated["tolerations"] = json::array({{{"operator", "Exists"}}});
  claims->add(claim_named("a"), {result_of("gpu-0")});
  claims->add(claim_named("b"), {tolerated});
  EXPECT_THAT(refusal_of("a"), HasSubstr("is given to nobody now: XID 79"));
  EXPECT_EQ(refusal_of("b"), "");
}

TEST_F(PreparerTest, TakesNoMoreThanIsPreparedWhenTheCheckpointIsLost) {
  std::set<std::string> taken = {gpu_uuid(0), gpu_uuid(1)};  // by what was found before the claims were known
  Preparer fresh({.driver = "gpu.nvidia.com",
                  .pool = "node1",
                  .source = claims,
                  .files = files,
                  .edits = some_edits,
                  .take = [&](const std::set<std::string>& uuids) -> Status {
                    taken = uuids;
                    return {};
                  }});
  fresh.set_gpus({{"gpu-0", {.uuid = gpu_uuid(0)}}});
  ASSERT_TRUE(fresh.recover());
  EXPECT_THAT(taken, IsEmpty());
}

TEST_F(PreparerTest, RestoresSpecifications) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  ASSERT_EQ(refusal_of("a"), "");
  const auto before = files->specifications;
  files->specifications["uid-of-a"] = "of an older driver";
  ASSERT_TRUE(preparer->restore());
  EXPECT_EQ(files->specifications, before);
  files->steps = 0;
  ASSERT_TRUE(preparer->restore());
  EXPECT_EQ(files->steps, 0);
}

TEST_F(PreparerTest, TakesNothingWhenTheDiskIsFull) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  files->full = true;
  EXPECT_THAT(refusal_of("a"), HasSubstr("no space"));
  files->full = false;
  EXPECT_THAT(preparer->book(), IsEmpty());
  EXPECT_EQ(refusal_of("a"), "");
  files->full = true;
  EXPECT_FALSE(preparer->unprepare("uid-of-a"));
  files->full = false;
  EXPECT_TRUE(preparer->unprepare("uid-of-a"));
}

TEST_F(PreparerTest, DoesNotPrepareWhatWasTakenBackMeanwhile) {
  claims->add(claim_named("a"), {result_of("gpu-0")});
  claims->while_asked = [&] { EXPECT_TRUE(preparer->unprepare("uid-of-a")); };
  EXPECT_THAT(refusal_of("a"), HasSubstr("taken back"));
  EXPECT_THAT(files->specifications, IsEmpty());
  EXPECT_THAT(preparer->book(), IsEmpty());
  claims->while_asked = nullptr;
  EXPECT_EQ(refusal_of("a"), "");
}

TEST_F(PreparerTest, RefusesADeviceThatIsNotThere) {
  claims->add(claim_named("a"), {result_of("gpu-7")});
  EXPECT_THAT(refusal_of("a"), HasSubstr("'gpu-7'"));
  EXPECT_THAT(refusal_of("unknown"), HasSubstr("no such claim"));
}

/// A cluster whose scheduler may err, and a kubelet that asks again after every crash.
class World {
 public:
  void step() {
    if (*rc::gen::inRange(0, 4) == 0) files_->crash_in = *rc::gen::inRange(0, 6);
    if (*rc::gen::inRange(0, 12) == 0 && files_->checkpoint)
      files_->checkpoint->resize(files_->checkpoint->size() / 2), restart();
    try {
      act();
    } catch (const Crash&) {
      check();
      restart();
    }
    files_->crash_in.reset();
    check();
  }

  void finish() {
    restart();
    RC_ASSERT(preparer_->recover());
    for (const auto& [name, results] : made_) RC_ASSERT(preparer_->unprepare(claim_named(name).uid));
    RC_ASSERT(files_->specifications.empty());
    RC_ASSERT(files_->pages.empty());
    RC_ASSERT(preparer_->book().empty());
  }

 private:
  void restart() { preparer_ = preparer_over(claims_, files_); }

  void act() {
    const auto name = "c" + std::to_string(*rc::gen::inRange(0, 6));
    const auto reference = claim_named(name);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        if (!made_.contains(name)) make(name);
        break;
      case 1:
        if (made_.contains(name) && preparer_->prepare(reference)) running_.insert(name);
        break;
      case 2:
        running_.erase(name);
        if (preparer_->unprepare(reference.uid)) {
          RC_ASSERT(!files_->specifications.contains(reference.uid));
          made_.erase(name);
          claims_->remove(reference);
        }
        break;
      default:
        restart();
    }
  }

  void make(const std::string& name) {
    std::map<int, int> shares;
    std::vector<json> results;
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      const auto share = *rc::gen::element(0, 0, 400, kWholeGpu);
      if (share == 0) continue;
      shares[gpu] = share;
      results.push_back(result_of("gpu-" + std::to_string(gpu),
                                  share == kWholeGpu ? json() : json{{"share", std::to_string(share)}}));
    }
    if (results.empty()) return;
    made_[name] = shares;
    claims_->add(claim_named(name), results);
  }

  void check() const {
    std::map<int, int> given;
    for (const auto& [name, shares] : made_)
      if (files_->specifications.contains(claim_named(name).uid))
        for (const auto& [gpu, share] : shares) given[gpu] += share;
    for (const auto& [gpu, share] : given) RC_ASSERT(share <= kWholeGpu);
    // What a container was started with stays.
    for (const auto& name : running_) RC_ASSERT(files_->specifications.contains(claim_named(name).uid));
    // No container is given pages that are not there.
    for (const auto& [uid, text] : files_->specifications)
      RC_ASSERT(files_->pages.contains(uid) || text.find("/shares/") == std::string::npos);
  }

  std::shared_ptr<FakeClaims> claims_ = std::make_shared<FakeClaims>();
  std::shared_ptr<FakeClaimFiles> files_ = std::make_shared<FakeClaimFiles>();
  std::unique_ptr<Preparer> preparer_ = preparer_over(claims_, files_);
  std::map<std::string, std::map<int, int>> made_;  ///< claims and what they take of each GPU
  std::set<std::string> running_;
};

RC_GTEST_PROP(PreparerProperty, NothingIsGivenTwiceOrLostWheneverItDies, ()) {
  World world;
  const auto steps = property_steps(60);
  for (int i = 0; i < steps; ++i) world.step();
  world.finish();
}

}  // namespace
}  // namespace drover::kube::dra
