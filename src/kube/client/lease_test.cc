#include "kube/client/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "kube/client/testing/fake_api.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::FakeApi;
using ::testing::HasSubstr;

const ObjectPath kLeasePath = {{"coordination.k8s.io", "v1", "leases"}, "kube-system", "drover"};

/// An API server whose answers take time, and get lost.
class SlowApi : public Api {
 public:
  explicit SlowApi(Api& api) : api_(api) {}
  Result<json> send(const ApiRequest& request, const std::stop_token& stop, const TakeItem& take) override {
    if (before) before();
    auto answer = api_.send(request, stop, take);
    if (after) after();
    if (loses) return fail(ErrorKind::kUnavailable, "the answer is lost");
    return answer;
  }
  Status watch(const WatchRequest& request, const TakeEvent& take, const std::stop_token& stop) override {
    return api_.watch(request, take, stop);
  }

  std::function<void()> before;
  std::function<void()> after;
  bool loses = false;

 private:
  Api& api_;
};

class LeaseTest : public ::testing::Test {
 protected:
  LeaseCandidate candidate(const std::string& identity, Api* api = nullptr) {
    return {api ? *api : api_,
            {.name_space = "kube-system", .name = "drover", .identity = identity},
            {.steady = [this] { return now_; },
             .wall =
                 [this] {
                   return TimePoint(1'700'000'000'000ms) +
                          std::chrono::floor<std::chrono::milliseconds>(now_.time_since_epoch());
                 }}};
  }
  json spec() { return api_.get(kLeasePath).value_or(json::object())["spec"]; }
  static void expect_fine(LeaseCandidate& candidate) {
    const auto step = candidate.step();
    EXPECT_TRUE(step.outcome) << to_string(step.outcome.error());
  }

  FakeApi api_;
  LeaseCandidate::Time now_{1000s};
};

TEST_F(LeaseTest, IsWrittenAsOtherComponentsOfKubernetesDo) {
  auto a = candidate("a");
  EXPECT_FALSE(a.is_leader());
  expect_fine(a);
  EXPECT_TRUE(a.is_leader());
  EXPECT_EQ(a.safe_from(), now_);
  EXPECT_EQ(spec(), json({{"holderIdentity", "a"},
                          {"leaseDurationSeconds", 15},
                          {"acquireTime", "2023-11-14T22:30:00.000000Z"},
                          {"renewTime", "2023-11-14T22:30:00.000000Z"},
                          {"leaseTransitions", 0}}));
  now_ += 2500ms;
  EXPECT_EQ(a.step().wait, 2s);
  EXPECT_EQ(spec()["renewTime"], "2023-11-14T22:30:02.500000Z");
  EXPECT_EQ(spec()["acquireTime"], "2023-11-14T22:30:00.000000Z");
  EXPECT_EQ(a.term(), 1U);
}

TEST_F(LeaseTest, GoesToAnotherWhenItIsNotRenewed) {
  auto a = candidate("a");
  auto b = candidate("b");
  expect_fine(a);
  now_ += 3s;
  expect_fine(b);  // sees it for the first time: whatever the time in it is
  EXPECT_EQ(b.holder(), "a");
  now_ += 9s;
  expect_fine(b);
  EXPECT_FALSE(a.is_leader());  // of itself, long before
  now_ += 5s;
  EXPECT_EQ(b.step().wait, 1s);
  EXPECT_FALSE(b.is_leader());
  now_ += 1s;
  expect_fine(b);
  EXPECT_TRUE(b.is_leader());
  EXPECT_EQ(b.safe_from(), now_ + 2s);  // a has not led for 5 s
  EXPECT_EQ(spec()["leaseTransitions"], 1);
  expect_fine(a);
  EXPECT_FALSE(a.is_leader());
  EXPECT_EQ(a.holder(), "b");
}

