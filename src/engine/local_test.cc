#include "engine/local.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "control/journal.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;

/// Containers that live in memory, and outlive the engine as real ones do.
struct World {
  std::map<std::string, int> launches;
  std::map<std::string, int> attempts;  ///< the last that was launched
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
    world_.attempts[launch.task.id] = launch.attempt;
    world_.alive.insert(launch.task.id);
    world_.asked.push_back(launch);
    return {};
  }
  Status stop(const std::string& id, bool) override {
    world_.stopped.push_back(id);
    return {};
  }
  Result<container::Found> recover(const std::string& id, int attempt) override {
    const bool of_this_attempt = world_.attempts.contains(id) && world_.attempts.at(id) == attempt;
    return of_this_attempt && world_.alive.contains(id) ? container::Found::kAlive : container::Found::kNever;
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

  static placement::Node node(int gpus) {
    placement::Node result{.name = "here"};
    for (int i = 0; i < gpus; ++i) {
      gpu::Device device;
      device.uuid = "GPU-" + std::to_string(i);
      device.index = device.minor.emplace(i);
      device.memory_bytes = 16ULL << 30;
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
    const auto entries = journal->load();
    ASSERT_TRUE(entries);
    auto journaled = control::decode_journal(*entries);
    ASSERT_TRUE(journaled) << to_string(journaled.error());
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
    ports.usable_cpus = {0, 1, 2, 3};
    ports.driver_supply = []() -> Result<container::DriverSupply> { return container::DriverSupply{}; };
    NodeView view;
    view.name = "here";
    engine_ = std::make_unique<LocalEngine>(
        ports, std::move(*journal),
        control::restore(std::move(journaled->records), std::move(journaled->rules), node(gpus)),
        std::move(view));
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
    ending.stopped = std::find(world_.stopped.begin(), world_.stopped.end(), id) != world_.stopped.end();
    ending.finished_at = now_;
    world_.alive.erase(id);
    engine_->watcher().ended(id, ending);
    run();
  }
  static workload::GangRequest gang_of(int size, int gpus) {
    workload::GangRequest request;
    for (int rank = 0; rank < size; ++rank) {
      auto& task = request.members.emplace_back().task;
      task.name = "train";
      task.command = {"true"};
      if (gpus > 0) task.resources.gpus = {{gpus, {}}};
    }
    return request;
  }
  Result<std::vector<control::TaskRecord>> submit_gang(workload::GangRequest request,
                                                       const Caller& caller = {}) {
    Result<std::vector<control::TaskRecord>> answer = fail(ErrorKind::kInternal, "no answer came");
    engine_->submit_gang(caller, std::move(request), [&](auto result) { answer = std::move(result); });
    return answer;
  }
  Result<control::TaskRecord> submit_with(const std::function<void(workload::Task&)>& change,
                                          const Caller& caller = {}) {
    workload::TaskRequest request;
    request.task.name = "job";
    request.task.command = {"true"};
    change(request.task);
    Result<control::TaskRecord> answer = fail(ErrorKind::kInternal, "no answer came");
    engine_->submit(caller, request, [&](auto result) { answer = std::move(result); });
    return answer;
  }
  Status set_queue(placement::Queue queue, const Caller& caller = {}) {
    Status answer;
    engine_->set_queue(caller, std::move(queue), [&](Status status) { answer = std::move(status); });
    return answer;
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
  const auto waits = engine_->explain({}, waiting);
  EXPECT_EQ(waits->reasons, std::vector<std::string>{"1 GPU is wanted and 0 of 2 are free"});
  EXPECT_EQ(waits->place, 1);
  EXPECT_EQ(engine_->explain({}, holder)->reasons,
            std::vector<std::string>{"it has GPU 0 (GPU-0), GPU 1 (GPU-1)"});
  end(holder, 3);
  EXPECT_EQ(engine_->explain({}, holder)->reasons,
            (std::vector<std::string>{"exited with status 3", "it had GPU 0 (GPU-0), GPU 1 (GPU-1)"}));
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

TEST_F(LocalEngineTest, AGangIsAcceptedWholeAndToldOfItsOthers) {
  begin();
  const auto records = submit_gang(gang_of(2, 1));
  ASSERT_TRUE(records) << to_string(records.error());
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[1].task.id, "t1-1");
  run();
  ASSERT_EQ(world_.asked.size(), 2u);
  const auto& place = world_.asked[1].gang;
  ASSERT_TRUE(place);
  EXPECT_EQ(place->id, "t1");
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->hosts, (std::vector<std::string>{"here", "here"}));
  EXPECT_EQ(place->first_port, (*records)[0].gang_port);
  begin();
  EXPECT_EQ(engine_->task({}, "t1-0")->gang_port, place->first_port) << "kept over a restart";
  EXPECT_EQ(world_.launches["t1-0"], 1);
  EXPECT_EQ(engine_->explain({}, "t1-1")->reasons.back(), "it is rank 1 of the 2 members of the gang t1");

  EXPECT_EQ(submit_gang(gang_of(2, 2)).error().kind, ErrorKind::kInvalid);
  auto wrong = gang_of(2, 0);
  wrong.members[1].user = "no-such-user";
  EXPECT_EQ(submit_gang(wrong).error().path, "/members/1");
  EXPECT_EQ(engine_->tasks({}).size(), 2u);
}

TEST_F(LocalEngineTest, AGangIsStoppedByItsIdOrItsName) {
  for (const char* named : {"t1", "train", "t1-1"}) {
    ids_ = 0;
    begin();
    ASSERT_TRUE(submit_gang(gang_of(2, 1)));
    run();
    Result<control::TaskRecord> stopped = fail(ErrorKind::kInternal, "no answer came");
    engine_->stop({}, named, false, [&](auto result) { stopped = std::move(result); });
    ASSERT_TRUE(stopped) << to_string(stopped.error());
    run();
    EXPECT_EQ(world_.stopped.size(), 2u) << named;
    for (const char* id : {"t1-0", "t1-1"}) end(id, 143);
    EXPECT_EQ(state_of("t1-0"), TaskState::kKilled) << named;
    TearDown();
    world_ = {};
    SetUp();
  }
}

TEST_F(LocalEngineTest, APreemptedTaskStartsAfreshAlsoOverRestarts) {
  begin(1);
  const auto low = submit(1)->task.id;
  run();
  const auto high = submit_with([](auto& task) {
                      task.resources.gpus = {{1, {}}};
                      task.priority = 5;
                    })->task.id;
  run();
  EXPECT_EQ(world_.stopped, std::vector<std::string>{low});
  begin(1);  // killed after the stop
  EXPECT_EQ(world_.stopped, (std::vector<std::string>{low, low}));
  end(low, 143);
  EXPECT_EQ(state_of(low), TaskState::kQueued);
  EXPECT_EQ(state_of(high), TaskState::kStarting);
  EXPECT_EQ(engine_->explain({}, low)->reasons.back(), "it ran before: preempted by work of higher priority");
  begin(1);  // killed while it waits
  EXPECT_EQ(world_.forgotten, std::vector<std::string>{});
  EXPECT_EQ(std::count(world_.cleaned.begin(), world_.cleaned.end(), low), 2);
  end(high, 0);
  EXPECT_EQ(world_.launches[low], 2);
  EXPECT_EQ(world_.attempts[low], 1);
  begin(1);  // killed while it runs again
  EXPECT_EQ(world_.launches[low], 2);
  end(low, 0);
  EXPECT_EQ(state_of(low), TaskState::kFinished);
}

TEST_F(LocalEngineTest, SharesOfOneGpuAreShownWithAllWhoHaveThem) {
  begin(1);
  const auto half = [](workload::Task& task) {
    task.resources.gpus = {{1, {}}};
    task.resources.share.milli = 500;
  };
  const auto first = submit_with(half)->task.id;
  submit_with(half);
  run();
  const auto holders = engine_->holders({});
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].uuid, holders[1].uuid);
  EXPECT_EQ(holders[0].milli, 500);
  EXPECT_EQ(holders[0].memory_bytes, 8ULL << 30);
  ASSERT_EQ(world_.asked.size(), 2u);
  EXPECT_EQ(world_.asked[0].gpu_devices.size(), 1u);
  EXPECT_EQ(world_.asked[0].gpu_shares.at(0).milli, 500);
  EXPECT_EQ(engine_->node().gpus_free, 0);
  EXPECT_EQ(engine_->explain({}, first)->reasons.back(), "it has 0.5 of GPU 0 (GPU-0) (not enforced)");
}

