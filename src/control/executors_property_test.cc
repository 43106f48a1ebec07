// Whatever happens to an executor, its connection, its framework and the daemon, in whatever order: each task
// is told to the executor at most once, and the framework hears each update once, in order, with one end.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>

#include "base/property_steps.h"
#include "control/executor_feed.h"
#include "control/status_updates.h"
#include "control/testing/executors.h"
#include "control/testing/journal.h"

namespace drover::control {
namespace {

int any_below(int end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, end));
}

class ExecutorHistory {
 public:
  ExecutorHistory() { process(event::FrameworkSubscribed{"F", testing::framework_of_executors()}); }

  void step() {
    now_ += std::chrono::seconds(any_below(30));
    switch (any_below(12)) {
      case 0:
      case 1:
        return launch();
      case 2:
        return start();
      case 3:
      case 4:
        return subscribe();
      case 5:
        connected_ = false;
        if (executor() != nullptr) process(event::ExecutorDisconnected{"F", "e"});
        return;
      case 6:
      case 7:
        return work();
      case 8:
        return acknowledge();
      case 9:
        if (const auto task = any_launched(); !task.empty()) process(event::ExecutorTaskKilled{"F", task});
        return notify();
      case 10:
        return any_below(3) == 0 ? end() : restart();
      default:
        process(event::Tick{});
    }
  }

  /// Everybody does what is left to do: then nothing is lost.
  void settle() {
    start();
    subscribe();
    for (auto& [task, has] : has_)
      while (!is_terminal(has.state)) work(task, true);
    subscribe();
    // Each round takes an update of each task: one that is lost is never acknowledged.
    for (int round = 0; !machine_.state.framework_tasks.empty(); ++round) {
      RC_ASSERT(round < 1000);
      if (executor() != nullptr && nothing_to_receive()) end();
      for (const auto& [task, received] : received_) acknowledge(task);
    }
    for (const auto& [task, received] : received_) {
      RC_ASSERT(!received.empty());
      RC_ASSERT(is_terminal(received.back()));
      RC_ASSERT(std::ranges::count_if(received, [](const auto& state) { return is_terminal(state); }) == 1);
    }
  }

 private:
  struct Has {
    std::string container;
    std::string state;                   ///< that the executor said last
    std::vector<ExecutorUpdate> unseen;  ///< it has not seen them acknowledged
  };

  bool process(const Event& event) {
    auto outcome = decide(machine_.state, event, now_);
    if (!outcome) return false;
    const auto changes = changes_of(*outcome);
    for (const auto& [key, text] : changes.put) journal_[key] = text;
    for (const auto& key : changes.removed) journal_.erase(key);
    apply(machine_.state, *outcome);
    if (executor() == nullptr || executor()->id != container_) {  // it is gone, with all that it knew
      connected_ = false;
      container_ = executor() == nullptr ? "" : executor()->id;
      has_.clear();
    }
    return true;
  }
  const ExecutorRecord* executor() const {
    const auto found = machine_.state.executors.find("F/e");
    return found == machine_.state.executors.end() ? nullptr : &found->second;
  }
  bool runs() const { return executor() != nullptr && machine_.record(container_).started_at.has_value(); }

  void launch() {
    std::vector<std::string> tasks;
    for (int i = any_below(3); i >= 0; --i) tasks.push_back(fmt::format("t{}", ++count_));
    auto wanted = testing::executor_launch("e", tasks);
    if (executor() == nullptr) wanted.container.resources.milli_cpus = wanted.given.milli_cpus = 1000;
    wanted.in_group = any_below(2) == 0;
    if (process(event::ExecutorLaunched{wanted}))
      for (const auto& task : tasks) received_[task];
    notify();
  }
  void start() {
    if (executor() != nullptr) process(event::Started{executor()->id, now_});
  }
  void subscribe() {
    if (!runs()) return;
    std::vector<ExecutorUpdate> updates;
    std::set<std::string> received;
    for (const auto& [task, has] : has_) {
      updates.insert(updates.end(), has.unseen.begin(), has.unseen.end());
      if (has.state.empty() || !has.unseen.empty()) received.insert(task);
    }
    if (!process(event::ExecutorSubscribed{"F", "e", updates})) return;
    connected_ = true;
    feed_ = ExecutorFeed(received);
    for (auto& [task, has] : has_) see(has);
    notify();
  }
  void see(Has& has) {
    std::erase_if(has.unseen,
                  [&](const auto& update) { return is_taken(machine_.state, *executor(), update); });
  }
  void notify() {
    if (!connected_) return;
    for (const auto& order : feed_.next(machine_.state, *executor()))
      for (const auto* task : order.tasks) {
        if (order.kind == ExecutorOrder::Kind::kKill)
          RC_ASSERT(has_.contains(task->task_id));
        else
          RC_ASSERT(has_.emplace(task->task_id, Has{container_, "", {}}).second);
      }
  }

