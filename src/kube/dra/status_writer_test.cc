#include "kube/dra/status_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "kube/dra/testing/fake_claims.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const ClaimReference kTold{"team-a", "a", "uid-a"};

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 4000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

class StatusWriterTest : public ::testing::Test {
 protected:
  StatusWriterTest() { claims->add(kTold, {result_of("gpu-0")}); }

  void start() {
    writer = std::make_unique<StatusWriter>(StatusWriterOptions{.owner = {"gpu.nvidia.com", "node1"},
                                                                .source = claims,
                                                                .entries =
                                                                    [this](const std::string& uid) {
                                                                      const std::scoped_lock lock(mutex);
                                                                      return held.contains(uid)
                                                                                 ? json::array({entry()})
                                                                                 : json::array();
                                                                    },
                                                                .warn =
                                                                    [this](const std::string& sentence) {
                                                                      const std::scoped_lock lock(mutex);
                                                                      warnings.push_back(sentence);
                                                                    },
                                                                .retry = std::chrono::milliseconds(10),
                                                                .patience = std::chrono::milliseconds(20)});
  }
  void prepare(const ClaimReference& claim = kTold) {
    {
      const std::scoped_lock lock(mutex);
      held.insert(claim.uid);
    }
    writer->prepared(claim);
  }
  void unprepare(const std::string& uid = kTold.uid) {
    {
      const std::scoped_lock lock(mutex);
      held.erase(uid);
    }
    writer->unprepared(uid);
  }
  static json entry() {
    return {{"driver", "gpu.nvidia.com"},
            {"pool", "node1"},
            {"device", "gpu-0"},
            {"data", {{"tier", "guarded"}}},
            {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  }
  bool is_told(const ClaimReference& claim = kTold) { return claims->devices(claim).size() == 1; }
  std::size_t told() {
    const std::scoped_lock lock(mutex);
    return warnings.size();
  }

  std::shared_ptr<FakeClaims> claims = std::make_shared<FakeClaims>();
  std::mutex mutex;
  std::set<std::string> held;
  std::vector<std::string> warnings;
  std::unique_ptr<StatusWriter> writer;  ///< goes first
};

TEST_F(StatusWriterTest, WritesAndTakesAway) {
  start();
  prepare();
  EXPECT_TRUE(comes_true([&] { return is_told(); }));
  unprepare();
  EXPECT_TRUE(comes_true([&] { return claims->devices(kTold).empty(); }));
  EXPECT_EQ(claims->applied, 2);
  EXPECT_EQ(told(), 0U);
}

TEST_F(StatusWriterTest, WhoComesAfterACrashWritesItUnlessItIsThere) {
  start();
  prepare();
  EXPECT_TRUE(comes_true([&] { return is_told(); }));
  start();
  writer->prepared(kTold);
  EXPECT_TRUE(comes_true([&] { return claims->asked >= 2; }));
  claims->add(kTold, {result_of("gpu-0")});  // without a status
  writer->prepared(kTold);
  EXPECT_TRUE(comes_true([&] { return is_told(); }));
  EXPECT_EQ(claims->applied, 2);
}

TEST_F(StatusWriterTest, TriesAgainAndTellsItOnce) {
  start();
  claims->refuse(Error{.kind = ErrorKind::kPermissionDenied, .message = "it may not"});
  prepare();
  EXPECT_TRUE(comes_true([&] { return claims->applied >= 4; }));
  EXPECT_EQ(told(), 1U);
  EXPECT_THAT(warnings.front(), HasSubstr("'team-a/a'"));
  claims->down = true;  // another reason
  EXPECT_TRUE(comes_true([&] { return told() == 2; }));
  claims->down = false;
  claims->refuse(std::nullopt);
  EXPECT_TRUE(comes_true([&] { return is_told(); }));
}

TEST_F(StatusWriterTest, AServerThatDropsItIsToldOf) {
  claims->keeps_devices = false;
  start();
  prepare();
  EXPECT_TRUE(comes_true([&] { return claims->applied >= 3; }));
  EXPECT_EQ(told(), 1U);
  EXPECT_THAT(warnings.front(), HasSubstr("DRAResourceClaimDeviceStatus"));
}

TEST_F(StatusWriterTest, AClaimThatIsGoneOrAnothersIsLeftAlone) {
  start();
  const ClaimReference gone{"team-a", "gone", "uid-gone"}, another{"team-a", "b", "uid-b"};
  claims->add({"team-a", "b", "uid-other"}, {result_of("gpu-0")});
  prepare(gone);
  prepare(another);
  prepare();
  EXPECT_TRUE(comes_true([&] { return is_told() && claims->asked >= 3; }));
  EXPECT_EQ(claims->applied, 1);
  EXPECT_EQ(told(), 0U);
}

TEST_F(StatusWriterTest, OfWholeGpusNobodyIsAsked) {
  start();
  writer->prepared({"team-a", "whole", "uid-whole"});
  writer->unprepared("uid-whole");
  writer->unprepared("uid-never-heard-of");
  prepare();
  EXPECT_TRUE(comes_true([&] { return is_told(); }));
  EXPECT_EQ(claims->asked, 1);
}

TEST_F(StatusWriterTest, OneThatIsRefusedHoldsUpNoOther) {
  const ClaimReference other{"team-a", "b", "uid-b"};
  claims->add(other, {result_of("gpu-0")});
  claims->refuse(Error{.kind = ErrorKind::kInvalid, .message = "no"});
  start();
  prepare();
  EXPECT_TRUE(comes_true([&] { return claims->applied >= 2; }));
  claims->refuse(std::nullopt);
  prepare(other);
  EXPECT_TRUE(comes_true([&] { return is_told(other) && is_told(); }));
}

}  // namespace
}  // namespace drover::kube::dra