TEST_F(LocalEngineTest, SaysWhereATaskIsPinnedAndWhereItCannotBe) {
  begin(1);
  auto machine = node(1);
  machine.inventory.devices[0].numa_node = 0;
  const auto explained = [&](std::vector<int> cpus) {
    machine.numa = {{0, cpus}};
    machine.milli_cpus = 64'000;
    engine_->set_machine(machine);
    const auto id = submit(1)->task.id;
    run();
    EXPECT_EQ(world_.asked.back().cpus, cpus);
    auto text = engine_->explain({}, id)->reasons.back();
    end(id, 0);
    return text;
  };
  EXPECT_EQ(explained({1, 2}), "it is pinned to the CPUs 1-2");
  EXPECT_EQ(explained({3, 4, 5}),
            "it is pinned to the CPUs 3: of those chosen for it (3-5) this host has no others");
  EXPECT_EQ(explained({20, 21}), "it is not pinned: the CPUs chosen for it (20-21) are not on this host");
  EXPECT_EQ(explained({0, 1, 2, 3, 4}),
            "it is not pinned: the CPUs chosen for it (0-4) are all that this host has");
}

TEST_F(LocalEngineTest, PlansWithoutDoing) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const auto starts = engine_->plan(alice, gang_of(1, 2));
  ASSERT_TRUE(starts) << to_string(starts.error());
  EXPECT_TRUE(starts->starts_now);
  ASSERT_EQ(starts->members.size(), 1u);
  EXPECT_EQ(starts->members[0].gpus.size(), 2u);
  EXPECT_TRUE(engine_->tasks({}).empty());

  const auto others = submit(2, Caller{{1001, 1001, {}, "bob", "/"}})->task.id;
  const auto waits = engine_->plan(alice, gang_of(2, 1));
  EXPECT_FALSE(waits->starts_now);
  EXPECT_EQ(waits->place, 1);
  EXPECT_FALSE(waits->reasons.empty());
  auto urgent = gang_of(1, 2);
  urgent.members[0].task.priority = 1;
  EXPECT_EQ(engine_->plan(alice, urgent).error().path, "/priority");
  const auto preempts = engine_->plan({}, urgent);
  EXPECT_EQ(preempts->victims, 1);
  EXPECT_EQ(preempts->victim_ids, std::vector<std::string>{others});
  EXPECT_EQ(state_of(others), TaskState::kStarting);
  EXPECT_EQ(engine_->plan(alice, gang_of(1, 3)).error().kind, ErrorKind::kInvalid);
}