  void work() {
    if (has_.empty()) return;
    const auto& [task, has] = *std::next(has_.begin(), any_below(static_cast<int>(has_.size())));
    if (!is_terminal(has.state)) work(std::string(task), any_below(3) == 0);
  }
  /// The executor says something new of a task; it may not get through, or not be seen to.
  void work(const std::string& task, bool last) {
    auto& has = has_.at(task);
    has.state = last ? "TASK_FINISHED" : has.state.empty() ? "TASK_STARTING" : "TASK_RUNNING";
    has.unseen.push_back({task, fmt::format("u{}", ++updates_), has.state, now_, "{}"});
    made_[task].push_back(has.state);
    if (!connected_ || has.unseen.size() > 1) return;
    process(event::ExecutorUpdated{"F", "e", has.unseen.front()});
    if (any_below(3) > 0) see(has);
  }

  std::string any_launched() {
    if (received_.empty()) return "";
    return std::next(received_.begin(), any_below(static_cast<int>(received_.size())))->first;
  }
  void acknowledge() {
    if (const auto task = any_launched(); !task.empty()) acknowledge(task);
  }
  void acknowledge(const std::string& task) {
    const auto row = machine_.state.framework_tasks.find("F/" + task);
    if (row == machine_.state.framework_tasks.end() || row->second.updates.empty()) return;
    const auto update = row->second.updates.front();
    RC_ASSERT(uuids_.insert(update.uuid).second);
    auto& received = received_.at(task);
    const auto& made = made_[task];
    // What the executor said is told in its order; only an end may be the daemon's.
    if (!update.status.empty()) RC_ASSERT(made.at(received.size()) == update.state);
    RC_ASSERT(!update.status.empty() || is_terminal(update.state));
    received.push_back(update.state);
    process(event::UpdateAcknowledged{"F", task, update.uuid});
  }
  bool nothing_to_receive() const {
    return std::ranges::all_of(machine_.state.framework_tasks,
                               [](const auto& row) { return row.second.updates.empty(); });
  }

  void end() {
    if (executor() == nullptr) return;
    const auto id = executor()->id;
    process(event::Ended{id, testing::exited(any_below(2))});
  }
  void restart() {
    const auto read = testing::decode_journal(journal_);
    RC_ASSERT(read.has_value());
    auto restored = restore(*read, machine_.state.machine());
    RC_ASSERT(restored.executors == machine_.state.executors);
    RC_ASSERT(restored.framework_tasks == machine_.state.framework_tasks);
    machine_.state = std::move(restored);
    connected_ = false;
    if (executor() != nullptr) process(event::ExecutorDisconnected{"F", "e"});
  }

  testing::Machine machine_{0};
  std::map<std::string, std::string> journal_;
  TimePoint now_ = testing::kNow;
  int count_ = 0, updates_ = 0;
  // The executor's side; ends with its container.
  std::string container_;
  bool connected_ = false;
  ExecutorFeed feed_{{}};
  std::map<std::string, Has> has_;
  // The framework's side.
  std::map<std::string, std::vector<std::string>> made_, received_;
  std::set<std::string> uuids_;
};

TEST(ExecutorHistory, PropertyNothingIsLostOrDoubled) {
  constexpr int kMostSteps = 60;
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = property_steps(params.maxSuccess * kMostSteps) / kMostSteps;
  const auto check = [] {
    ExecutorHistory history;
    for (int steps = any_below(kMostSteps); steps >= 0; --steps) history.step();
    history.settle();
  };
  const auto result = rc::detail::checkTestable(check, rc::detail::TestMetadata{}, params);
  rc::detail::printResultMessage(result, std::cerr);
  ASSERT_TRUE(result.is<rc::detail::SuccessResult>());
}

}  // namespace
}  // namespace drover::control
