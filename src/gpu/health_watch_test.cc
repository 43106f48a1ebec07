// The watch over the simulator: what the fault file says must arrive, at the GPU that it is about.

#include "gpu/health_watch.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/fake_tree.h"
#include "gpu/discovery.h"

namespace drover::gpu {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class HealthWatchTest : public testing::Test {
 protected:
  ~HealthWatchTest() override {
    watch_.reset();
    const std::weak_ptr<const Result<Nvml>> library = nvml_;
    nvml_.reset();
    // A thread that was left behind still uses it, and the next test wants a new one.
    EXPECT_TRUE(until([&] { return library.expired(); }));
    ::unsetenv("DROVER_SIM_PROFILE");
    ::unsetenv("DROVER_SIM_FAULTS");
  }

  void start(const std::string& profile) {
    ::setenv("DROVER_SIM_PROFILE", (std::string(DROVER_SIM_PROFILES) + "/" + profile + ".yaml").c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", faults_.c_str(), 1);
    nvml_ = std::make_shared<const Result<Nvml>>(Nvml::load(DROVER_SIM_LIBRARY));
    ASSERT_TRUE(*nvml_);
    devices_ = discover(*nvml_, {.kernel = std::nullopt, .simulation = profile}).devices;
  }
  void watch() {
    watch([this] { return nvml_; });
  }
  void watch(HealthWatch::Library library) {
    watch_ = std::make_unique<HealthWatch>(std::move(library), devices_, options_,
                                           [this](const HealthChange& change) {
                                             const std::lock_guard lock(mutex_);
                                             changes_.push_back(change);
                                           });
  }
  void set_faults(const std::string& text) const {
    std::ofstream(faults_ + ".new") << text;
    std::filesystem::rename(faults_ + ".new", faults_);
    std::this_thread::sleep_for(10ms);  // then the library looks at it again
  }

  static bool until(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  const std::string& uuid(std::size_t index) const { return devices_.at(index).uuid; }
  bool healthy(std::size_t index) const { return watch_->health().healthy(uuid(index)); }
  bool is_out(std::size_t index) const {
    return until([&] { return !healthy(index); });
  }
  bool is_back(std::size_t index) const {
    return until([&] { return healthy(index); });
  }
  std::vector<std::string> texts(std::size_t index) const {
    std::vector<std::string> texts;
    for (const auto& reason : watch_->health().reasons(uuid(index))) texts.push_back(to_string(reason));
    return texts;
  }
  /// That polls of every GPU have been judged since now.
  void let_polls_pass() const { std::this_thread::sleep_for(10 * options_.poll_every); }
  std::vector<HealthChange> changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }

  FakeTree tree_;
  const std::string faults_ = tree_ / "faults.yaml";
  HealthWatchOptions options_{
      .timing = {.stable = 100ms, .quiet = 100ms, .quiet_reset = 1h}, .poll_every = 20ms, .patience = 20s};
  SharedNvml nvml_;
  std::vector<Device> devices_;
  std::mutex mutex_;
  std::vector<HealthChange> changes_;
  std::unique_ptr<HealthWatch> watch_;
};

TEST_F(HealthWatchTest, AnXidTakesItsGpuOutUntilTheDriverAsksForNothing) {
  start("dgx-a100");
  watch();
  set_faults("{3: {xid: [119], recovery_action: reset}}");
  ASSERT_TRUE(is_out(3));
  EXPECT_TRUE(until([&] { return texts(3).size() == 2; }));
  EXPECT_THAT(texts(3), Contains("XID 119: its system processor does not answer"));
  EXPECT_THAT(texts(3), Contains("the driver asks for a reset of it"));
  let_polls_pass();
  EXPECT_FALSE(healthy(3));
  set_faults("{3: {xid: [119], recovery_action: none}}");
  ASSERT_TRUE(is_back(3));
  EXPECT_TRUE(until([&] { return changes().size() > 1 && changes().back().healthy; }));
  for (const auto& change : changes()) EXPECT_EQ(change.uuid, uuid(3)) << "nobody else";
  EXPECT_TRUE(changes().front().was_healthy);
  EXPECT_FALSE(changes().front().healthy);
}

TEST_F(HealthWatchTest, LostAndAbsentGpusStayKnownAndComeBack) {
  start("dgx-a100");
  watch();
  set_faults("{1: {absent: true}, 2: {lost: true}}");
  ASSERT_TRUE(is_out(1));
  ASSERT_TRUE(is_out(2));
  const std::vector<std::string> no_longer_listed = {"the driver no longer lists it"};
  EXPECT_TRUE(until([&] { return texts(1) == no_longer_listed; })) << "a poll cut in two says it is lost";
  EXPECT_THAT(texts(2), ElementsAre("the driver has lost it"));
  let_polls_pass();
  for (const std::size_t other : {0, 3, 4, 5, 6, 7}) EXPECT_TRUE(healthy(other)) << other;
  EXPECT_EQ(watch_->health().uuids().size(), 8U);
  set_faults("{}");
  EXPECT_TRUE(is_back(1));
  EXPECT_TRUE(is_back(2));
}

TEST_F(HealthWatchTest, MemoryErrorsArePolled) {
  start("mixed");
  watch();
  // Errors count from a GPU's first look on: there has been one when it is back.
  set_faults("{3: {lost: true}}");
  ASSERT_TRUE(is_out(3));
  set_faults("{}");
  ASSERT_TRUE(is_back(3));
  const auto before = changes().size();
  set_faults(
      "{0: {retired_pages: {pending: true}}, 2: {remapped_rows: {failed: true}}, 3: {ecc: {volatile: "
      "{uncorrected: 2}}}}");
  for (const std::size_t index : {0, 2}) EXPECT_TRUE(is_out(index)) << index;
  EXPECT_TRUE(until([&] {
    const auto all = changes();  // an error that has been is soon forgotten: nobody may be looking just then
    return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                       [&](const auto& change) { return change.uuid == uuid(3) && !change.healthy; });
  }));
  EXPECT_THAT(texts(0), ElementsAre("bad memory pages wait for the driver to be loaded again"));
  EXPECT_THAT(texts(2), ElementsAre("bad memory rows cannot be replaced"));
  EXPECT_TRUE(healthy(1));
  set_faults("{}");
  for (const std::size_t index : {0, 2, 3}) EXPECT_TRUE(is_back(index)) << index;
}

TEST_F(HealthWatchTest, AStuckGpuHoldsUpNobody) {
  options_.patience = 300ms;
  start("k80");
  watch();
  let_polls_pass();
  set_faults("{0: {slow_ms: 1000}}");
  ASSERT_TRUE(is_out(0));
  EXPECT_THAT(texts(0), ElementsAre("it does not answer"));
  set_faults("{0: {slow_ms: 1000}, 1: {xid: [79]}}");
  const std::vector<std::string> off_the_bus = {"XID 79: it has fallen off the bus"};
  EXPECT_TRUE(until([&] { return !healthy(1) && texts(1) == off_the_bus; }))
      << "a busy machine is silent at times";
}

TEST_F(HealthWatchTest, AnXidIsThatOfTheGpuThatItsEventNames) {
  start("dgx-a100");
  watch();
  set_faults("{3: {xid: [{xid: 79, told_at: 7}]}}");
  ASSERT_TRUE(until([&] { return !changes().empty(); }));
  let_polls_pass();
  EXPECT_FALSE(healthy(3));
  for (const auto& change : changes()) EXPECT_EQ(change.uuid, uuid(3)) << "nobody else";
}

TEST_F(HealthWatchTest, AnXidOfAnInstanceIsToldOfIt) {
  start("dgx-a100");
  watch();
  set_faults("{5: {xid: [{xid: 95, gpu_instance: 3, compute_instance: 0}]}}");
  ASSERT_TRUE(is_out(5));
  EXPECT_TRUE(watch_->health().healthy(uuid(5), {2, 0}));
  EXPECT_FALSE(watch_->health().healthy(uuid(5), {3, 0}));
}

TEST_F(HealthWatchTest, AGpuWithoutEventsIsToldOnceAndPolled) {
  start("k80");
  set_faults("{1: {fail: {nvmlDeviceRegisterEvents: 3}}}");
  watch();
  ASSERT_TRUE(until([&] { return !changes().empty(); }));
  let_polls_pass();
  ASSERT_EQ(changes().size(), 1U);
  EXPECT_EQ(changes()[0].uuid, uuid(1));
  EXPECT_EQ(changes()[0].opened.at(0).kind, ReasonKind::kUnmonitored);
  EXPECT_TRUE(healthy(1));
  set_faults("{1: {lost: true}}");
  EXPECT_TRUE(is_out(1));
}

TEST_F(HealthWatchTest, WithoutADriverEveryGpuIsLostUntilItIsLoaded) {
  start("k80");
  std::atomic<bool> loaded = false;
  const auto none = std::make_shared<const Result<Nvml>>(fail(ErrorKind::kUnavailable, "no driver"));
  watch([&] { return loaded ? nvml_ : none; });
  ASSERT_TRUE(is_out(0));
  ASSERT_TRUE(is_out(1));
  EXPECT_THAT(texts(0), ElementsAre("the driver is not there"));
  loaded = true;
  EXPECT_TRUE(is_back(0));
  EXPECT_TRUE(is_back(1));
}

TEST_F(HealthWatchTest, AGpuThatIsFoundWithItsDriverIsNotLost) {
  start("k80");
  const auto all = std::exchange(devices_, {});
  std::atomic<bool> loaded = false;
  const auto none = std::make_shared<const Result<Nvml>>(fail(ErrorKind::kUnavailable, "no driver"));
  options_.poll_every = 300ms;
  watch([&] { return loaded ? nvml_ : none; });
  std::this_thread::sleep_for(100ms);  // the watch has heard that there is no driver
  loaded = true;
  watch_->watch(all);
  devices_ = all;
  set_faults("{1: {lost: true}}");
  ASSERT_TRUE(is_out(1));
  EXPECT_THAT(texts(1), ElementsAre("the driver has lost it"));
  for (const auto& change : changes()) EXPECT_NE(change.uuid, uuid(0));
}

TEST_F(HealthWatchTest, EverybodyLetsGoOfAnOldLibraryBeforeTheNextIsAsked) {
  start("k80");
  options_.poll_every = 2s;
  const std::weak_ptr<const Result<Nvml>> old = nvml_;
  std::atomic<bool> upgraded = false;
  std::atomic<int> after = 0;
  std::atomic<bool> old_was_gone = false;
  watch([&, first = std::move(nvml_)]() mutable -> SharedNvml {
    if (!upgraded) return first;
    // As after an upgrade: the first answer still comes out of the old library.
    if (++after == 2) old_was_gone = old.expired();
    first.reset();
    return nvml_ = std::make_shared<const Result<Nvml>>(Nvml::load(DROVER_SIM_LIBRARY));
  });
  set_faults("{0: {xid: [119]}}");
  ASSERT_TRUE(is_out(0));
  set_faults("{0: {xid: []}}");
  upgraded = true;
  EXPECT_TRUE(until([&] { return after >= 2; }));
  EXPECT_TRUE(old_was_gone);
  watch_.reset();  // it uses what stands here
}

TEST_F(HealthWatchTest, GpusThatAreFoundLaterAreWatchedToo) {
  start("k80");
  const auto all = devices_;
  devices_.pop_back();
  watch();
  watch_->watch(all);
  watch_->watch(all);
  devices_ = all;
  set_faults("{1: {lost: true}}");
  EXPECT_TRUE(is_out(1));
  EXPECT_TRUE(healthy(0));
}

TEST_F(HealthWatchTest, AnotherCardInItsPlaceIsNotTheGpu) {
  start("k80");
  devices_[0].uuid = "GPU-of-yesterday";
  watch();
  ASSERT_TRUE(is_out(0));
  EXPECT_THAT(texts(0), ElementsAre("the driver no longer lists it"));
  EXPECT_TRUE(healthy(1));
}

TEST_F(HealthWatchTest, AGpuWhosePlaceIsNotKnownIsFoundByItsUuid) {
  start("k80");
  for (auto& device : devices_) device.pci.reset();
  set_faults("{0: {lost: true}}");
  watch();
  ASSERT_TRUE(is_out(0));
  let_polls_pass();
  EXPECT_TRUE(healthy(1));
  EXPECT_THAT(changes().back().opened.at(0).kind, ReasonKind::kLost);
}

TEST_F(HealthWatchTest, AQueryThatTheDriverCannotAnswerMeansNothing) {
  start("k80");
  set_faults("{0: {fail: {nvmlDeviceGetTotalEccErrors: 999, nvmlDeviceGetFieldValues: 999}}}");
  watch();
  let_polls_pass();
  EXPECT_TRUE(healthy(0));
  EXPECT_THAT(changes(), IsEmpty());
  set_faults("{0: {recovery_action: reset}}");
  ASSERT_TRUE(is_out(0));
  set_faults("{0: {fail: {nvmlDeviceGetFieldValues: 999}}}");
  EXPECT_TRUE(until([&] { return texts(0).size() == 2; })) << "what it could tell before is missed";
  EXPECT_THAT(texts(0), Contains("it answers with NVML error 999"));
}

}  // namespace
}  // namespace drover::gpu