TEST_F(LocalEngineTest, QueuesAreRootsToSetAndEverybodysToSee) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const Caller bob{{1001, 1001, {}, "bob", "/"}};
  EXPECT_EQ(set_queue({"research/vision"}, alice).error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(set_queue({"research/vision", {1000, {}, {}}, {2000, {}, {}}}).error().path, "/guarantee/gpus");
  ASSERT_TRUE(set_queue({"research/vision", {1000, {}, {}}, {}, 1, {"alice"}}));
  const auto in_vision = [](workload::Task& task) {
    task.queue = "research/vision";
    task.resources.gpus = {{1, {}}};
  };
  EXPECT_EQ(submit_with(in_vision, bob).error().kind, ErrorKind::kPermissionDenied);
  ASSERT_TRUE(submit_with(in_vision, alice));
  const auto waiting = submit_with(in_vision, alice)->task.id;
  begin();  // the rules are in the journal
  const auto queues = engine_->queues(bob);
  ASSERT_EQ(queues.size(), 3u);
  EXPECT_EQ(queues[0].queue.path, "default");
  EXPECT_EQ(queues[1].queue.path, "research");
  EXPECT_EQ(queues[1].used.gpu_milli, 1000);
  EXPECT_TRUE(queues[1].waiting.empty());
  const auto& vision = queues[2];
  EXPECT_EQ(vision.queue.limit.gpu_milli, 1000);
  EXPECT_FALSE(vision.usable);
  ASSERT_EQ(vision.waiting.size(), 1u);
  EXPECT_EQ(vision.waiting[0].user, "alice");
  EXPECT_EQ(vision.waiting[0].wanted.gpu_milli, 1000);
  EXPECT_EQ(vision.waiting[0].id, "");
  EXPECT_TRUE(vision.waiting[0].reasons.empty());
  EXPECT_EQ(engine_->queues(alice)[2].waiting[0].id, waiting);
  EXPECT_FALSE(engine_->queues(alice)[2].waiting[0].reasons.empty());
  Status removed;
  const auto keep = [&](Status status) { removed = std::move(status); };
  engine_->remove_queue({}, "research/vision", keep);
  EXPECT_EQ(removed.error().kind, ErrorKind::kConflict);
  engine_->remove_queue({}, "nobody's", keep);
  EXPECT_EQ(removed.error().kind, ErrorKind::kNotFound);
}

TEST_F(LocalEngineTest, QuotasAreRootsToSetAndOnesOwnToSee) {
  begin();
  const Caller alice{{1000, 1000, {}, "alice", "/"}};
  const placement::Subject subject{placement::SubjectKind::kUser, "alice"};
  Status answer;
  const auto keep = [&](Status status) { answer = std::move(status); };
  engine_->set_quota(alice, {subject, {1000, {}, {}}, 5}, keep);
  EXPECT_EQ(answer.error().kind, ErrorKind::kPermissionDenied);
  engine_->set_quota({}, {subject, {1000, {}, {}}, 5}, keep);
  ASSERT_TRUE(answer) << to_string(answer.error());
  ASSERT_TRUE(submit(1, alice));
  ASSERT_EQ(engine_->quotas(alice).size(), 1u);
  EXPECT_EQ(engine_->quotas(alice)[0].used.gpu_milli, 1000);
  EXPECT_TRUE(engine_->quotas(Caller{{1001, 1001, {}, "bob", "/"}}).empty());
  engine_->remove_quota({}, subject, keep);
  EXPECT_TRUE(answer);
  engine_->remove_quota({}, subject, keep);
  EXPECT_EQ(answer.error().kind, ErrorKind::kNotFound);
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
