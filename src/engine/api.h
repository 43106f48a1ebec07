#pragma once

// What the APIs ask of the daemon: Decisions change the state, Views tell of it, Actions are carried out. One
// implementation of all of them runs in `drover serve`; tests of the APIs have their own, and a dry run only
// decides. Calls are made on the control strand and never block; answers that need the disk or the containers
// come through `done`, called on that strand. What changes the state does so in a transaction.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sandbox.h"
#include "base/units.h"
#include "base/users.h"
#include "control/controller.h"
#include "control/remedies.h"
#include "engine/event_query.h"
#include "engine/execution.h"
#include "engine/ports.h"
#include "engine/report.h"
#include "engine/task_list.h"
#include "engine/variants.h"
#include "gpu/device.h"
#include "metrics/daemon_metrics.h"
#include "placement/decision.h"
#include "placement/queues.h"
#include "workload/task.h"

namespace drover::engine {

/// What this node offers, and what of it is free.
struct NodeView {
  std::string name;
  int gpus_total = 0;
  int gpus_free = 0;  ///< healthy, and nobody has a share of them
  std::int64_t milli_cpus_total = 0;
  std::int64_t milli_cpus_free = 0;
  std::uint64_t memory_bytes_total = 0;
  std::uint64_t memory_bytes_free = 0;
  std::uint64_t disk_bytes = 0;
  int port_begin = 31000;
  int port_end = 32000;
  /// "gpus(*):1; cpus(*):40; mem(*):256904; disk(*):3489713; ports(*):[31000-32000]"
  std::string resources;
  std::string runtime;                      ///< "runc 1.1.5"
  std::string cgroups;                      ///< "v1", "v2" or "hybrid"
  std::chrono::milliseconds keep_ended{0};  ///< tasks that have ended are kept so long
  std::string cordoned;  ///< why it takes no new work: "by root: a new disk"; "" when it does
};

/// What would become of a request if it came now (nothing of it is done).
struct PlanView {
  bool starts_now = false;
  std::vector<workload::Resources> wanted;  ///< by rank: what each member asks for, or is given unasked
  /// By rank: where each member would go; empty when it does not start now.
  std::vector<placement::Decision> members;
  int victims = 0;                      ///< tasks that would be ended for it; it starts when they are gone
  std::vector<std::string> victim_ids;  ///< those of them that the caller may see
  int place = 0;                        ///< in the queue, 1 is the head; 0 when it starts now
  std::vector<std::string> reasons;     ///< why it would wait; none when it starts now
  std::vector<control::Remedy> remedies;
};

/// Why a task is in its state, in words.
struct ExplanationView {
  control::TaskRecord record;             ///< of the task; of the first member when a gang was asked for
  std::vector<std::string> reasons;       ///< none when there is nothing to say but the state
  std::vector<control::Remedy> remedies;  ///< what to do so that it starts now; only of one that waits
  int place = 0;                          ///< in the queue, 1 is the head; 0 when it does not wait
  /// How long it is thought to run, and when to start, by how long tasks like these have run; of one that
  /// waits.
  std::optional<std::chrono::milliseconds> expected_run;
  std::optional<TimePoint> expected_start;
};

/// One queue, as one caller may see it.
struct QueueView {
  placement::Queue queue;
  placement::ResourceAmounts used;  ///< by running work, also that of its children
  bool usable = false;              ///< whether the caller may put work into it
  /// One task, or a gang, that waits.
  struct Waiting {
    std::string id;  ///< of the task or the gang; "" unless the caller may see it
    std::string user;
    placement::ResourceAmounts wanted;  ///< of all members together
    int members = 1;
    int priority = 0;  ///< 0 unless the caller may see it
    TimePoint submitted_at{};
    std::vector<std::string> reasons;  ///< none unless the caller may see it
    int place = 0;                     ///< among all that wait, in whatever queue; 1 is the head
  };
  std::vector<Waiting> waiting;  ///< of this queue without its children, in the order in which they stand
};

struct QuotaView {
  placement::Quota quota;
  placement::ResourceAmounts used;
};

/// What takes long to find out, as it was when it was asked for. To be called once, on any thread; it blocks
/// only where that is said.
template <typename T>
using Later = std::function<T()>;

/// Changes of the state, and what they are decided from. A dry run has them too (dry_run.h).
class Decisions {
 public:
  virtual ~Decisions() = default;

  /// Runs `run` when it is its turn. What it decides with the calls that say so, and everything that it reads
  /// here, is as if it were alone; nobody else sees any of it before it is on the disk. Then `done` is
  /// called, after everybody has heard of it; with an Error nothing has changed, but that stops are carried
  /// out all the same, and kept when they can be. `run` may be called several times, and must not mind.
  virtual void transact(std::function<void()> run, std::function<void(Status kept)> done) = 0;

  /// Runs `run` as a transaction over `draft`, which keeps what is decided; nothing of it counts, is written
  /// or told. Neither it nor what it calls may throw (dry_run.h).
  virtual void rehearse(control::State& draft, const std::function<void()>& run) = 0;

