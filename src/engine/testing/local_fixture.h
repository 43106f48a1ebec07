#pragma once

// A LocalEngine over a real journal and containers that live in memory, whose work runs when the test says
// so.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

#include "control/journal.h"
#include "engine/local.h"
#include "store/testing/faulty_disk.h"

namespace drover::engine::testing {

/// Containers that live in memory, and outlive the engine as real ones do.
struct World {
  std::map<std::string, int> launches;
  std::map<std::string, int> attempts;  ///< the last that was launched
  std::map<std::string, int> processes;
  std::set<std::string> alive;
  std::set<std::string> ended;  ///< their folders are still there
  std::set<std::string> quarantined;
  std::set<std::string> endless;               ///< cannot be ended
  std::map<std::string, std::string> records;  ///< Launch::record, by task
  std::vector<std::string> stopped, cleaned, forgotten;
  std::vector<container::Launch> asked;
  std::optional<Error> launch_error, stop_error, clean_error, forget_error;
  std::map<std::string, std::string> strangers;  ///< who has GPUs open that are not his
  std::map<std::string, std::uint64_t> space;    ///< that tasks take up on the disk
  std::vector<std::size_t> probes;               ///< for strangers: at how many GPUs
  std::set<std::string> busy;                    ///< tasks whose GPUs work
  std::map<std::string, std::string> still_run;  ///< what of tasks does, in words
  std::optional<Error> no_guard, no_limits;      ///< why nothing holds tasks to their shares so
  std::vector<share::KernelLimit> kernel_limits;
  std::map<std::string, std::vector<share::KernelLimit>> changed_limits;  ///< by control group
  std::optional<Error> no_change;                                         ///< why the driver sets none
  int changes = 0;                                                        ///< how often it was asked to
};

class FakeContainerizer final : public container::Containerizer {
 public:
  explicit FakeContainerizer(World& world) : world_(world) {}
  Status launch(const container::Launch& launch) override {
    if (world_.launch_error) return Failure(*world_.launch_error);
    if (launch.may_start) DROVER_CHECK_OK(launch.may_start());
    ++world_.launches[launch.task.id];
    world_.attempts[launch.task.id] = launch.attempt;
    world_.processes[launch.task.id] = launch.processes;
    world_.alive.insert(launch.task.id);
    world_.asked.push_back(launch);
    world_.records[launch.task.id] = launch.record;
    return {};
  }
  Status stop(const std::string& id, bool) override {
    if (world_.stop_error) return Failure(*world_.stop_error);
    world_.stopped.push_back(id);
    return {};
  }
  Result<container::Found> recover(const std::string& id, int attempt) override {
    const bool of_this_attempt = world_.attempts.contains(id) && world_.attempts.at(id) == attempt;
    return of_this_attempt && world_.alive.contains(id) ? container::Found::kAlive : container::Found::kNever;
  }
  Status change_memory_limit(const std::string& id, const container::MemoryLimiter& change) override {
    return change("/groups/" + id);
  }
  Status clean(const std::string& id) override {
    if (world_.clean_error) return Failure(*world_.clean_error);
    world_.cleaned.push_back(id);
    return {};
  }
  Status forget(const std::string& id) override {
    if (world_.forget_error) return Failure(*world_.forget_error);
    world_.forgotten.push_back(id);
    world_.alive.erase(id);
    world_.ended.erase(id);
    return {};
  }
  std::vector<std::string> known() const override {
    std::set<std::string> ids = world_.ended;
    ids.insert(world_.alive.begin(), world_.alive.end());
    return {ids.begin(), ids.end()};
  }
  Result<container::FolderView> examine(const std::string& id) const override {
    const auto record = world_.records.find(id);
    return container::FolderView{world_.alive.contains(id),
                                 record == world_.records.end() ? "" : record->second};
  }
  Status end(const std::string& id) override {
    if (world_.endless.contains(id)) return fail(ErrorKind::kTimeout, "It does not end");
    if (world_.alive.erase(id) > 0) world_.ended.insert(id);
    return {};
  }
  Result<std::string> quarantine(const std::string& id) override {
    world_.ended.erase(id);
    world_.quarantined.insert(id);
    return "/quarantine/" + id;
  }
  Quarantine quarantined() const override {
    return {"/quarantine", {world_.quarantined.begin(), world_.quarantined.end()}};
  }
  std::string sandbox(const std::string& id) const override { return "/sandbox/" + id; }

