#pragma once

// The local engine: the daemon of one machine. It owns the control state, journals every outcome before it
// counts, carries out the actions through a Containerizer and turns what happens into events. All methods run
// on the control strand; blocking work goes to the pool. Knows no HTTP and no clock but those in Ports.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/complaint.h"
#include "cdi/specification.h"
#include "container/containerizer.h"
#include "control/controller.h"
#include "engine/check_targets.h"
#include "engine/daemon.h"
#include "engine/feed.h"
#include "engine/listeners.h"
#include "image/store.h"
#include "metrics/histogram.h"
#include "store/journal.h"

namespace drover::engine {

using Work = std::function<void()>;

/// A task that may have processes now.
struct TaskProcesses {
  std::string id;
  pid_t first = 0;             ///< of its container; 0: not known
  std::set<std::string> gpus;  ///< UUIDs of those that it has, or a share of
};

/// Where the world comes in.
struct Ports {
  std::function<void(Work)> post;  ///< runs it on the control strand; callable from any thread
  /// Runs it on a thread that may block; of one user only so much at once (base/fair_pool.h).
  std::function<void(uid_t, Work)> pool;
  /// The same for what may take hours, and holds up only its like.
  std::function<void(uid_t, Work)> slow_pool;
  std::function<TimePoint()> now;
  /// Goes on whatever becomes of `now` (base/steady_timeline.h). May be empty: then `now` does.
  std::function<TimePoint()> steady;
  std::function<void(TimePoint)> wake_at;        ///< calls tick() no later than then, by `steady`
  std::function<std::string()> new_id;           ///< random; a clash is noticed
  std::function<void(const std::string&)> log;   ///< what somebody should look at
  std::function<void(const std::string&)> info;  ///< good news; may be empty: then nobody is told
  /// Why these GPUs must not be given on, by UUID: somebody else than who has them has them open. Called on
  /// the pool; looks at every process of the machine. May be empty: then nobody is looked for.
  std::function<std::map<std::string, std::string>(const std::vector<gpu::Device>&,
                                                   const std::vector<TaskProcesses>&)>
      strangers;
  /// What still runs of each of these tasks, in words: "process 7 (train) hangs in the kernel". Called on the
  /// pool; looks at every process of the machine. May be empty: then nobody asks.
  std::function<std::map<std::string, std::string>(const std::vector<TaskProcesses>&)> what_still_runs;
  /// Bytes that each of these tasks takes up on the disk, or why that cannot be seen; those that are gone are
  /// left out. Called on the pool. May be empty: then nobody asks.
  std::function<std::map<std::string, Result<std::uint64_t>>(const std::vector<TaskProcesses>&)> task_space;
  /// Device nodes of these GPUs, in their order. Called on the pool.
  std::function<Result<std::vector<gpu::DeviceNode>>(const std::vector<gpu::Device>&)> gpu_nodes;
  /// What of the driver goes with GPUs. Called on the pool, only for tasks that own GPUs.
  std::function<Result<container::DriverSupply>()> driver_supply;
  /// Called on the pool.
  std::function<Result<std::string>()> cdi_specification;
  /// What the other vendors' devices that a task names do to its container, or why it cannot have them.
  /// Quick: it reads a few files. May be empty: then there are none.
  std::function<Result<cdi::Edits>(const workload::Task&)> devices;
  /// The value of a variable that only the task's container is told, and that is kept nowhere: for those that
  /// a task has without a value. nullopt: it stays so. Called on the pool. May be empty: then there are none.
  std::function<std::optional<std::string>(const std::string& task_id, const std::string& name)> secret;
  image::VariantLookup image_variants;  ///< called on a pool
  /// The machine of a profile of the simulator, by its name. Called on the pool.
  std::function<Result<gpu::MachineFacts>(const std::string& profile)> profile_facts;
  /// That a container can be pinned to; none where it cannot.
  std::vector<int> usable_cpus;
  /// Ports of the machine on which somebody listens now. Quick; may be empty: then nobody is known to.
  std::function<std::set<int>()> listening;
  /// Bytes that are free where the journal and the tasks' folders are. Quick; may be empty: then there is
  /// room.
  std::function<std::uint64_t()> free_space;
  /// When fewer bytes are free there, the oldest ended tasks are forgotten (control/retention.h).
  std::uint64_t room_to_keep = 0;
  /// What is wrong with the machine, but for its GPUs. Quick; may be empty: then nothing is.
  std::function<std::vector<Error>()> problems;
  /// From now on exactly these checks are made of the task. May be empty: then there are none.
  std::function<void(const std::string& task_id, std::vector<CheckTarget>)> check;
};

class LocalEngine final : public Daemon {
 public:
  /// `view` holds what is constant about the node: name, disk, cgroups.
  LocalEngine(Ports ports, store::Journal journal, control::State state, NodeView view);