  /// In a transaction. Validates rights and request, and makes the id.
  virtual Result<control::TaskRecord> submit(const Caller& caller, const workload::TaskRequest& request) = 0;
  /// As submit(), for all members of a gang at once: the records by rank. The path of an error starts with
  /// "/members/<rank>" where it is about one of them.
  virtual Result<std::vector<control::TaskRecord>> submit_gang(const Caller& caller,
                                                               const workload::GangRequest& request) = 0;
  /// As submit(), for all tasks of an array at once: the records by index.
  virtual Result<std::vector<control::TaskRecord>> submit_array(const Caller& caller,
                                                                const workload::ArrayRequest& request) {
    (void)caller, (void)request;
    return fail(ErrorKind::kUnsupported, "This daemon takes no arrays");
  }
  /// In a transaction, by root only. Adds these, or replaces those of the same paths and subjects: all or
  /// none. The error's path is as placement::validate() has it.
  virtual Status set_rules(const Caller& caller, std::vector<placement::Queue> queues,
                           std::vector<placement::Quota> quotas) = 0;
  /// Looks at images that the caller is about to name in work, so that it is known what they work on
  /// (control/image_fit.h). `done` is called in any case.
  virtual void inspect_images(const Caller& caller, const std::vector<std::string>& images,
                              std::function<void()> done) {
    (void)caller, (void)images;
    done();
  }

  // For the APIs whose definitions become services, schedules and offers. They know whose things a caller may
  // see and change: access.h.
  virtual const control::State& state() const = 0;
  /// The state as it is now, to be read on any thread. Takes microseconds.
  std::shared_ptr<const control::State> snapshot() const {
    auto copy = std::make_shared<control::State>(state());
    copy->cluster.detach();
    return copy;
  }
  virtual TimePoint now() const = 0;
  /// By the clock that nobody sets: Moment::steady.
  virtual TimePoint steady() const { return now(); }
  /// In a transaction. What it made; with an Error it is refused, and nothing has changed.
  virtual Result<control::Made> change(const control::Event& event) = 0;
};

/// What can be seen of the daemon.
class Views {
 public:
  virtual ~Views() = default;

  /// What would become of the request; one member is an ordinary task. Errors as those of submit(). It may
  /// block: on a cluster others are asked.
  virtual Later<Result<PlanView>> plan(const Caller& caller, workload::GangRequest request) const = 0;
  /// `id`: as find_tasks.h has it.
  virtual Result<control::TaskRecord> task(const Caller& caller, const std::string& id) const = 0;
  /// The caller's tasks (root: everyone's). A queued one carries in `reason` why it waits.
  virtual TaskList tasks(const Caller& caller) const = 0;
  /// Also by the id of a gang, or of an array.
  virtual Later<Result<ExplanationView>> explain(const Caller& caller, const std::string& id) const = 0;
  /// The sandbox folder of a task that the caller may read.
  virtual Result<std::string> sandbox(const Caller& caller, const std::string& id) const = 0;
  /// The files of that sandbox, wherever it is: on a cluster there is more of it than the folder has.
  virtual Result<std::shared_ptr<const SandboxReader>> files(const Caller& caller,
                                                             const std::string& id) const {
    DROVER_TRY(auto folder, sandbox(caller, id));
    return std::make_shared<const FolderReader>(std::move(folder));
  }
  /// Where the sandbox of a task is, by its full id, for those who know that the caller may read it. May be
  /// called on any thread.
  virtual std::string sandbox_of(const std::string& id) const = 0;

  /// To be called with full ids of tasks that the caller may see, on a pool: it reads a file. kNotFound of a
  /// task of which nothing is known. kUnsupported where nobody looks at what tasks use.
  virtual Result<UseHistory> use_history() const {
    return fail(ErrorKind::kUnsupported, "This daemon does not look at what tasks use");
  }
  /// What tasks that run use now, of all users, by their full ids. May be called on any thread.
  virtual std::map<std::string, use::Latest> latest_use() const { return {}; }

  /// Every queue that exists, by path; all callers see all queues, but not whose work it is that waits.
  virtual Later<std::vector<QueueView>> queues(const Caller& caller) const = 0;
  /// Root: all quotas. Others: those of their own name.
  virtual std::vector<QuotaView> quotas(const Caller& caller) const = 0;

  /// What metrics tell of its journal.
  virtual void add_facts(metrics::DaemonFacts&) const {}
  virtual NodeView node() const = 0;
  /// Each machine with its GPUs: this one, or the nodes of a cluster.
  struct Machine {
    NodeView view;
    gpu::Inventory inventory;
  };
  virtual std::vector<Machine> machines() const {
    std::vector<Machine> one;
    one.push_back({node(), inventory()});
    return one;
  }
  /// What is wrong with the machine and what the daemon keeps, but for the GPUs.
  virtual std::vector<Error> problems() const { return {}; }
  virtual gpu::Inventory inventory() const = 0;
  /// Who has a GPU, or a share of it: then several have the same one.
  struct Holder {
    std::string uuid;
    std::string task_id;  ///< "" unless the caller may see that task
    std::string user;
    int milli = 1000;
    std::uint64_t memory_bytes = 0;               ///< of the GPU's; 0 when unknown
    std::string tier = {};                        ///< placement::tier_of
    std::optional<placement::MigGrant> mig = {};  ///< the part of it that he has
    bool by_mps = false;                          ///< with the others of his group
    std::string group = {};                       ///< that one; "" as `task_id`
  };
  virtual Later<std::vector<Holder>> holders(const Caller& caller) const = 0;

