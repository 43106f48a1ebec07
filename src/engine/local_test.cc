#include "engine/local.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/decode.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;

/// Containers that live in memory, and outlive the engine as real ones do.
struct World {
  std::map<std::string, int> launches;
  std::set<std::string> alive;
  std::vector<std::string> stopped, cleaned, forgotten;
  std::vector<container::Launch> asked;
  std::optional<Error> launch_error;
};

class FakeContainerizer final : public container::Containerizer {
 public:
  explicit FakeContainerizer(World& world) : world_(world) {}
  Status launch(const container::Launch& launch) override {
    if (world_.launch_error) return Failure(*world_.launch_error);
    ++world_.launches[launch.task.id];
    world_.alive.insert(launch.task.id);
    world_.asked.push_back(launch);
    return {};
  }
  Status stop(const std::string& id, bool) override {
    world_.stopped.push_back(id);
    return {};
  }
  Result<container::Found> recover(const std::string& id, int) override {
    return world_.alive.contains(id) ? container::Found::kAlive : container::Found::kNever;
  }
  Status clean(const std::string& id) override {
    world_.cleaned.push_back(id);
    return {};
  }
  Status forget(const std::string& id) override {
    world_.forgotten.push_back(id);
    world_.alive.erase(id);
    return {};
  }
  std::vector<std::string> known() const override { return {world_.alive.begin(), world_.alive.end()}; }
  std::string sandbox(const std::string& id) const override { return "/sandbox/" + id; }

 private:
  World& world_;
};

class LocalEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "drover-engine-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    engine_.reset();
    std::filesystem::remove_all(folder_);
  }

  static placement::whole::Node node(int gpus) {
    placement::whole::Node result;
    for (int i = 0; i < gpus; ++i) {
      gpu::Device device;
      device.uuid = "GPU-" + std::to_string(i);
      device.index = device.minor.emplace(i);
      result.inventory.devices.push_back(device);
    }
    const auto count = static_cast<std::size_t>(gpus);
    result.inventory.links.assign(count, std::vector<gpu::Link>(count));
    result.milli_cpus = 8000;
    result.memory_bytes = 1ULL << 34;
    return result;
  }

  /// A daemon's life begins: as after kill -9, with the same journal and the same containers.
  void begin(int gpus = 2) {
    engine_.reset();
    work_.clear();
    auto journal = store::Journal::open(folder_ / "state.db");
    ASSERT_TRUE(journal) << to_string(journal.error());
    std::vector<control::TaskRecord> records;
    const auto entries = journal->load();
    ASSERT_TRUE(entries);
    for (const auto& [id, text] : *entries)
      records.push_back(*control::decode_record(*parse_json(text, "record")));
    Ports ports;
    ports.post = [this](Work work) { work_.push_back(std::move(work)); };
    ports.pool = ports.post;
    ports.now = [this] { return now_; };
    ports.wake_at = [this](TimePoint at) { wake_at_ = at; };
    ports.new_id = [this] { return "t" + std::to_string(++ids_); };
    ports.log = [this](const std::string& line) { log_.push_back(line); };
    ports.gpu_nodes = [](const std::vector<gpu::Device>& devices) -> Result<std::vector<gpu::DeviceNode>> {
      std::vector<gpu::DeviceNode> nodes;
      for (const auto& device : devices)
        nodes.push_back(
            {"/dev/nvidia" + std::to_string(*device.minor), 195, static_cast<unsigned>(*device.minor)});
      return nodes;
    };
    ports.driver_supply = []() -> Result<container::DriverSupply> { return container::DriverSupply{}; };
    engine_ = std::make_unique<LocalEngine>(ports, std::move(*journal),
                                            control::restore(std::move(records), node(gpus)), NodeView{});
    engine_->start(std::make_unique<FakeContainerizer>(world_), "fake");
    run();
  }
  void run() {
    while (!work_.empty()) {
      auto work = std::move(work_.front());
      work_.pop_front();
      work();
    }
  }
  Result<control::TaskRecord> submit(int gpus, const Caller& caller = {},
                                     std::optional<std::string> user = {}) {
    workload::TaskRequest request;
    request.task.name = "job";
    request.task.command = {"true"};
    if (gpus > 0) request.task.resources.gpus = {{gpus, {}}};
    request.user = std::move(user);
    Result<control::TaskRecord> answer = fail(ErrorKind::kInternal, "no answer came");
    engine_->submit(caller, request, [&](auto result) { answer = std::move(result); });
    return answer;
  }
  void end(const std::string& id, int status) {
    workload::Ending ending;
    ending.exit_status = status;
    ending.finished_at = now_;
    engine_->watcher().ended(id, ending);
    run();
  }
  TaskState state_of(const std::string& id) { return engine_->task({}, id)->state; }

  std::filesystem::path folder_;
  TimePoint now_{1'700'000'000'000ms};
  std::optional<TimePoint> wake_at_;
  int ids_ = 0;
  std::deque<Work> work_;
  std::vector<std::string> log_;
  World world_;
  std::unique_ptr<LocalEngine> engine_;
};

TEST_F(LocalEngineTest, AnswersOnlyWhatTheJournalHas) {
  begin();
  const auto accepted = submit(2);
  ASSERT_TRUE(accepted) << to_string(accepted.error());
  // Killed before anything was launched.
  begin();
  EXPECT_EQ(world_.launches[accepted->task.id], 1);
  EXPECT_EQ(world_.asked[0].gpu_devices.size(), 2u);
  EXPECT_EQ(state_of(accepted->task.id), TaskState::kStarting);
}