  /// For the Containerizer's constructor: what it sees becomes events on the strand.
  container::Watcher watcher();
  /// Starts work: finds the tasks of an earlier life again, also those that no record knows (blocks for
  /// these: local_strays.cc), then launches what waits. `runtime` is shown to people: "runc 1.1.5".
  Status start(std::unique_ptr<container::Containerizer> containerizer, std::string runtime);
  void tick();
  /// Ends preparations that may take long, so that the pool can be joined: before the daemon goes. The tasks
  /// are launched again at the next start.
  void abandon_launches();
  void checked(const CheckResult& result);
  /// For checks by command: CheckPorts::run_command.
  void run_command(const std::string& task_id, const std::vector<std::string>& command,
                   std::chrono::milliseconds timeout,
                   std::function<void(Result<CheckPorts::CommandOutcome>)> done);
  /// The machine was looked at again. Its name is as before.
  void set_machine(placement::Node machine);

  void submit(const Caller& caller, workload::TaskRequest request,
              std::function<void(Result<control::TaskRecord>)> done) override;
  void submit_gang(const Caller& caller, workload::GangRequest request,
                   std::function<void(Result<std::vector<control::TaskRecord>>)> done) override;
  Result<PlanView> plan(const Caller& caller, workload::GangRequest request) const override;
  void stop(const Caller& caller, const std::string& id, bool force,
            std::function<void(Result<control::TaskRecord>)> done) override;
  void remove(const Caller& caller, const std::string& id, std::function<void(Status)> done) override;
  Result<control::TaskRecord> task(const Caller& caller, const std::string& id) const override;
  void each_task(const Caller& caller,
                 const std::function<void(const control::TaskRecord&)>& visit) const override;
  Result<ExplanationView> explain(const Caller& caller, const std::string& id) const override;
  void exec(const Caller& caller, const std::string& id, ExecRequest request,
            std::function<void(Result<std::shared_ptr<ExecProcess>>)> done) override;
  Result<std::string> sandbox(const Caller& caller, const std::string& id) const override;
  std::vector<QueueView> queues(const Caller& caller) const override;
  std::vector<QuotaView> quotas(const Caller& caller) const override;
  void set_queue(const Caller& caller, placement::Queue queue, std::function<void(Status)> done) override;
  void remove_queue(const Caller& caller, const std::string& path, std::function<void(Status)> done) override;
  void set_quota(const Caller& caller, placement::Quota quota, std::function<void(Status)> done) override;
  void remove_quota(const Caller& caller, const placement::Subject& subject,
                    std::function<void(Status)> done) override;
  void backup(const Caller& caller, std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) override;
  void add_facts(metrics::DaemonFacts& facts) const override;
  NodeView node() const override;
  std::vector<Error> problems() const override;
  gpu::Inventory inventory() const override;
  void cdi(std::function<void(Result<std::string>)> done) override;
  void image_variants(const Caller& caller, const std::string& image, const std::string& profile,
                      std::function<void(Result<VariantsView>)> done) override;
  void look_at_images(const Caller& caller, const std::vector<std::string>& images,
                      std::function<void()> done) override;
  std::vector<Holder> holders(const Caller& caller) const override;
  std::vector<EventView> events(const Caller& caller, std::uint64_t after, std::size_t most) const override;
  std::shared_ptr<void> subscribe(std::function<void()> listener) override;
  const control::State& state() const override { return state_; }
  TimePoint now() const override { return ports_.now(); }
  TimePoint steady() const override { return ports_.steady ? ports_.steady() : ports_.now(); }
  Result<std::string> change(const control::Event& event) override;
  void happened(control::Event event) override;
  std::shared_ptr<void> watch(std::function<void(const control::Notice&)> listener) override {
    return notices_.add(std::move(listener));
  }

