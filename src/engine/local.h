#pragma once

// The local engine: the daemon of one machine. It owns the control state, which only its event loop changes
// (event_loop.h), has the actions carried out (executor.h), and turns what happens into events. Whatever else
// it keeps an eye on is a part with a header of its own, which sees the state, never changes it, and says
// what it found. All methods run on the control strand; blocking work goes to the pools. Knows no HTTP and no
// clock but those in Ports.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/controller.h"
#include "engine/api.h"
#include "engine/disk_room.h"
#include "engine/disk_use.h"
#include "engine/ended_sizes.h"
#include "engine/event_loop.h"
#include "engine/executor.h"
#include "engine/feed.h"
#include "engine/fitness.h"
#include "engine/idle_gpus.h"
#include "engine/image_inspector.h"
#include "engine/kept_allocations.h"
#include "engine/kept_events.h"
#include "engine/lingering.h"
#include "engine/listeners.h"
#include "engine/ports.h"
#include "engine/processes.h"
#include "engine/share_watch.h"
#include "engine/strangers.h"
#include "store/journal.h"

namespace drover::engine {

class LocalEngine final : public Api {
 public:
  /// `view` holds what is constant about the node: name, disk, cgroups.
  LocalEngine(Ports ports, store::Journal journal, control::State state, NodeView view);

  /// For the Containerizer's constructor: what it sees becomes events on the strand.
  container::Watcher watcher();
  /// Starts work: finds the tasks of an earlier life again, also those that no record knows (blocks for
  /// these: strays.h), then launches what waits. `runtime` is shown to people: "runc 1.1.5".
  Status start(std::unique_ptr<container::Containerizer> containerizer, std::string runtime);
  void tick();
  /// Ends preparations that may take long, so that the pool can be joined: before the daemon goes. The tasks
  /// are launched again at the next start.
  void abandon_launches();
  void checked(const CheckResult& result);
  /// What was decided about shares that are watched (Ports::watch_shares).
  void judged(const std::vector<share::Verdict>& verdicts) { share_watch_.judged(verdicts); }
  /// The MPS daemon of a group (control::mps_group_of) had ended, and is another one now.
  void mps_restarted(const std::string& group);
  /// For checks by command: CheckPorts::run_command.
  void run_command(const std::string& task_id, const std::vector<std::string>& command,
                   std::chrono::milliseconds timeout,
                   std::function<void(Result<CheckPorts::CommandOutcome>)> done) {
    executor_.run_command(task_id, command, timeout, std::move(done));
  }
  /// Of a cluster, all of them, in any order. What changed of the fitness of known GPUs is told.
  void set_nodes(std::vector<placement::Node> nodes);
  /// Of a cluster, what work that is not ours has, by node: it is not free, and nothing is decided by it.
  void set_taken_by_others(std::map<std::string, placement::Free> taken) { taken_ = std::move(taken); }
  /// The machine was looked at again. Its name is as before.
  void set_machine(placement::Node machine);

  void transact(std::function<void()> run, std::function<void(Status)> done) override {
    loop_.transact(std::move(run), std::move(done));
  }
  void rehearse(control::State& draft, const std::function<void()>& run) override {
    loop_.rehearse(draft, run);
  }
  Result<control::TaskRecord> submit(const Caller& caller, const workload::TaskRequest& request) override;
  Result<std::vector<control::TaskRecord>> submit_gang(const Caller& caller,
                                                       const workload::GangRequest& request) override;
  Result<std::vector<control::TaskRecord>> submit_array(const Caller& caller,
                                                        const workload::ArrayRequest& request) override;
  Status set_rules(const Caller& caller, std::vector<placement::Queue> queues,
                   std::vector<placement::Quota> quotas) override;
  Later<Result<PlanView>> plan(const Caller& caller, workload::GangRequest request) const override;
  void stop(const Caller& caller, const std::string& id, bool force,
            std::function<void(Result<control::TaskRecord>)> done) override;
  Result<control::TaskRecord> resize(const Caller& caller, const std::string& id,
                                     const workload::Share& share) override;
  Status remove(const Caller& caller, const std::string& id) override;
  Result<control::TaskRecord> task(const Caller& caller, const std::string& id) const override;
  TaskList tasks(const Caller& caller) const override;
  Later<Result<ExplanationView>> explain(const Caller& caller, const std::string& id) const override;
  void exec(const Caller& caller, const std::string& id, ExecRequest request,
            std::function<void(Result<std::shared_ptr<ExecProcess>>)> done) override;
  void connect_input(const Caller& caller, const std::string& id,
                     std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) override;
  Result<std::string> sandbox(const Caller& caller, const std::string& id) const override;
  Result<std::shared_ptr<const SandboxReader>> files(const Caller& caller,
                                                     const std::string& id) const override;
  std::string sandbox_of(const std::string& id) const override;
  Result<UseHistory> use_history() const override;
  std::map<std::string, use::Latest> latest_use() const override {
    return ports_.latest_use ? ports_.latest_use() : std::map<std::string, use::Latest>();
  }
  Later<std::vector<QueueView>> queues(const Caller& caller) const override;
  std::vector<QuotaView> quotas(const Caller& caller) const override;
  Status remove_queue(const Caller& caller, const std::string& path) override;
  Status set_cordon(const Caller& caller, const std::string& gpu,
                    const std::optional<std::string>& reason) override;
  Status remove_quota(const Caller& caller, const placement::Subject& subject) override;
  void backup(const Caller& caller, std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) override;
  void report(const Caller& caller, const ReportQuery& query, ReportTaker done) override;
  void add_facts(metrics::DaemonFacts& facts) const override;
  NodeView node() const override;
  std::vector<Machine> machines() const override;
  std::vector<Error> problems() const override;
  gpu::Inventory inventory() const override;
  void cdi(std::function<void(Result<std::string>)> done) override;
  void image_variants(const Caller& caller, const std::string& image, const std::string& profile,
                      std::function<void(Result<VariantsView>)> done) override;
  void inspect_images(const Caller& caller, const std::vector<std::string>& images,
                      std::function<void()> done) override;
  Later<std::vector<Holder>> holders(const Caller& caller) const override;
  void events(const Caller& caller, const EventQuery& query, EventOrder order, EventPageTaker done) override;
  std::shared_ptr<void> subscribe(std::function<void()> listener) override;
  const control::State& state() const override { return loop_.state(); }
  TimePoint now() const override { return ports_.now(); }
  TimePoint steady() const override { return ports_.steady(); }
  Result<control::Made> change(const control::Event& event) override;
  void happened(control::Event event) override { loop_.happened(std::move(event)); }
  std::shared_ptr<void> watch(std::function<void(const control::Notice&)> listener) override {
    return notices_.add(std::move(listener));
  }