  /// A piece of what was told, as far as the caller may hear of it. `done` may be called at once.
  virtual void events(const Caller& caller, const EventQuery& query, EventOrder order,
                      EventPageTaker done) = 0;
  /// The account of a time: root's of all, others' of their own tasks. kUnavailable when too many of the
  /// caller's are being made.
  virtual void report(const Caller& caller, const ReportQuery& query,
                      std::function<void(Result<Report>)> done) {
    (void)caller, (void)query;
    done(fail(ErrorKind::kUnsupported, "This daemon keeps no accounts"));
  }
  /// Calls `listener` on the strand after every new event until the returned handle dies.
  virtual std::shared_ptr<void> subscribe(std::function<void()> listener) = 0;
  /// Calls `listener` on the strand with everything that decisions tell, after they count, until the returned
  /// handle dies.
  virtual std::shared_ptr<void> watch(std::function<void(const control::Notice&)> listener) = 0;
};

/// What is done to tasks, rules and the machine itself, and what needs its disk.
class Actions {
 public:
  virtual ~Actions() = default;

  /// Asks the task to end; answers when the request is in the journal, or on a full disk when the task itself
  /// was told: it may be what fills it. `force` skips the grace. With one member of a gang, or the id of the
  /// gang or of an array, the whole of it is stopped; the answer is the named member or the first.
  virtual void stop(const Caller& caller, const std::string& id, bool force,
                    std::function<void(Result<control::TaskRecord>)> done) = 0;
  /// In a transaction. Another share of its GPUs for a task that runs (control/resizing.h).
  virtual Result<control::TaskRecord> resize(const Caller& caller, const std::string& id,
                                             const workload::Share& share) {
    (void)caller, (void)id, (void)share;
    return fail(ErrorKind::kUnsupported, "This daemon changes no shares");
  }
  /// In a transaction. Forgets an ended task and removes its sandbox.
  virtual Status remove(const Caller& caller, const std::string& id) = 0;

  /// Starts a command in the container of a task that runs, as the task's user. `id` as for task(). Whoever
  /// lets go of the process ends it, which may block: do it on the pool.
  virtual void exec(const Caller& caller, const std::string& id, ExecRequest request,
                    std::function<void(Result<std::shared_ptr<ExecProcess>>)> done) {
    (void)caller, (void)id, (void)request;
    done(fail(ErrorKind::kUnsupported, "This daemon runs no commands in containers"));
  }
  /// A connection to what the task reads, on which the frames of docs/api.md go. `id` as for task().
  /// kConflict when it does not run, kUnsupported when it takes no input.
  virtual void connect_input(const Caller& caller, const std::string& id,
                             std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
    (void)caller, (void)id;
    done(fail(ErrorKind::kUnsupported, "This daemon passes no input on"));
  }

  // In a transaction, by root only:
  /// kNotFound; kConflict while work waits or runs in it.
  virtual Status remove_queue(const Caller& caller, const std::string& path) = 0;
  /// kNotFound.
  virtual Status remove_quota(const Caller& caller, const placement::Subject& subject) = 0;

  /// Takes a GPU, by its UUID, or the whole machine (placement::kWholeMachine) out of use for new work, or
  /// gives another reason; none: takes the cordon away. Root only. kNotFound for a GPU that there is not.
  virtual Status set_cordon(const Caller& caller, const std::string& gpu,
                            const std::optional<std::string>& reason) {
    (void)caller, (void)gpu, (void)reason;
    return fail(ErrorKind::kUnsupported, "This daemon cordons nothing");
  }

  /// A copy of the journal, as it is when the copy is complete, in a file without a name. Root only.
  virtual void backup(const Caller& caller, std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
    (void)caller;
    done(fail(ErrorKind::kUnsupported, "This daemon keeps no journal"));
  }
  /// The CDI specification of the GPUs that are healthy, as JSON text.
  virtual void cdi(std::function<void(Result<std::string>)> done) = 0;
  /// The variants of an image, and which one this machine takes, or one that a profile of the simulator
  /// describes (`profile`, a name). The image is read with the rights of the caller.
  virtual void image_variants(const Caller& caller, const std::string& image, const std::string& profile,
                              std::function<void(Result<VariantsView>)> done) = 0;
  /// For what has happened and nobody can be told that it has not: it counts at once when it can be kept, and
  /// is tried again while it cannot. What the state does not allow any more is passed over.
  virtual void happened(control::Event event) = 0;
};

class Api : public Decisions, public Views, public Actions {};

}  // namespace drover::engine
