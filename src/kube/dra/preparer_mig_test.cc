// Claims of MIG devices: an instance is there as long as its claim is prepared, whenever the driver dies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "cdi/decode.h"
#include "kube/dra/preparer.h"
#include "kube/dra/testing/fake_claims.h"

namespace drover::kube::dra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const gpu::MigPart kSmall{"GPU-0", 19, {0, 1}};
const gpu::MigPart kLarge{"GPU-0", 9, {4, 4}};
const gpu::MigPart kAcrossSmall{"GPU-0", 14, {0, 2}};
const gpu::MigPart kFixed{"GPU-0", 19, {3, 1}};

/// A driver whose instances outlive us, and which dies with us between its steps.
class FakeMig : public MigInstances {
 public:
  explicit FakeMig(std::shared_ptr<FakeClaimFiles> files) : files_(std::move(files)) {}

  Result<cdi::Edits> find(const gpu::MigPart& part) override {
    if (!there.contains(part)) return fail(ErrorKind::kNotFound, "it is not there");
    cdi::Edits edits;
    edits.device_nodes = {{.path = "/dev/nvidia-caps/nvidia-cap" + std::to_string(part.placement.start)}};
    return edits;
  }
  Result<cdi::Edits> make(const gpu::MigPart& part) override {
    if (full) return fail(ErrorKind::kConflict, "no room");
    if (while_making) while_making();
    step([&] { there.insert(part); });
    return find(part);
  }
  Status destroy(const gpu::MigPart& part) override {
    if (busy) return fail(ErrorKind::kConflict, "in use");
    if (dead) return fail(ErrorKind::kUnavailable, "GPU is lost");
    step([&] { there.erase(part); });
    return {};
  }

  std::set<gpu::MigPart> there{kFixed};
  std::function<void()> while_making;
  bool full = false;
  bool busy = false;
  bool dead = false;

 private:
  void half_step() const {
    if (files_->crash_in && (*files_->crash_in)-- == 0) {
      files_->crash_in.reset();
      throw Crash();
    }
  }
  void step(const std::function<void()>& change) const {
    half_step();
    change();
    half_step();
  }
  std::shared_ptr<FakeClaimFiles> files_;
};

ClaimReference mig_claim(const std::string& name) {
  return {"team-a", name, "uid-of-" + name};
}

class PreparerMigTest : public ::testing::Test {
 protected:
  PreparerMigTest() {
    restart();
    claims->add(mig_claim("both"), {result_of("small"), result_of("large")});
    claims->add(mig_claim("small"), {result_of("small")});
    claims->add(mig_claim("across"), {result_of("across")});
    claims->add(mig_claim("fixed"), {result_of("fixed")});
  }
  void restart() {
    preparer = std::make_unique<Preparer>(PreparerOptions{.driver = "gpu.nvidia.com",
                                                          .pool = "node1",
                                                          .source = claims,
                                                          .files = files,
                                                          .edits = [](bool) { return GpuEdits(); },
                                                          .mig = mig,
                                                          .warn = nullptr});
    preparer->set_gpus({{"small", {"GPU-0", std::nullopt, kSmall}},
                        {"large", {"GPU-0", std::nullopt, kLarge}},
                        {"across", {"GPU-0", std::nullopt, kAcrossSmall}},
                        {"fixed", {"MIG-fixed", std::nullopt, kFixed, true}}});
  }
  std::string refusal_of(const std::string& name) {
    const auto prepared = preparer->prepare(mig_claim(name));
    return prepared ? "" : to_string(prepared.error());
  }
  std::set<gpu::MigPart> made_there() const {
    auto parts = mig->there;
    parts.erase(kFixed);
    return parts;
  }

  std::shared_ptr<FakeClaims> claims = std::make_shared<FakeClaims>();
  std::shared_ptr<FakeClaimFiles> files = std::make_shared<FakeClaimFiles>();
  std::shared_ptr<FakeMig> mig = std::make_shared<FakeMig>(files);
  std::unique_ptr<Preparer> preparer;
};

TEST_F(PreparerMigTest, InstancesComeAndGoWithTheirClaim) {
  ASSERT_EQ(refusal_of("both"), "");
  EXPECT_THAT(made_there(), ElementsAre(kLarge, kSmall));
  EXPECT_EQ(preparer->made(), std::set({kSmall, kLarge}));
  const auto specification = cdi::decode_specification(files->specifications["uid-of-both"], "file");
  ASSERT_TRUE(specification) << to_string(specification.error());
  ASSERT_THAT(specification->devices, SizeIs(2));
  EXPECT_EQ(specification->devices[1].edits.device_nodes.at(0).path, "/dev/nvidia-caps/nvidia-cap4");
  EXPECT_EQ(read_book(*files->checkpoint), preparer->book());
  ASSERT_TRUE(preparer->unprepare("uid-of-both"));
  EXPECT_THAT(made_there(), IsEmpty());
}

TEST_F(PreparerMigTest, WhateverStepItDiesAtNoInstanceStays) {
  for (int step = 0; step < 100; ++step) {
    files->crash_in = step;
    bool died = false;
    try {
      EXPECT_EQ(refusal_of("both"), "");
      EXPECT_TRUE(preparer->unprepare("uid-of-both"));
    } catch (const Crash&) {
      died = true;
    }
    files->crash_in.reset();
    restart();
    // As after a deleted pod: nobody asks for the claim again.
    claims->remove(mig_claim("both"));
    ASSERT_TRUE(preparer->recover());
    EXPECT_THAT(made_there(), IsEmpty()) << "step " << step;
    EXPECT_THAT(files->specifications, IsEmpty()) << "step " << step;
    claims->add(mig_claim("both"), {result_of("small"), result_of("large")});
    if (!died) return;
  }
  FAIL() << "it never came to an end";
}