 private:
  ExecutorHooks executor_hooks();
  Result<std::string> running_task(const Caller& caller, const std::string& id, const char* hint) const;
  EventHooks event_hooks();
  /// Of one that runs.
  void watch_use(const std::string& id);
  /// In a transaction of its own. When it cannot be kept, the next look finds the same.
  void found(control::Event event);
  /// What is decided about counts now.
  void carry_out(const control::Outcome& outcome, bool is_tick);
  void end_first(const control::event::StopRequested& request);
  Status check_work(const control::Event& event) const;
  /// Takes note of ports that are taken by programs which are none of our tasks. In a transaction.
  void refresh_ports();
  /// What the machine has, as it was told last, without what nobody is to be given.
  void offer_machine();
  /// People, by the log and by events.
  void tell(const std::vector<FitnessNews>& news);

  /// The task of a request, with user and owner.
  Result<workload::Task> complete(const Caller& caller, const workload::TaskRequest& request) const;
  /// Fills in what the requests of one job leave to the daemon; `tasks` by rank.
  Status fill_in(std::vector<workload::Task>& tasks, std::span<const workload::TaskRequest> requests) const;
  /// The tasks of a gang by rank, with their ids; the paths of errors say which member.
  Result<std::vector<workload::Task>> complete(const Caller& caller,
                                               const workload::GangRequest& request) const;
  Result<PlanView> plan_here(const Caller& caller, const std::vector<workload::Task>& tasks) const;
  Later<Result<PlanView>> plan_by_others(const Caller& caller, std::vector<workload::Task> tasks) const;
  std::string unused_id() const;
  Status change_rules(const Caller& caller, const std::function<Status(placement::Rules&)>& change);
  void copy_on(const std::shared_ptr<store::Copy>& copy,
               std::function<void(Result<std::shared_ptr<UniqueFd>>)> done);
  NodeView node_view(const placement::Node& node) const;
  /// With the reason why it waits, or what is being done for it.
  control::TaskRecord shown(const control::TaskRecord& record) const;
  Doings doings() const;

  const Ports ports_;
  control::State state_;
  NodeView view_;
  Listeners<control::Notice> notices_;

  std::optional<Error> broken_;  ///< what a plan would have done wrongly, last
  TimePoint ports_seen_{};
  TimePoint tidy_at_{};               ///< the journal, next
  placement::Node reported_machine_;  ///< by set_machine(); strangers make GPUs of it unhealthy
  placement::Node offered_machine_;   ///< as it was offered last
  std::shared_ptr<const std::vector<placement::Node>> nodes_;  ///< by set_nodes(); null: not yet
  ImageInspector::Wanted machine_images_;                      ///< to be inspected when that counts

  EventLoop loop_;
  Feed feed_;
  KeptEvents kept_events_;
  KeptAllocations kept_allocations_;
  Executor executor_;
  ImageInspector images_;
  Processes processes_;
  EndedSizes ended_sizes_;
  Strangers strangers_;
  std::map<std::string, placement::Free> taken_;  ///< by others, by node
  Lingering lingering_;
  DiskUse disk_use_;
  IdleGpus idle_gpus_;
  ShareWatch share_watch_;
  DiskRoom disk_room_;
};

}  // namespace drover::engine
