#pragma once

// Carries out what was decided about tasks: their containers are launched, stopped, cleaned up and forgotten,
// and found again after a restart. Work about one task is done one at a time and in order; what failed is
// tried again until it succeeds or is needed no more. Owned by the control strand; what blocks is done on the
// pools, in the turn of the task's owner.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "control/event.h"
#include "control/state.h"
#include "engine/execution.h"
#include "engine/ports.h"
#include "engine/share_groups.h"

namespace drover::engine {

/// What a launch, which is done on a pool, must know of the state, which is the strand's alone.
struct LaunchFacts {
  std::string node, journal_id;
  std::uint64_t processes = 0;  ///< that a task may have which names no number
  gpu::MachineFacts machine;    ///< as it was when this was decided, with the task's GPUs
  std::vector<workload::NodeRule> node_rules = {};
};

/// Whom the executor asks and tells, on the strand.
struct ExecutorHooks {
  std::function<void(control::Event)> happened;
  /// Strangers::check_before_start.
  std::function<std::function<std::optional<Error>()>(const std::vector<gpu::Device>&)> check_before_start;
  std::function<void(const workload::Task&)> launched;     ///< or not: its launch is through
  std::function<void(const std::string& id)> folder_gone;  ///< of a task that is forgotten
};

class Executor {
 public:
  /// All of it outlives this and what it has on the pools.
  Executor(const Ports& ports, const control::State& state, ExecutorHooks hooks)
      : ports_(ports), state_(state), hooks_(std::move(hooks)) {}

  /// Before it nothing is carried out.
  void start(std::unique_ptr<container::Containerizer> containerizer);
  /// Null before start().
  container::Containerizer* containerizer() const { return containerizer_.get(); }

  void perform(const control::Action& action);
  /// After a restart: what has become of a task that owns resources.
  void recover(const std::string& id);
  /// All that failed and is due.
  void try_again();
  /// Ends preparations that may take long, so that the pools can be joined.
  void abandon_launches();

  /// The task came into this state.
  void moved(const control::TaskRecord& record);
  /// What is being done for tasks that start, in words, by their ids.
  const std::map<std::string, std::string>& preparing() const { return preparing_; }

  /// A command in a container; see Actions::exec. `id` is whole.
  void exec(uid_t asker, const std::string& id, ExecRequest request,
            std::function<void(Result<std::shared_ptr<ExecProcess>>)> done);
  /// See Actions::connect_input. `id` is whole.
  void connect_input(uid_t asker, const std::string& id,
                     std::function<void(Result<std::shared_ptr<UniqueFd>>)> done);
  /// CheckPorts::run_command.
  void run_command(const std::string& id, const std::vector<std::string>& command,
                   std::chrono::milliseconds timeout,
                   std::function<void(Result<CheckPorts::CommandOutcome>)> done);
  /// What the devices of other vendors that a task names do to its container. Quick.
  Result<cdi::Edits> devices_of(const workload::Task& task) const;

 private:
  void carry_out(const control::action::Launch& action);
  void carry_out(const control::action::Stop& action);
  /// By the driver's own limit: what the guard holds it to follows the state (share_watch.h).
  void carry_out(const control::action::Resize& action);
  void carry_out(const control::action::Clean& action);
  void carry_out(const control::action::Forget& action);

  /// Called on a pool.
  Status launch(const control::TaskRecord& record, const LaunchFacts& facts, const std::stop_token& stop,
                std::function<Status()> may_start);
  /// What a launch that failed did to GPUs is undone before that is told: until then they are the task's, and
  /// nobody else is given them. The next daemon finds the same by recover().
  void tell_when_undone(const std::string& id, control::Event told);
  Status add_driver(container::Launch& launch) const;
  void add_secrets(container::Launch& launch) const;
  void prepares(const std::string& id, const std::string& step);

  /// Work about a task failed: `failure` (a literal) is told once, and `work` is done again until it
  /// succeeds, or puts nothing into the task's chain: then it is needed no more.
  void try_later(const std::string& id, std::string_view failure, const Error& why, Work work);
  /// Runs blocking work about one task, one at a time and in order; `then` runs on the strand with its
  /// answer.
  enum class Pace { kUsual, kSlow };
  void run_serially(const std::string& id, uid_t owner, std::function<Status()> work,
                    std::function<void(Status)> then, Pace pace = Pace::kUsual);

  struct Retry {
    std::string_view failure;  ///< what was told; a literal
    TimePoint at;
    Work work;
  };
  /// Work about one task, and the threads that it is for. A step that has begun does nothing a second time.
  struct Step {
    Work step;
    uid_t owner;
    const std::function<void(uid_t, Work)>* threads;
    void send() const { (*threads)(owner, step); }
  };

  const Ports& ports_;
  const control::State& state_;
  ExecutorHooks hooks_;
  std::unique_ptr<container::Containerizer> containerizer_;
  std::map<std::string, std::string> preparing_;  ///< by task, in words
  std::map<std::string, Retry> retries_;          ///< by task
  std::map<std::string, std::deque<Step>> serial_queues_;
  ShareGroups share_groups_;
  std::map<std::string, std::stop_source> launching_;  ///< launches that are not through yet
  /// Tasks whose limits are being set, and whether they are others already.
  std::map<std::string, bool> resizing_;
};

}  // namespace drover::engine