 private:
  World& world_;
};

class LocalEngineTest : public ::testing::Test {
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
    started_ = open(node(gpus), ports(), std::make_unique<FakeContainerizer>(world_));
    ASSERT_TRUE(engine_) << to_string(started_.error());
    run();
  }
  /// Without an engine when the journal cannot be read.
  Status open(placement::Node machine, Ports ports, std::unique_ptr<container::Containerizer> containerizer) {
    DROVER_TRY(auto journal, store::Journal::open(folder_ / "state.db"));
    control::JournalReader reader;
    DROVER_CHECK_OK(journal.load([&](const auto& key, const auto& text) { return reader.read(key, text); }));
    NodeView view;
    view.name = "here";
    auto state = control::restore(std::move(reader).take(), std::move(machine));
    state.limits = limits_;
    state.placed_by_others = placed_by_others_;
    engine_ = std::make_unique<LocalEngine>(std::move(ports), std::move(journal), std::move(state),
                                            std::move(view));
    return engine_->start(std::move(containerizer), "fake");
  }
  Ports ports() {
    Ports ports;
    ports.post = [this](Work work) { work_.push_back(std::move(work)); };
    ports.pool = ports.slow_pool = [this](uid_t, Work work) { work_.push_back(std::move(work)); };
    ports.now = [this] { return now_; };
    ports.free_space = [this] { return free_; };
    ports.room_to_keep = room_to_keep_;
    ports.events = event_limits_;
    ports.free_unused = [this](std::uint64_t bytes, const std::set<control::ImageName>& named) {
      const auto freed = std::min(bytes, unused_);
      unused_ -= freed;
      free_ += freed;
      named_ = named;
    };
    ports.wake_at = [this](TimePoint at) { wake_at_ = at; };
    ports.new_id = [this] { return "t" + std::to_string(++ids_); };
    ports.log = [this](const std::string& line) { log_.push_back(line); };
    ports.info = [this](const std::string& line) { information_.push_back(line); };
    ports.gpu_nodes = [](const std::vector<gpu::Device>& devices) -> Result<std::vector<gpu::DeviceNode>> {
      std::vector<gpu::DeviceNode> nodes;
      for (const auto& device : devices)
        nodes.push_back(
            {"/dev/nvidia" + std::to_string(*device.minor), 195, static_cast<unsigned>(*device.minor)});
      return nodes;
    };
    ports.strangers = [this](const std::vector<gpu::Device>& devices, const std::vector<TaskProcesses>&) {
      world_.probes.push_back(devices.size());
      std::map<std::string, std::string> found;
      for (const auto& device : devices)
        if (const auto one = world_.strangers.find(device.uuid); one != world_.strangers.end())
          found.insert(*one);
      return found;
    };
    ports.what_still_runs = [this](const std::vector<TaskProcesses>&) { return world_.still_run; };
    ports.busy_tasks = [this](const auto&, const auto&) { return world_.busy; };
    ports.task_space = [this](const std::vector<TaskProcesses>& tasks) {
      std::map<std::string, Result<std::uint64_t>> found;
      for (const auto& task : tasks) found.emplace(task.id, world_.space[task.id]);
      return found;
    };
    ports.usable_cpus = {0, 1, 2, 3};
    ports.driver_supply = [this](bool guarded) -> Result<container::DriverSupply> {
      if (guarded && world_.no_guard) return Failure(*world_.no_guard);
      container::DriverSupply supply;
      if (guarded) supply.on_host = {{"/guard", "/driver"}};
      return supply;
    };
    ports.memory_limiter = [this](const auto& limits) -> Result<container::MemoryLimiter> {
      if (world_.no_limits) return Failure(*world_.no_limits);
      return [this, limits](const std::string&) -> Status {
        world_.kernel_limits = limits;
        return {};
      };
    };
    ports.change_memory_limits = [this](const std::string& group, const auto& limits) -> Status {
      ++world_.changes;
      if (world_.no_change) return Failure(*world_.no_change);
      world_.changed_limits[group] = limits;
      return {};
    };
    return ports;
  }
  /// What an administrator does who takes the journal away, or puts an older one back.
  void lose_journal() {
    engine_.reset();
    for (const char* name : {"state.db", "state.db-wal"}) std::filesystem::remove(folder_ / name);
  }
  void run() {
    while (!work_.empty()) {
      auto work = std::move(work_.front());
      work_.pop_front();
      work();
    }
  }
  /// What `run` returns, or that it could not be kept.
  template <typename Run, typename T = std::invoke_result_t<Run>>
  T transact(Run run) {
    T result;
    Status kept = fail(ErrorKind::kInternal, "no answer came");
    engine_->transact([&] { result = run(); }, [&](Status status) { kept = std::move(status); });
    return kept ? std::move(result) : T(Failure(kept.error()));
  }
  Result<control::Made> change(const control::Event& event) {
    return transact([&] { return engine_->change(event); });
  }
  /// Whatever the state says to it.
  Status ask(const control::Event& event) {
    return transact([&] {
      (void)engine_->change(event);
      return Status();
    });
  }
  Result<control::TaskRecord> submit(const workload::TaskRequest& request, const Caller& caller = {}) {
    return transact([&] { return engine_->submit(caller, request); });
  }
  Status remove(const std::string& id, const Caller& caller = {}) {
    return transact([&] { return engine_->remove(caller, id); });
  }
  Result<control::TaskRecord> submit(int gpus, const Caller& caller = {},
                                     std::optional<std::string> user = {}) {
    workload::TaskRequest request;
    request.task.name = "job";
    request.task.command = {"true"};
    if (gpus > 0) request.task.resources.gpus = {{gpus, {}}};
    if (user)
      if (auto found = find_user(*user)) request.found_user = std::move(*found);
    request.user = std::move(user);
    return submit(request, caller);
  }
  void end(const std::string& id, int status) {
    workload::Ending ending;
    ending.exit_status = status;
    ending.stopped = std::find(world_.stopped.begin(), world_.stopped.end(), id) != world_.stopped.end();
    ending.finished_at = now_;
    world_.alive.erase(id);
    world_.ended.insert(id);
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
  Result<std::vector<control::TaskRecord>> submit_gang(const workload::GangRequest& request,
                                                       const Caller& caller = {}) {
    return transact([&] { return engine_->submit_gang(caller, request); });
  }
  Result<control::TaskRecord> submit_with(const std::function<void(workload::Task&)>& change,
                                          const Caller& caller = {}) {
    workload::TaskRequest request;
    request.task.name = "job";
    request.task.command = {"true"};
    change(request.task);
    return submit(request, caller);
  }
  Status set_queue(const placement::Queue& queue, const Caller& caller = {}) {
    return transact([&] { return engine_->set_rules(caller, {queue}, {}); });
  }
  /// All that this asks for, piece by piece.
  std::vector<EventView> told(const Caller& caller = {}, EventQuery query = {},
                              EventOrder order = EventOrder::kOldestFirst) {
    std::vector<EventView> all;
    for (bool end = false; !end;) {
      engine_->events(caller, query, order, [&](Result<EventPage> page) {
        EXPECT_TRUE(page) << to_string(page.error());
        end = !page || page->end;
        if (!page) return;
        (order == EventOrder::kOldestFirst ? query.after : query.before) = page->reached;
        std::ranges::move(page->events, std::back_inserter(all));
      });
      run();
    }
    return all;
  }
  control::TaskState state_of(const std::string& id) { return engine_->task({}, id)->state; }

  std::filesystem::path folder_;
  TimePoint now_{std::chrono::milliseconds(1'700'000'000'000)};
  std::optional<TimePoint> wake_at_;
  Status started_;  ///< how the last begin() went
  std::uint64_t free_ = 1 << 30, room_to_keep_ = 0, unused_ = 0;
  std::set<control::ImageName> named_;  ///< by work, when what is unused was asked for last
  int ids_ = 0;
  std::deque<Work> work_;
  std::vector<std::string> log_;          ///< warnings
  std::vector<std::string> information_;  ///< what is told besides
  UserLimits limits_;
  bool placed_by_others_ = false;
  EventLimits event_limits_;
  World world_;
  store::testing::FaultyDisk disk_;
  std::unique_ptr<LocalEngine> engine_;
};

}  // namespace drover::engine::testing