TEST_F(PreparerMigTest, WhateverStepItDiesAtTheNextCallCompletesIt) {
  for (int step = 0; step < 100; ++step) {
    files->crash_in = step;
    bool died = false;
    try {
      EXPECT_EQ(refusal_of("both"), "");
    } catch (const Crash&) {
      died = true;
    }
    files->crash_in.reset();
    restart();
    ASSERT_EQ(refusal_of("both"), "") << "step " << step;
    EXPECT_THAT(made_there(), SizeIs(2));
    EXPECT_THAT(files->specifications, SizeIs(1));
    ASSERT_TRUE(preparer->unprepare("uid-of-both"));
    EXPECT_THAT(made_there(), IsEmpty());
    if (!died) return;
  }
  FAIL() << "it never came to an end";
}

TEST_F(PreparerMigTest, WhatWasThereBeforeIsGivenAndStays) {
  ASSERT_EQ(refusal_of("fixed"), "");
  EXPECT_EQ(preparer->made(), std::set<gpu::MigPart>());
  ASSERT_TRUE(preparer->unprepare("uid-of-fixed"));
  EXPECT_THAT(mig->there, ElementsAre(kFixed));
}

TEST_F(PreparerMigTest, PartsThatOverlapAreNotGivenTwice) {
  ASSERT_EQ(refusal_of("small"), "");
  EXPECT_THAT(refusal_of("across"), HasSubstr("'team-a/small' has it"));
  EXPECT_THAT(refusal_of("both"), HasSubstr("'team-a/small' has it"));
  EXPECT_THAT(made_there(), ElementsAre(kSmall));
}

TEST_F(PreparerMigTest, WhatSomebodyElseMadeMeanwhileIsNotTaken) {
  mig->there.insert(kSmall);
  EXPECT_THAT(refusal_of("both"), HasSubstr("somebody else"));
  EXPECT_THAT(preparer->book(), IsEmpty());
  EXPECT_THAT(made_there(), ElementsAre(kSmall));
}

TEST_F(PreparerMigTest, AClaimWhoseInstancesCannotBeMadeIsNotPrepared) {
  mig->full = true;
  EXPECT_THAT(refusal_of("both"), HasSubstr("no room"));
  EXPECT_THAT(preparer->book(), IsEmpty());
  EXPECT_THAT(files->specifications, IsEmpty());
  mig->full = false;
  EXPECT_EQ(refusal_of("both"), "");
}

TEST_F(PreparerMigTest, AnInstanceThatIsUsedKeepsItsClaim) {
  ASSERT_EQ(refusal_of("small"), "");
  mig->busy = true;
  EXPECT_FALSE(preparer->unprepare("uid-of-small"));
  EXPECT_THAT(preparer->book(), SizeIs(1));
  EXPECT_THAT(refusal_of("across"), HasSubstr("has it"));
  mig->busy = false;
  EXPECT_TRUE(preparer->unprepare("uid-of-small"));
}

TEST_F(PreparerMigTest, AClaimDoesNotHangOnAGpuThatIsLost) {
  ASSERT_EQ(refusal_of("small"), "");
  mig->dead = true;
  EXPECT_TRUE(preparer->unprepare("uid-of-small"));
  EXPECT_THAT(preparer->book(), IsEmpty());
  EXPECT_EQ(preparer->made(), std::set({kSmall})) << "it is nobody else's";
  EXPECT_THAT(refusal_of("small"), HasSubstr("somebody else has made")) << "it may still be there";
  preparer->saw_instances({kSmall});
  preparer->destroy_left();
  EXPECT_TRUE(mig->there.contains(kSmall));
  mig->dead = false;
  preparer->destroy_left();
  EXPECT_FALSE(mig->there.contains(kSmall));
  EXPECT_EQ(refusal_of("small"), "");
}

TEST_F(PreparerMigTest, AnOldLookDoesNotMakeADestroyedInstanceSomebodyElses) {
  ASSERT_EQ(refusal_of("small"), "");
  ASSERT_TRUE(preparer->unprepare("uid-of-small"));
  preparer->saw_instances({kSmall});
  EXPECT_EQ(preparer->made(), std::set({kSmall}));
  preparer->saw_instances({});
  EXPECT_EQ(preparer->made(), std::set<gpu::MigPart>());
}

TEST_F(PreparerMigTest, NewsOfTheNodeDoNotWaitForAnInstanceThatIsBeingMade) {
  ASSERT_TRUE(preparer->recover());
  std::promise<Result<std::set<gpu::MigPart>>> told;
  auto made = told.get_future();
  std::thread news;
  bool was_quick = false;
  mig->while_making = [&] {
    news = std::thread([&] {
      preparer->saw_instances({});
      preparer->set_gpus({{"small", {"GPU-0", std::nullopt, kSmall}}});
      told.set_value(preparer->made());
    });
    was_quick = made.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  };
  EXPECT_EQ(refusal_of("small"), "");
  news.join();
  EXPECT_TRUE(was_quick);
  EXPECT_EQ(made.get(), std::set({kSmall})) << "it is ours before it is there";
}

TEST_F(PreparerMigTest, BeforeTheCheckpointIsReadNothingIsKnownOfInstances) {
  EXPECT_EQ(preparer->made().error().kind, ErrorKind::kUnavailable);
}

}  // namespace
}  // namespace drover::kube::dra