TEST_F(LocalEngineTest, ARestartFindsRunningTasksAndDoublesNone) {
  begin();
  const auto id = submit(1)->task.id;
  run();
  engine_->watcher().started(id, {42, now_});
  run();
  begin();
  EXPECT_EQ(world_.launches[id], 1);
  EXPECT_EQ(state_of(id), TaskState::kRunning);
  EXPECT_EQ(engine_->node().gpus_free, 1);
  end(id, 0);
  EXPECT_EQ(state_of(id), TaskState::kFinished);
  EXPECT_EQ(engine_->node().gpus_free, 2);
  EXPECT_EQ(world_.cleaned, std::vector<std::string>{id});
}

TEST_F(LocalEngineTest, WhatTheJournalDoesNotKnowIsEnded) {
  world_.alive.insert("stray");
  begin();
  EXPECT_TRUE(world_.alive.empty());
  EXPECT_EQ(world_.forgotten, std::vector<std::string>{"stray"});
}

TEST_F(LocalEngineTest, AFailedLaunchTellsWhyAndGivesTheGpusBack) {
  begin();
  world_.launch_error = Error{ErrorKind::kInvalid, "The image '/x' is not an image", "look", ""};
  const auto id = submit(2)->task.id;
  run();
  EXPECT_EQ(state_of(id), TaskState::kFailed);
  EXPECT_EQ(engine_->task({}, id)->reason, "The image '/x' is not an image (look)");
  EXPECT_EQ(engine_->node().gpus_free, 2);
}

TEST_F(LocalEngineTest, OnlyRootActsForOthers) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const Caller bob{{1001, 1001, {}, "bob", "/"}};
  const auto own = submit(1, alice);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->task.user.uid, 1000u);
  EXPECT_EQ(own->task.owner, 1000u);
  EXPECT_EQ(submit(0, alice, "root").error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(submit(0, {}, "65534")->task.user.uid, 65534u);
  EXPECT_EQ(engine_->task(bob, own->task.id).error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(engine_->tasks(bob).empty());
  EXPECT_FALSE(engine_->sandbox(bob, own->task.id));
  Result<control::TaskRecord> stopped = fail(ErrorKind::kInternal, "no answer came");
  engine_->stop(bob, own->task.id, true, [&](auto result) { stopped = std::move(result); });
  EXPECT_EQ(stopped.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(engine_->holders(bob).at(0).task_id, "");
  EXPECT_TRUE(engine_->events(bob, 0).empty());
  EXPECT_FALSE(engine_->events(alice, 0).empty());
}

TEST_F(LocalEngineTest, ExplainsWhyATaskWaitsAndHowItEnded) {
  begin();
  const auto holder = submit(2)->task.id;
  const auto waiting = submit(1)->task.id;
  EXPECT_EQ(engine_->explain({}, waiting), std::vector<std::string>{"1 GPU is wanted and 0 of 2 are free"});
  EXPECT_EQ(engine_->explain({}, holder), std::vector<std::string>{"it has the GPUs: GPU-0, GPU-1"});
  end(holder, 3);
  EXPECT_EQ(engine_->explain({}, holder),
            (std::vector<std::string>{"exited with status 3", "it had the GPUs: GPU-0, GPU-1"}));
}

TEST_F(LocalEngineTest, FindsATaskByPrefixAndName) {
  begin();
  const auto first = submit(0)->task.id;
  EXPECT_EQ(engine_->task({}, "job")->task.id, first);
  const auto second = submit(0)->task.id;
  EXPECT_EQ(engine_->task({}, "job").error().hint, "name one by its id: t1, t2");
  end(first, 0);
  EXPECT_EQ(engine_->task({}, "job")->task.id, second) << "a name means what goes on now";
  EXPECT_EQ(engine_->task({}, "t").error().kind, ErrorKind::kInvalid);
}

TEST_F(LocalEngineTest, WakesWhenATasksTimeIsUp) {
  begin();
  workload::TaskRequest request;
  request.task.command = {"sleep", "60"};
  request.task.timeout = 5s;
  std::string id;
  engine_->submit({}, request, [&](auto result) { id = result->task.id; });
  run();
  engine_->watcher().started(id, {42, now_});
  run();
  EXPECT_EQ(wake_at_, now_ + 5s);
  now_ += 5s;
  engine_->tick();
  run();
  EXPECT_EQ(world_.stopped, std::vector<std::string>{id});
}

TEST_F(LocalEngineTest, AFullDiskRefusesTheTaskAndKeepsWhatHappened) {
  if (::geteuid() != 0 || ::mount("drover", folder_.c_str(), "tmpfs", 0, "size=192k") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here";
  begin();
  const auto id = submit(1)->task.id;
  run();
  const auto filler = folder_ / "filler";
  {
    std::FILE* file = std::fopen(filler.c_str(), "w");
    const std::string block(4096, 'x');
    while (std::fwrite(block.data(), 1, block.size(), file) == block.size() && std::fflush(file) == 0) {
    }
    std::fclose(file);
  }
  Result<control::TaskRecord> refused = submit(0);
  for (int i = 0; refused && i < 100; ++i) refused = submit(0);  // what the log file had room for
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted) << to_string(refused.error());
  end(id, 0);
  EXPECT_NE(state_of(id), TaskState::kFinished) << "what is not in the journal has not happened yet";
  std::filesystem::remove(filler);
  engine_->tick();
  run();
  EXPECT_EQ(state_of(id), TaskState::kFinished);
  engine_.reset();
  ::umount(folder_.c_str());
}

}  // namespace
}  // namespace drover::engine
