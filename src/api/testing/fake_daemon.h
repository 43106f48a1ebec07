#pragma once

// A daemon for the tests of the API and of its clients: tasks are records that the test moves about,
// sandboxes are folders that the test fills. Also a server around it, on a thread of its own, in a temporary
// folder.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/server.h"
#include "api/testing/raw_http.h"
#include "base/files.h"
#include "control/journal.h"
#include "engine/api.h"
#include "engine/listeners.h"

namespace drover::api::testing {

/// What a transaction has come to.
struct Decided {
  bool unkept = false;  ///< it has what is to be kept
  std::vector<control::Notice> notices;
  std::vector<control::event::StopRequested> stops;
};

class FakeDaemon : public engine::Api {
 public:
  explicit FakeDaemon(std::string folder) : folder_(std::move(folder)) {
    state_.journal_id = "6fcb514b-b878-4c9d-95b7-8dc3a7ce6fd8";
    inventory_.simulated = true;
    inventory_.simulation = "fake";
    inventory_.driver_version = "390.30";
    inventory_.cuda_version = "9.1";
    for (int i = 0; i < 2; ++i) {
      gpu::Device device;
      device.index = i;
      device.uuid = fmt::format("GPU-{}", i);
      device.model = "Tesla K40m";
      device.memory_bytes = 11441ULL << 20;
      device.compute_capability = gpu::ComputeCapability{3, 5};
      device.pci = gpu::PciAddress{0, 0x82u + static_cast<unsigned>(i), 0, 0};
      device.numa_node = i;
      device.cpus = {0, 1, 2, 5};
      inventory_.devices.push_back(device);
    }
    const gpu::Link self{0, gpu::PcieLevel::kSameDevice};
    const gpu::Link across{2, gpu::PcieLevel::kAcross};
    inventory_.links = {{self, across}, {across, self}};
  }

  // What the API asks

