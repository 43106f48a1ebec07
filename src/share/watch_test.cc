// Over the simulator: what its fault file says of processes must be judged, in time.

#include "share/watch.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fake_tree.h"
#include "gpu/discovery.h"

namespace drover::share {
namespace {

using namespace std::chrono_literals;

constexpr const char* kStat = "7 (a) b) c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1234 100 200\n";

TEST(PlaceOfTest, IsThatOfTheProcess) {
  FakeTree proc;
  proc.file("7/stat", kStat);
  proc.file("7/cgroup", "0::/drover/task-1\n");
  EXPECT_EQ(place_of(proc.root(), 7).born, 1234U);
  EXPECT_EQ(place_of(proc.root(), 7).cgroups, "0::/drover/task-1\n");
  EXPECT_EQ(place_of(proc.root(), 8).born, 0U);
}

/// Its first thread has ended, and its group may be forgotten; others hold what it has.
TEST(PlaceOfTest, IsThatOfThreadsThatGoOn) {
  FakeTree proc;
  auto ended = std::string(kStat);
  ended.replace(ended.find(" S "), 3, " Z ");
  for (const char* folder : {"7", "7/task/7"}) {
    proc.file(std::string(folder) + "/stat", ended);
    proc.file(std::string(folder) + "/cgroup", "0::/\n");
  }
  EXPECT_EQ(place_of(proc.root(), 7).born, 0U) << "nothing of it goes on";
  proc.file("7/task/9/stat", kStat);
  proc.file("7/task/9/cgroup", "0::/drover/task-1\n");
  EXPECT_EQ(place_of(proc.root(), 7).born, 1234U);
  EXPECT_EQ(place_of(proc.root(), 7).cgroups, "0::/drover/task-1\n");
}

class WatchTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DROVER_SIM_PROFILE", DROVER_SIM_PROFILES "/k80.yaml", 1);
    ::setenv("DROVER_SIM_FAULTS", faults_.c_str(), 1);
    nvml_ = std::make_shared<const Result<Nvml>>(gpu::Nvml::load(DROVER_SIM_LIBRARY));
    ASSERT_TRUE(*nvml_);
    devices_ = gpu::discover(*nvml_, {.kernel = std::nullopt, .simulation = "k80"}).devices;
  }
  ~WatchTest() override {
    const std::weak_ptr<const Result<Nvml>> library = nvml_;
    nvml_.reset();
    while (!library.expired()) std::this_thread::sleep_for(10ms);  // a thread that was left behind has it
    ::unsetenv("DROVER_SIM_PROFILE");
    ::unsetenv("DROVER_SIM_FAULTS");
  }
  using Nvml = gpu::Nvml;

  void set_faults(const std::string& text) const {
    std::ofstream(faults_ + ".new") << text;
    std::filesystem::rename(faults_ + ".new", faults_);
  }
  gpu::UsageSampler::Library library() const {
    return [nvml = nvml_] { return nvml; };  // a thread that is left behind may ask late
  }
  /// This process is of the task "mine"; it may hold 1 GiB of the first GPU.
  Shares shares() const {
    return {{devices_.front()}, {{devices_.front().uuid, "mine", {"mine"}, 1ULL << 30}}, [] {
              return [](std::string_view cgroups) { return std::string(cgroups.empty() ? "" : "mine"); };
            }};
  }
  std::function<void(std::vector<Verdict>)> tell() {
    return [this](std::vector<Verdict> verdicts) {
      const std::lock_guard lock(mutex_);
      told_.insert(told_.end(), verdicts.begin(), verdicts.end());
      changed_.notify_all();
    };
  }
  std::vector<Verdict> told_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [&] { return !told_.empty(); });
    return told_;
  }

  FakeTree tree_;
  const std::string faults_ = tree_ / "faults.yaml";
  gpu::SharedNvml nvml_;
  std::vector<gpu::Device> devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Verdict> told_;
};

std::string holds(pid_t pid, int mib) {
  return "{0: {processes: [{pid: " + std::to_string(pid) + ", memory_mib: " + std::to_string(mib) + "}]}}";
}

TEST_F(WatchTest, TellsWhoHoldsMore) {
  Watch watch(library(), Punishment::kReport, tell());
  watch.set(shares());
  set_faults(holds(::getpid(), 1024));
  EXPECT_THAT(told_within(400ms), testing::IsEmpty());
  set_faults(holds(::getpid(), 2048));
  const auto told = told_within(20s);
  ASSERT_THAT(told, testing::SizeIs(1));
  EXPECT_EQ(told[0].held, 2ULL << 30);
  EXPECT_EQ(watch.figures().accounts[0].held, 2ULL << 30);
  EXPECT_EQ(watch.figures().unattributed.at(devices_.front().uuid), 0U);
  watch.set({});
  while (!watch.figures().accounts.empty()) std::this_thread::sleep_for(1ms);
}

TEST_F(WatchTest, ANumberThatNobodyHasIsNobodys) {
  const auto child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  Watch watch(library(), Punishment::kKill, tell());
  watch.set(shares());
  set_faults(holds(child, 4096));
  EXPECT_THAT(told_within(500ms), testing::IsEmpty());
  EXPECT_EQ(watch.figures().unattributed.at(devices_.front().uuid), 4ULL << 30);
}

/// Pages that are made later, or anew in the place of others, are looked at though nobody says so.
TEST_F(WatchTest, LooksAtThePagesThatAreThere) {
  Watch watch(library(), Punishment::kReport, tell());
  auto watched = shares();
  watched.guarded["task-1"] = {tree_ / "task"};
  watch.set(watched);
  tree_.folder("task");
  const auto folder = Directory::open(tree_ / "task").value();
  const auto account = tree_ / "task/share/account";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(make_pages(folder, {{devices_.front().uuid, 1ULL << 30, 500}}));
    const auto size = std::filesystem::file_size(account);
    std::filesystem::resize_file(account, 1);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (std::filesystem::file_size(account) != size && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(std::filesystem::file_size(account), size) << i;
  }
}

/// Whatever they say when it comes to them: who made them may have been killed before he changed them.
TEST_F(WatchTest, HasPagesSayWhatTheyAreToSay) {
  Watch watch(library(), Punishment::kReport, tell());
  const auto& gpu = devices_.front().uuid;
  tree_.folder("task");
  const auto folder = Directory::open(tree_ / "task").value();
  ASSERT_TRUE(make_pages(folder, {{gpu, 1ULL << 30, 500}}));
  auto watched = shares();
  for (const auto& limits :
       {std::vector<Limit>{{gpu, 3ULL << 30, 750}}, std::vector<Limit>{{gpu, 2ULL << 30, 250}}}) {
    watched.guarded["task-1"] = {tree_ / "task", limits};
    watch.set(watched);
    const auto until = std::chrono::steady_clock::now() + 20s;
    const auto said = [&] { return Pages::open(folder).value().limits(); };
    while (said() != limits && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(said(), limits);
  }
  watched.guarded["task-1"].limits = {{"GPU-of-nobody", 1ULL << 30, 750}};
  watch.set(watched);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(Pages::open(folder).value().limits(), (std::vector<Limit>{{gpu, 2ULL << 30, 250}}));
}

TEST_F(WatchTest, IsNotHeldUpByADriverThatHangs) {
  set_faults("{0: {slow_ms: 400}}");
  const auto began = std::chrono::steady_clock::now();
  {
    Watch watch(library(), Punishment::kKill, tell());
    watch.set(shares());
    EXPECT_THAT(told_within(300ms), testing::IsEmpty());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

}  // namespace
}  // namespace drover::share