 private:
  /// Decide, journal, apply, act: change().
  Result<std::string> process(const control::Event& event);
  Result<control::Outcome> decide(const control::Event& event, Moment now);
  /// An error when it cannot be kept: then nothing has changed, and the same may succeed later.
  Result<std::string> carry_out(const control::Event& event, control::Outcome& outcome, Moment now);
  bool disk_is_full() const;
  Error full_disk() const;
  /// An error when the disk has no room for what an event makes.
  Status has_room_for(const control::Event& event) const;
  void retry_unsaved();
  void end_first(const control::event::StopRequested& wish);
  /// Takes note of ports that are taken by programs which are none of our tasks.
  void look_at_ports();

  // Who has GPUs open that are not his: local_strangers.cc.
  TaskProcesses processes_of(const control::TaskRecord& record) const;
  std::vector<TaskProcesses> processes_of_tasks() const;
  /// Of all GPUs, unless that was done lately or is being done.
  void look_for_strangers();
  void strangers_found(std::map<std::string, std::string> found);
  /// Looks on the pool while a start is prepared. Told on the pool, when it is ready: why the GPUs may not be
  /// given now.
  std::function<std::optional<Error>()> look_before_start(const std::vector<gpu::Device>& devices);
  std::optional<Error> refuse_for_strangers(const std::vector<gpu::Device>& devices,
                                            const std::vector<TaskProcesses>& tasks);
  // What users' tasks take up on the disk: local_space.cc.
  void look_at_space();
  void look_at_space_of(uid_t owner, std::vector<TaskProcesses> tasks);
  /// Ended tasks that were not looked at yet: they change no more. Of one user, or of all.
  void add_ended(std::vector<TaskProcesses>& tasks, std::optional<uid_t> owner = std::nullopt);
  void space_found(uid_t owner, const std::map<std::string, Result<std::uint64_t>>& found, TimePoint began);
  // Ended tasks that are forgotten because the disk has too little room: local_retention.cc.
  bool room_is_short() const;
  Error short_room() const;
  void make_room();
  void forget_for_room(const std::map<std::string, Result<std::uint64_t>>& found);
  // Tasks that do not end although they have been killed: local_lingering.cc.
  void is_to_end(const control::TaskRecord& record);
  void look_at_lingering();
  void lingering_found(const std::vector<TaskProcesses>& asked, std::map<std::string, std::string> found);
  /// What the machine has, as it was told last, without what nobody is to be given.
  void offer_machine();
  void publish(const control::TaskRecord& record);
  static bool may_take_hours(const workload::Task& task);
  static bool may_be_pulled(const std::string& image);
  void prepares(const std::string& id, const std::string& step);

  void copy_on(const std::shared_ptr<store::Copy>& copy,
               std::function<void(Result<std::shared_ptr<UniqueFd>>)> done);

  // Folders that the journal does not know: local_strays.cc. Nothing that a task wrote is removed because the
  // journal is silent about it.
  /// Takes those of tasks that ended out of the way; returns the tasks that run.
  Result<std::vector<control::TaskRecord>> look_for_strays();
  /// The task when it runs, and the journal does not know it, or not where.
  Result<std::optional<control::TaskRecord>> look_for_stray(const std::string& id);
  Status put_into_quarantine(const std::string& id, bool runs);

  // What is known of images: local_images.cc.
  /// With who reads each.
  /// With the user by whose rights each is looked at; nullopt: its owner, who is looked up first.
  using ImagesToSee = std::map<control::ImageName, std::optional<User>>;
  void look_at(ImagesToSee images, std::function<void()> done = {});
  static void add(ImagesToSee& images, const workload::Task& task);
  /// Of all work that may be started, and all that is known.
  ImagesToSee images_of_work() const;
  /// The tasks of these wait until they were looked at.
  void hold(const ImagesToSee& images);

  void perform(const control::action::Launch& action);
  void perform(const control::action::Stop& action);
  void perform(const control::action::Clean& action);
  void perform(const control::action::Forget& action);
  void recover(const std::string& id);
  /// Work about a task failed: `failure` (a literal) is told once, and `work` is done again until it
  /// succeeds, or puts nothing into the task's chain: then it is needed no more.
  void try_later(const std::string& id, std::string_view failure, const Error& why,
                 std::function<void()> work);
  /// All that is due.
  void try_again();
  /// Runs blocking work about one task, one at a time and in order; `then` runs on the strand with its
  /// answer.
  enum class Pace { kUsual, kSlow };
  void in_order(const std::string& id, uid_t owner, std::function<Status()> work,
                std::function<void(Status)> then, Pace pace = Pace::kUsual);
  /// `machine` is as it was when this was decided, with the task's GPUs.
  Status launch(const control::TaskRecord& record, const gpu::MachineFacts& machine,
                const std::stop_token& stop, std::function<Status()> may_start);