TEST_F(LeaseTest, GoesToAnotherAtOnceWhenItIsReleased) {
  auto a = candidate("a");
  auto b = candidate("b");
  expect_fine(a);
  expect_fine(b);
  a.resign();
  EXPECT_FALSE(a.is_leader());
  EXPECT_EQ(spec()["holderIdentity"], "a");
  EXPECT_TRUE(a.release());
  EXPECT_EQ(spec()["holderIdentity"], "");
  EXPECT_EQ(spec()["leaseDurationSeconds"], 1);
  expect_fine(b);
  EXPECT_TRUE(b.is_leader());
  EXPECT_EQ(b.safe_from(), now_);
  EXPECT_TRUE(a.release());  // it is another's by now
  EXPECT_EQ(spec()["holderIdentity"], "b");
}

TEST_F(LeaseTest, IsKeptWhileTheServerFailsForShort) {
  auto a = candidate("a");
  expect_fine(a);
  const Error down = {ErrorKind::kUnavailable, "down", "", ""};
  api_.fail_next({down, down});
  now_ += 2s;
  EXPECT_EQ(a.step().outcome.error(), down);
  now_ += 7s;
  const auto step = a.step();
  EXPECT_EQ(step.outcome.error(), down);
  EXPECT_EQ(step.wait, 1s);  // that is when it ends
  EXPECT_TRUE(a.is_leader());
  expect_fine(a);
  now_ += 9s;
  EXPECT_TRUE(a.is_leader());
  EXPECT_EQ(a.term(), 1U);
  now_ += 1s;
  EXPECT_FALSE(a.is_leader());
  expect_fine(a);
  EXPECT_EQ(a.term(), 2U);
  EXPECT_EQ(spec()["leaseTransitions"], 0);
}

TEST_F(LeaseTest, IsNotTrustedWhenTheAnswerComesLate) {
  SlowApi slow(api_);
  auto a = candidate("a", &slow);
  slow.after = [this] { now_ += 11s; };
  expect_fine(a);
  EXPECT_FALSE(a.is_leader());
  slow.after = nullptr;
  expect_fine(a);
  EXPECT_TRUE(a.is_leader());
}

TEST_F(LeaseTest, OfAnotherIsWaitedForAlsoWhenTheAnswerWasLost) {
  SlowApi slow(api_);
  auto a = candidate("a");
  auto b = candidate("b", &slow);
  expect_fine(a);
  expect_fine(b);
  now_ += 15s;
  int calls = 0;
  slow.before = [&] { slow.loses = ++calls == 2; };
  EXPECT_FALSE(b.step().outcome);
  EXPECT_EQ(spec()["holderIdentity"], "b");
  EXPECT_FALSE(b.is_leader());
  now_ += 2s;
  expect_fine(b);
  EXPECT_TRUE(b.is_leader());
  EXPECT_EQ(b.safe_from(), now_ + 2s);
}

TEST_F(LeaseTest, ThatSomebodyRemovedIsMadeAgain) {
  auto a = candidate("a");
  auto b = candidate("b");
  expect_fine(a);
  expect_fine(b);
  EXPECT_TRUE(api_.remove(kLeasePath));
  expect_fine(b);
  EXPECT_TRUE(b.is_leader());
  EXPECT_EQ(b.safe_from(), now_ + 17s);  // a does not know yet
  EXPECT_TRUE(a.step().outcome);
  EXPECT_TRUE(a.step().outcome);
  EXPECT_FALSE(a.is_leader());
}

TEST_F(LeaseTest, KeepsWhatOthersPutIntoIt) {
  auto a = candidate("a");
  expect_fine(a);
  EXPECT_TRUE(api_.patch(kLeasePath, PatchType::kMerge,
                         {{"metadata", {{"labels", {{"x", "y"}}}}}, {"spec", {{"strategy", "z"}}}}));
  expect_fine(a);  // a conflict
  expect_fine(a);
  EXPECT_TRUE(a.is_leader());
  EXPECT_EQ(spec()["strategy"], "z");
  EXPECT_EQ(text_at(api_.get(kLeasePath).value_or(json()), "/metadata/labels/x"), "y");
}