  Result<control::TaskRecord> submit(const engine::Caller& caller,
                                     const workload::TaskRequest& request) override {
    if (request.user && !caller.is_root())
      return fail(ErrorKind::kPermissionDenied, "Only root may name another user");
    control::TaskRecord record;
    record.task = request.task;
    record.task.id = fmt::format("task-{}", ++count_);
    record.task.user = caller.user;
    record.task.owner = caller.user.uid;
    record.sequence = count_;
    record.state = start_state;
    if (start_state == control::TaskState::kQueued) record.reason = kWhyItWaits;
    std::filesystem::create_directories(sandbox_of(record.task.id));
    records_.insert_or_assign(record.task.id, record);
    notify("task_" + std::string(control::to_string(record.state)), record.task.id);
    return record;
  }
  void stop(const engine::Caller& caller, const std::string& id, bool force,
            std::function<void(Result<control::TaskRecord>)> done) override {
    auto record = task(caller, id);
    if (!record) return done(record);
    stops.emplace_back(record->task.id, force);
    if (stop_ends || force)
      end(record->task.id, force ? 137 : 143, control::TaskState::kKilled, "stopped on request");
    done(records_.at(record->task.id));
  }
  Result<std::vector<control::TaskRecord>> submit_gang(const engine::Caller& caller,
                                                       const workload::GangRequest& request) override {
    if (gang_error) return Failure(*gang_error);
    std::vector<control::TaskRecord> members;
    const auto size = static_cast<int>(request.members.size());
    for (int rank = 0; rank < size; ++rank) {
      auto member = request.members[static_cast<std::size_t>(rank)];
      member.task.gang = workload::GangMembership{"gang", rank, size, request.arrangement};
      members.push_back(*submit(caller, member));
    }
    return members;
  }
  engine::Later<Result<engine::PlanView>> plan(const engine::Caller&,
                                               workload::GangRequest request) const override {
    planned = std::move(request);
    return [plan = plan_] { return plan; };
  }
  engine::Later<std::vector<engine::QueueView>> queues(const engine::Caller&) const override {
    return [queues = rules.queues] {
      std::vector<engine::QueueView> views;
      for (const auto& [path, queue] : queues) {
        engine::QueueView view{queue, {1500, 2000, 3ULL << 30}, true, {}};
        view.waiting = {{"task-7", "alice", {2000, 1000, 1ULL << 30}, 2, 5, {}, {"0 of 2 GPUs are free"}, 4},
                        {"", "bob", {1000, 1000, 1ULL << 30}, 1, 0, {}, {}, 5}};
        views.push_back(std::move(view));
      }
      return views;
    };
  }
  std::vector<engine::QuotaView> quotas(const engine::Caller&) const override {
    std::vector<engine::QuotaView> views;
    for (const auto& [subject, quota] : rules.quotas) views.push_back({quota, {500, 0, 0}});
    return views;
  }
  Status set_rules(const engine::Caller& caller, std::vector<placement::Queue> queues,
                   std::vector<placement::Quota> quotas) override {
    if (!caller.is_root()) return fail(ErrorKind::kPermissionDenied, "Only root may change queues");
    auto changed = rules;
    for (const auto& queue : queues) changed.queues[queue.path] = queue;
    for (const auto& quota : quotas) changed.quotas[quota.subject] = quota;
    DROVER_CHECK_OK(placement::validate(changed));
    rules = std::move(changed);
    return {};
  }
  Status remove_queue(const engine::Caller&, const std::string& path) override {
    if (rules.queues.erase(path) == 0) return fail(ErrorKind::kNotFound, "There is no such queue");
    return {};
  }
  Status remove_quota(const engine::Caller&, const placement::Subject& subject) override {
    if (rules.quotas.erase(subject) == 0) return fail(ErrorKind::kNotFound, "There is no such quota");
    return {};
  }
  Result<control::TaskRecord> resize(const engine::Caller& caller, const std::string& id,
                                     const workload::Share& share) override {
    DROVER_TRY(auto record, task(caller, id));
    record.task.resources.share = share;
    record.tier = "guarded";
    record.gpus = {{"GPU-0", 500, share.memory_bytes}};
    records_.insert_or_assign(record.task.id, record);
    return record;
  }
  Status remove(const engine::Caller& caller, const std::string& id) override {
    DROVER_TRY(const auto record, task(caller, id));
    if (!control::is_final(record.state))
      return fail(ErrorKind::kConflict, fmt::format("The task '{}' has not ended", id), "stop it first");
    records_.erase(record.task.id);
    return {};
  }
  Result<control::TaskRecord> task(const engine::Caller& caller, const std::string& id) const override {
    const auto found = records_.find(id);
    if (found == records_.end() || !may(caller, found->second))
      return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id));
    return found->second;
  }
  engine::TaskList tasks(const engine::Caller& caller) const override {
    auto state = std::make_shared<control::State>();
    state->tasks = records_;
    engine::Doings reasons;
    for (const auto& [id, record] : records_)
      if (record.state == control::TaskState::kQueued) reasons[id] = record.reason;
    return {std::move(state), caller, std::move(reasons)};
  }
  engine::Later<Result<engine::ExplanationView>> explain(const engine::Caller& caller,
                                                         const std::string& id) const override {
    ++explained;
    return [record = task(caller, id)]() -> Result<engine::ExplanationView> {
      if (!record) return Failure(record.error());
      return engine::ExplanationView{*record, {kWhyItWaits}, {{.text = "ask for 1 GPU"}}, 3, {}, {}};
    };
  }
  Result<std::string> sandbox(const engine::Caller& caller, const std::string& id) const override {
    if (const auto* launched = state_.find(id); launched != nullptr && may(caller, *launched))
      return sandbox_of(id);
    DROVER_TRY(const auto record, task(caller, id));
    return sandbox_of(record.task.id);
  }
  engine::NodeView node() const override {
    engine::NodeView view;
    view.name = "here";
    view.gpus_total = 2;
    view.gpus_free = 1;
    view.milli_cpus_total = 40'000;
    view.milli_cpus_free = 39'500;
    view.memory_bytes_total = 8ULL << 30;
    view.memory_bytes_free = 4ULL << 30;
    view.disk_bytes = 1ULL << 40;
    view.resources = "gpus(*):2; cpus(*):40; mem(*):8192; disk(*):1048576; ports(*):[31000-32000]";
    view.runtime = "runc 1.1.5";
    view.cgroups = "hybrid";
    return view;
  }
  gpu::Inventory inventory() const override { return inventory_; }
  std::vector<Machine> machines() const override {
    if (!state_.placed_by_others) return Api::machines();
    std::vector<Machine> machines;
    for (const auto& name : state_.cluster.nodes()) {
      if (name == state_.node) continue;
      auto view = node();
      view.name = name;
      machines.push_back({std::move(view), state_.cluster.node(name)->inventory});
    }
    return machines;
  }
  void image_variants(const engine::Caller&, const std::string& image, const std::string& profile,
                      std::function<void(Result<engine::VariantsView>)> done) override {
    engine::ImageVariant fast{.needs = {}, .reference = image + "@fast"};
    fast.needs.name = "fast";
    fast.needs.cpus = {gpu::parse_cpu("x86-64-v4").value()};
    engine::ImageVariant plain{.needs = {}, .reference = image + "@plain"};
    plain.needs.name = "plain";
    engine::VariantsView view{profile,
                              {inventory_.driver_version, inventory_.cuda_version, inventory_.devices,
                               gpu::parse_cpu("broadwell").value().features},
                              {fast, plain},
                              {}};
    view.cases.push_back({inventory_.devices, gpu::choose_variant({fast.needs, plain.needs}, view.machine)});
    done(std::move(view));
  }
  void cdi(std::function<void(Result<std::string>)> done) override {
    done(R"({"cdiVersion":"0.6.0","kind":"nvidia.com/gpu","devices":[],"containerEdits":{}})");
  }
  engine::Later<std::vector<Holder>> holders(const engine::Caller& caller) const override {
    if (holders_) return [holders = holders_] { return *holders; };
    return
        [root = caller.is_root()] { return std::vector<Holder>{{"GPU-1", root ? "task-0" : "", "alice"}}; };
  }
  void events(const engine::Caller& caller, const engine::EventQuery& query, engine::EventOrder order,
              engine::EventPageTaker done) override {
    const bool backwards = order == engine::EventOrder::kNewestFirst;
    auto all = events_;
    if (backwards) std::ranges::reverse(all);
    engine::EventPage page;
    page.reached = backwards ? query.before : query.after;
    page.end = true;
    for (const auto& event : all)
      if (event.number > query.after && event.number < query.before && !page.add(caller, query, event)) {
        page.end = false;
        break;
      }
    done(std::move(page));
  }
  std::shared_ptr<void> subscribe(std::function<void()> listener) override {
    auto handle = std::make_shared<std::function<void()>>(std::move(listener));
    listeners_.push_back(handle);
    return handle;
  }
  const control::State& state() const override { return state_; }
  TimePoint now() const override { return now_; }
  void transact(std::function<void()> run, std::function<void(Status)> done) override {
    const auto before = state_;
    transaction_.emplace();
    run();
    const auto transaction = *std::exchange(transaction_, std::nullopt);
    if (transaction.unkept && journal_is_full) {
      state_ = before;
      for (const auto& stop : transaction.stops) happened(stop);
      return done(fail(ErrorKind::kExhausted, "The disk is full"));
    }
    for (const auto& notice : transaction.notices) watchers_.notify(notice);
    done({});
  }
  void rehearse(control::State& draft, const std::function<void()>& run) override {
    std::swap(state_, draft);
    transaction_.emplace();
    run();
    transaction_.reset();
    std::swap(state_, draft);
  }
  void happened(control::Event event) override {
    waiting.push_back(std::move(event));
    if (!journal_is_full) keep_what_waits();
  }
  /// Tests also call it without a transaction.
  Result<control::Made> change(const control::Event& event) override {
    DROVER_TRY(auto outcome, control::decide(state_, event, now_));
    control::apply(state_, outcome);
    if (!transaction_) {
      for (const auto& notice : outcome.notices) watchers_.notify(notice);
      return outcome.made;
    }
    transaction_->unkept = transaction_->unkept || control::is_kept(outcome);
    std::ranges::move(outcome.notices, std::back_inserter(transaction_->notices));
    if (const auto* stop = std::get_if<control::event::StopRequested>(&event))
      transaction_->stops.push_back(*stop);
    return outcome.made;
  }
  std::shared_ptr<void> watch(std::function<void(const control::Notice&)> listener) override {
    return watchers_.add(std::move(listener));
  }

  // What a test does

  /// The journal has room again.
  void keep_what_waits() {
    journal_is_full = false;
    for (const auto& event : std::exchange(waiting, {})) (void)change(event);
  }
  void set_state(const std::string& id, control::TaskState state) {
    records_.edit(id).state = state;
    notify("task_" + std::string(control::to_string(state)), id);
  }
  void end(const std::string& id, int status, control::TaskState state, const std::string& reason = "") {
    auto& record = records_.edit(id);
    record.exit_status = status;
    record.reason = reason;
    set_state(id, state);
  }
  /// What another member of its gang makes it end.
  void drag(const std::string& id, const std::string& reason) { records_.edit(id).gang_reason = reason; }
  void fail_to_start(const std::string& id, const std::string& reason) {
    records_.edit(id).reason = reason;
    set_state(id, control::TaskState::kFailed);
  }
  /// So many more like it, of other ids.
  void copy(const std::string& id, int count) {
    auto record = records_.at(id);
    for (int i = 0; i < count; ++i) {
      record.task.id = fmt::format("{}-{}", id, i);
      record.sequence = ++count_;
      records_.insert_or_assign(record.task.id, record);
    }
  }
  void notify(const std::string& kind, const std::string& id) {
    engine::EventView event;
    event.number = events_.size() + 1;
    event.kind = kind;
    event.task_id = id;
    event.owner = records_.at(id).task.owner;
    event.name = records_.at(id).task.name;
    event.user = records_.at(id).task.user.name;
    event.message = "it happened";
    events_.push_back(event);
    for (const auto& weak : std::vector(listeners_))
      if (const auto listener = weak.lock()) (*listener)();
  }
  std::string sandbox_of(const std::string& id) const override {
    return folder_ + "/tasks/" + id + "/sandbox";
  }

  static constexpr const char* kWhyItWaits = "2 GPUs are wanted, 0 of 2 are free";
  control::TaskState start_state = control::TaskState::kRunning;
  mutable std::atomic<int> explained = 0;  ///< how often it was asked why a task waits
  bool stop_ends = true;
  bool journal_is_full = false;  ///< then changes are refused, and what has happened waits
  std::vector<control::Event> waiting;
  std::vector<std::pair<std::string, bool>> stops;
  control::State state_ =
      control::restore({}, placement::Node{.name = "fake", .milli_cpus = 64'000, .memory_bytes = 1ULL << 40});
  TimePoint now_{std::chrono::milliseconds(1'700'000'000'000)};
  engine::Listeners<control::Notice> watchers_;
  gpu::Inventory inventory_;
  placement::Rules& rules = state_.rules;
  Result<engine::PlanView> plan_ = engine::PlanView{};
  mutable workload::GangRequest planned;  ///< what the last plan was asked for
  std::optional<Error> gang_error;
  std::shared_ptr<std::vector<Holder>> holders_;

 private:
  static bool may(const engine::Caller& caller, const control::TaskRecord& record) {
    return caller.is_root() || record.task.owner == caller.user.uid;
  }

  std::string folder_;
  std::optional<Decided> transaction_;  ///< that runs
  std::uint64_t count_ = 0;
  control::Rows<control::TaskRecord> records_;
  std::vector<engine::EventView> events_;
  std::vector<std::weak_ptr<std::function<void()>>> listeners_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "drover-api-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    ::chmod(name.c_str(), 0755);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A server with a FakeDaemon, serving until it is destroyed.
class ServerFixture {
 public:
  explicit ServerFixture(ServerOptions options = {}) : daemon_(folder_.path()), options_(std::move(options)) {
    options_.socket_path = folder_.path() + "/run/drover.sock";
    options_.version = "1.2.3";
    start();
  }
  ~ServerFixture() { stop(); }

  /// Runs where the daemon lives, and waits for it.
  template <typename Function>
  auto on_strand(Function function) {
    std::packaged_task<std::invoke_result_t<Function>()> work(std::move(function));
    auto result = work.get_future();
    boost::asio::post(*context_, std::ref(work));
    return result.get();
  }

  void start() {
    context_ = std::make_unique<boost::asio::io_context>(1);
    auto server = Server::start(*context_, daemon_, options_);
    if (!server) throw std::runtime_error(to_string(server.error()));
    server_ = std::move(*server);
    thread_ = std::thread([this] { context_->run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    on_strand([this] { server_.reset(); });
    thread_.join();
    context_.reset();
  }

  FakeDaemon& daemon() { return daemon_; }
  Server& server() { return *server_; }
  const std::string& folder() const { return folder_.path(); }
  const std::string& socket() const { return options_.socket_path; }
  /// One request on a connection of its own, and all of the answer. `headers`: each with its line end.
  std::string exchange(std::string_view method, std::string_view target, std::string_view body = "",
                       std::string_view headers = kOfJson) {
    auto connection = RawConnection::to_unix(socket());
    connection.send(
        fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{}",
                    method, target, headers, body.size(), body));
    return connection.receive();
  }
  /// Every container that is to start has started.
  void start_all() {
    on_strand([this] {
      std::vector<std::string> ids;
      for (const auto& [id, record] : daemon_.state().tasks)
        if (record.state == control::TaskState::kStarting) ids.push_back(id);
      for (const auto& id : ids) (void)daemon_.change(control::event::Started{id, daemon_.now()});
    });
  }
  static constexpr std::string_view kOfJson = "Content-Type: application/json\r\n";

  /// Adds to a file in a task's sandbox.
  void append(const std::string& id, const std::string& name, std::string_view bytes) {
    std::ofstream(daemon_.sandbox_of(id) + "/" + name, std::ios::app | std::ios::binary) << bytes;
  }

 private:
  TemporaryFolder folder_;
  FakeDaemon daemon_;
  ServerOptions options_;
  std::unique_ptr<boost::asio::io_context> context_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace drover::api::testing