  void add_secrets(workload::Task& task) const;
  /// The task of a request, with user and owner.
  Result<cdi::Edits> devices_of(const workload::Task& task) const;
  Result<workload::Task> complete(const Caller& caller, workload::TaskRequest request) const;
  /// The tasks of a gang by rank, with their ids; the paths of errors say which member.
  Result<std::vector<workload::Task>> complete(const Caller& caller, workload::GangRequest request) const;
  std::string unused_id() const;
  Status change_rules(const Caller& caller, const std::function<Status(placement::Rules&)>& change);

  /// The caller's tasks that `id` may mean (see task()).
  std::vector<const control::TaskRecord*> matches(const Caller& caller, const std::string& id) const;
  Result<const control::TaskRecord*> find_one(const Caller& caller, const std::string& id) const;
  /// The only one, or the first of the only gang.
  Result<const control::TaskRecord*> find_job(const Caller& caller, const std::string& id) const;
  QueueView view_of(const Caller& caller, const placement::Queue& queue) const;
  std::string describe_cpus(const control::TaskRecord& record) const;
  std::vector<std::string> why_it_waits(const control::TaskRecord& record) const;
  std::vector<std::string> what_it_has(const control::TaskRecord& record) const;
  /// Where a task that waits stands, and what would let it start.
  void add_outlook(const control::TaskRecord& record, ExplanationView& view) const;
  /// With the reason why it waits, or what is being done for it.
  control::TaskRecord shown(const control::TaskRecord& record) const;
  bool is_shown_as_it_is(const control::TaskRecord& record) const;

  Ports ports_;
  store::Journal journal_;
  control::State state_;
  NodeView view_;
  std::unique_ptr<container::Containerizer> containerizer_;
  metrics::Histogram commits_{metrics::kDurations};
  std::deque<control::Event> unsaved_;
  bool retrying_ = false;
  Complaint unsaved_trouble_{ports_.log};
  std::optional<Error> broken_;    ///< what a plan would have done wrongly, last
  std::vector<std::string> gone_;  ///< tasks whose folders were removed; the next commit takes note
  TimePoint ports_seen_{};
  placement::Node told_machine_;                  ///< by set_machine(); strangers make GPUs of it unfit
  std::map<std::string, std::string> strangers_;  ///< why a GPU is not given, by UUID
  bool looking_for_strangers_ = false;
  struct UserSpace {
    struct Task {
      std::uint64_t bytes = 0;
      std::uint64_t while_all_was_well = 0;  ///< when its user last had no more than he may
    };
    std::map<std::string, Task> tasks;  ///< that were running when they were looked at last
    TimePoint next{};
    bool looking = false;
  };
  std::map<uid_t, UserSpace> space_;
  std::map<std::string, std::uint64_t> ended_bytes_;  ///< on the disk, of ended tasks that were looked at
  bool looks_for_room_ = false;
  TimePoint make_room_at_{};           ///< not before
  TimePoint look_for_strangers_at_{};  ///< not before
  struct Lingering {
    TimePoint overdue;  ///< from then on it should have ended
    std::string words;  ///< what still runs; "" until that is known
  };
  std::map<std::string, Lingering> lingering_;  ///< tasks that are asked to end
  bool looking_at_lingering_ = false;
  TimePoint look_at_lingering_at_{};              ///< not before
  std::map<std::string, pid_t> first_processes_;  ///< of tasks that run
  TimePoint tidy_at_{};                           ///< the journal, next
  std::map<std::string, std::string> preparing_;  ///< what is being done for a task that starts, in words
  struct Retry {
    std::string_view failure;  ///< what was told; a literal
    TimePoint at;
    std::function<void()> work;
  };
  std::map<std::string, Retry> retries_;  ///< by task
  /// Work about one task, and the threads that it is for. A step that has begun does nothing a second time.
  struct Step {
    Work step;
    uid_t owner;
    const std::function<void(uid_t, Work)>* threads;
    void send() const { (*threads)(owner, step); }
  };
  std::map<std::string, std::deque<Step>> chains_;
  std::map<std::string, std::stop_source> launching_;  ///< launches that are not through yet
  std::stop_source looking_;                           ///< at images in registries
  Feed feed_;
  Listeners<control::Notice> notices_;
};

}  // namespace drover::engine