/// Three candidates that are paused, slow and cut off at random: never do two lead at the same time, and who
/// takes over from one who fell silent leaves that one's last writes their time.
TEST_F(LeaseTest, HasOneLeaderWhateverHappens) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::minstd_rand random(seed + 1);
    const auto chance = [&](unsigned of) { return random() % of == 0; };
    api_.recover();
    EXPECT_TRUE(api_.remove(kLeasePath));
    SlowApi slow(api_);
    std::vector<std::unique_ptr<LeaseCandidate>> all;
    for (const char* name : {"a", "b", "c"}) all.emplace_back(new LeaseCandidate(candidate(name, &slow)));
    std::size_t terms = 0;
    const LeaseCandidate* last = nullptr;  // who led
    LeaseCandidate::Time led;
    bool released = false;
    const auto check = [&] {
      ASSERT_LE(std::ranges::count_if(all, [](const auto& one) { return one->is_leader(); }), 1);
      for (const auto& one : all) {
        if (!one->is_leader()) continue;
        if (last != nullptr && last != one.get() && !released) ASSERT_GE(one->safe_from(), led + 7s);
        if (last != one.get()) released = false;
        last = one.get();
        led = now_;
      }
    };
    const auto dawdle = [&] {
      const auto until = now_ + std::chrono::milliseconds(chance(8) ? random() % 12'000 : random() % 50);
      for (; now_ < until; now_ += 100ms) check();
    };
    slow.before = [&] {
      slow.loses = chance(10);
      dawdle();
    };
    slow.after = dawdle;
    for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
      auto& one = *all[random() % (chance(3) ? 3 : 1 + seed % 3)];
      const auto before = one.term();
      if (chance(10)) api_.fail_next({{ErrorKind::kUnavailable, "down", "", ""}});
      if (chance(30)) {
        released = released || last == &one;
        (void)one.release();
      } else {
        (void)one.step();
      }
      terms += one.term() != 0 && one.term() != before ? 1 : 0;
      check();
      now_ += std::chrono::milliseconds(random() % (chance(10) ? 20'000 : 1'500));
    }
    EXPECT_GT(terms, 3U) << seed;
  }
}

TEST(LeaderElectionTest, TellsInTurnAndReleasesAtItsEnd) {
  FakeApi api;
  std::mutex mutex;
  std::vector<std::string> words;
  const auto adds = [&](const char* word) {
    return [&, word] {
      const std::lock_guard lock(mutex);
      words.emplace_back(word);
    };
  };
  const auto wait_for = [&](std::size_t count) {
    for (int i = 0; i < 4000; ++i, std::this_thread::sleep_for(5ms)) {
      const std::lock_guard lock(mutex);
      if (words.size() >= count) return;
    }
    FAIL() << count;
  };
  LeaseOptions options = {"kube-system", "drover", "a", 1500ms, 1000ms, 5ms};
  {
    const LeaderElection a(api, options, {adds("a leads"), adds("a lost")});
    wait_for(1);
    // So long that it loses the lease, which nobody takes meanwhile.
    api.fail_next(std::vector<Error>(100'000, {ErrorKind::kUnavailable, "down", "", ""}));
    wait_for(2);
    EXPECT_FALSE(a.candidate().is_leader());
    api.recover();
    wait_for(3);
    options.identity = "b";
    const LeaderElection b(api, options, {adds("b leads"), adds("b lost")});
    while (b.candidate().holder() != "a") std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"a leads", "a lost", "a leads", "a lost"}));
  const auto lease = api.get(kLeasePath);
  ASSERT_TRUE(lease);
  EXPECT_EQ(text_at(*lease, "/spec/holderIdentity"), "");
}

}  // namespace
}  // namespace drover::kube
