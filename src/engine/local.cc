#include "engine/local.h"

#include <fmt/format.h>

#include <utility>

#include "control/group_name.h"
#include "engine/find_tasks.h"
#include "engine/image_fits.h"
#include "engine/strays.h"
#include "gpu/recognise.h"

namespace drover::engine {
namespace {

constexpr std::chrono::seconds kTidy{30};

Error unread_entries(const std::vector<Error>& unread) {
  const auto count = unread.size();
  return {ErrorKind::kCorrupt,
          fmt::format("{} entr{} of the journal cannot be read and {} kept as {}: {}{}", count,
                      count == 1 ? "y" : "ies", count == 1 ? "is" : "are", count == 1 ? "it is" : "they are",
                      unread.front().message, count == 1 ? "" : ", …"),
          "a newer Drover may read them; 'drover backup' makes a copy with all of them", ""};
}

Ports with_steady(Ports ports) {
  if (!ports.steady) ports.steady = ports.now;
  return ports;
}

}  // namespace

LocalEngine::LocalEngine(Ports ports, store::Journal journal, control::State state, NodeView view)
    : ports_(with_steady(std::move(ports))),
      state_(std::move(state)),
      view_(std::move(view)),
      reported_machine_(state_.machine()),
      offered_machine_(reported_machine_),
      loop_(ports_, std::move(journal), state_, event_hooks()),
      feed_(loop_.last_event()),
      kept_events_(ports_, loop_),
      kept_allocations_(ports_, loop_),
      executor_(ports_, state_, executor_hooks()),
      images_(ports_, state_, [this](auto known) { found(std::move(known)); }),
      processes_(state_),
      ended_sizes_(state_),
      strangers_(ports_, ports_.strangers, processes_, [this] { offer_machine(); }),
      lingering_(ports_, ports_.what_still_runs, state_, processes_,
                 [this](const auto& id, const auto& words) {
                   happened(control::event::Noted{"task_lingering", id, words});
                 }),
      disk_use_(ports_, ports_.task_space, state_, processes_, ended_sizes_,
                [this](auto overdrawn) { happened(std::move(overdrawn)); }),
      idle_gpus_(ports_, ports_.busy_tasks, state_, processes_,
                 [this](auto event) { happened(std::move(event)); }),
      share_watch_(ports_, ports_.watch_shares, state_, processes_,
                   [this](auto event) { happened(std::move(event)); }),
      disk_room_(ports_, state_, processes_, ended_sizes_, [this](const auto& id, const auto& words) {
        const control::event::Noted noted{"task_forgotten", id, words};
        transact(
            [this, noted] {
              if (loop_.change(noted)) (void)loop_.change(control::event::RemoveRequested{noted.task});
            },
            {});
      }) {}

ExecutorHooks LocalEngine::executor_hooks() {
  return {[this](control::Event event) { happened(std::move(event)); },
          [this](const auto& devices) { return strangers_.check_before_start(devices); },
          // Its image may have come, or have changed, since it was looked at.
          [this](const workload::Task& task) {
            ImageInspector::Wanted image;
            ImageInspector::add(image, task);
            images_.inspect(std::move(image));
          },
          [this](const std::string& id) { loop_.remove_with_next(control::forgotten_key(id)); }};
}

container::Watcher LocalEngine::watcher() {
  container::Watcher watcher;
  watcher.started = [this](const std::string& id, container::Running running) {
    ports_.post([this, id, running] {
      processes_.started(id, running.pid);
      happened(control::event::Started{id, running.started_at, std::nullopt, running.containerizer,
                                       running.address, running.tier, running.parts});
      watch_use(id);
      disk_use_.inspect();
      idle_gpus_.inspect();
      share_watch_.inspect();
    });
  };
  watcher.ended = [this](const std::string& id, workload::Ending ending) {
    auto use = ports_.end_use ? ports_.end_use(id) : std::nullopt;
    ports_.post([this, id, ending, use = std::move(use)] {
      processes_.ended(id);
      if (ports_.forget_use) ports_.forget_use(id);  // whose start came here after its end came there
      happened(control::event::Ended{id, ending, std::nullopt, use});
    });
  };
  watcher.log = [this](const std::string& line) { ports_.post([this, line] { ports_.log(line); }); };
  const auto tell = [this](control::Event event) {
    ports_.post([this, event = std::move(event)] { happened(event); });
  };
  watcher.placed = [tell](const std::string& id, int attempt, const container::Place& place) {
    std::vector<placement::Grant> gpus;
    for (const auto& uuid : place.gpus) gpus.push_back({uuid});
    tell(control::event::Placed{id, place.node, std::move(gpus), attempt});
  };
  watcher.waits = [tell](const std::string& id, const std::string& why) {
    tell(control::event::Waits{id, why});
  };
  watcher.evicted = [tell](const std::string& id, int attempt, const std::string& why) {
    tell(control::event::Evicted{id, why, attempt});
  };
  watcher.put_back = [tell](const std::string& id, int attempt, const Error& why) {
    tell(control::event::PutBack{id, why, attempt});
  };
  watcher.failed = [tell](const std::string& id, int attempt, const Error& why) {
    tell(control::event::LaunchFailed{id, why, attempt});
  };
  return watcher;
}

void LocalEngine::watch_use(const std::string& id) {
  const auto* record = state_.find(id);
  if (!ports_.watch_use || record == nullptr || !control::owns_resources(record->state)) return;
  use::Watched task{id, processes_.of(*record).first, {}};
  const bool by_mps = record->task.resources.by_mps();
  for (const auto& grant : record->gpus) {
    gpu::Device device{grant.uuid};
    for (const auto& known : state_.machine().inventory.devices)
      if (known.uuid == grant.uuid) device = known;
    task.gpus.push_back({std::move(device), grant.milli >= 1000 && !grant.mig, !by_mps && !grant.mig});
  }
  ports_.watch_use(std::move(task));
}

Status LocalEngine::start(std::unique_ptr<container::Containerizer> containerizer, std::string runtime) {
  executor_.start(std::move(containerizer));
  view_.runtime = std::move(runtime);
  // GPUs of a task that the journal does not know are nobody else's: so this is waited for.
  DROVER_TRY(auto strays, find_strays(*executor_.containerizer(), state_, ports_.log));
  for (const auto& id : strays.gone) loop_.remove_with_next(control::forgotten_key(id));
  for (const auto& id : strays.forgotten) executor_.perform(control::action::Forget{id});
  if (ports_.keep_rules) ports_.keep_rules(state_.rules);
  for (const auto& problem : problems()) ports_.log(to_string(problem));
  const auto images = images_.of_work();
  Result<control::Made> adopted;
  Status kept;
  transact(
      [&] {
        loop_.note(images_.hold(images));
        if (!strays.running.empty()) adopted = loop_.change(control::event::Adopted{strays.running});
      },
      [&](Status status) { kept = std::move(status); });
  DROVER_CHECK_OK(adopted);
  DROVER_CHECK_OK(kept);
  for (const auto& [id, record] : control::Rows<control::TaskRecord>(state_.tasks)) {
    lingering_.moved(record);
    if (control::is_under_way(record))
      executor_.recover(id);
    else if (control::is_final(record.state) || control::attempt_of(record) > 0)
      executor_.perform(control::action::Clean{id});
  }
  if (ports_.check)
    for (const auto& id : state_.active) ports_.check(id, targets_of(state_, id));
  images_.inspect_each(images);
  tick();
  loop_.serve();
  kept_events_.start(feed_.last());
  share_watch_.inspect();
  return {};
}

void LocalEngine::tick() {
  executor_.try_again();
  if (steady() >= tidy_at_) {
    tidy_at_ = steady() + kTidy;
    loop_.on_journal([this](store::Journal& journal) -> Work {
      return [this, tidied = journal.tidy()] {
        if (!tidied && !disk_room_.is_full()) ports_.log(to_string(tidied.error()));
      };
    });
    kept_events_.tidy();
    kept_allocations_.tidy();
  }
  loop_.tick();
  if (const auto silent = loop_.silence()) {
    kept_events_.refuse(*silent);
    kept_allocations_.refuse(*silent);
  }
  happened(control::event::Tick{});
  if (!strangers_.found().empty()) strangers_.inspect(reported_machine_.inventory.devices);
  disk_use_.inspect();
  idle_gpus_.inspect();
  disk_room_.make();
  lingering_.inspect();
}

void LocalEngine::set_machine(placement::Node machine) {
  machine.inventory = gpu::recognise(std::move(machine.inventory), offered_machine_.inventory);
  reported_machine_ = std::move(machine);
  offer_machine();
  strangers_.inspect(reported_machine_.inventory.devices);
}

void LocalEngine::set_nodes(std::vector<placement::Node> nodes) {
  const auto before =
      std::exchange(nodes_, std::make_shared<const std::vector<placement::Node>>(std::move(nodes)));
  happened(control::event::NodesChanged{nodes_});
  if (before) tell(fitness_news(*before, *nodes_));
}

/// Behind the change itself: what is told has to be kept, and the GPUs are as they are.
void LocalEngine::tell(const std::vector<FitnessNews>& news) {
  for (const auto& one : news) {
    if (!one.is_fit)
      ports_.log(one.message);
    else if (ports_.info)
      ports_.info(one.message);
    happened(control::event::Noted{one.is_fit ? "gpu_fit" : "gpu_unfit", "", one.message});
  }
}

void LocalEngine::offer_machine() {
  const auto& before = offered_machine_;
  auto machine = reported_machine_;
  for (auto& device : machine.inventory.devices)
    if (const auto found = strangers_.found().find(device.uuid);
        device.unhealthy.empty() && found != strangers_.found().end())
      device.unhealthy = found->second;
  if (machine == before) return;
  const auto news = fitness_news(before.inventory.devices, machine.inventory.devices);
  ImageInspector::Wanted images;
  if (variant_facts(machine) != variant_facts(before)) images = images_.of_work();
  offered_machine_ = std::move(machine);
  if (!images.empty()) transact([this, images] { loop_.note(images_.hold(images)); }, {});
  machine_images_.merge(images);
  happened(control::event::NodeChanged{offered_machine_});
  tell(news);
}

std::vector<Error> LocalEngine::problems() const {
  auto problems = ports_.problems ? ports_.problems() : std::vector<Error>{};
  if (auto problem = disk_room_.problem()) problems.push_back(std::move(*problem));
  if (broken_) problems.push_back(*broken_);
  if (auto silent = loop_.silence()) problems.push_back(std::move(*silent));
  if (!state_.unread.empty()) problems.push_back(unread_entries(state_.unread));
  if (executor_.containerizer() == nullptr) return problems;
  if (auto problem = quarantine_problem(*executor_.containerizer())) problems.push_back(std::move(*problem));
  return problems;
}

void LocalEngine::abandon_launches() {
  loop_.stop();
  executor_.abandon_launches();
  images_.stop();
}

void LocalEngine::checked(const CheckResult& result) {
  happened(control::event::Checked{result_of(result, ports_.now())});
}

void LocalEngine::stop(const Caller& caller, const std::string& id, bool force,
                       std::function<void(Result<control::TaskRecord>)> done) {
  const auto found = find_job(state_, caller, id);
  if (!found) return done(Failure(found.error()));
  const auto full_id = (*found)->task.id;
  const control::event::StopRequested request{meant_by(**found, id), force};
  const auto refusal = std::make_shared<std::optional<Error>>();
  transact(
      [this, request, refusal] {
        const auto stopped = loop_.change(request);
        *refusal = stopped ? std::nullopt : std::optional(stopped.error());
      },
      [this, request, refusal, full_id, done = std::move(done)](const Status& kept) {
        // What could not be written is told the task all the same; what was not even tried is so here.
        if (!kept && kept.error().kind == ErrorKind::kUnavailable) happened(request);
        const bool told = kept || kept.error().kind == ErrorKind::kUnavailable ||
                          kept.error().kind == ErrorKind::kExhausted;
        if (!told) return done(Failure(kept.error()));
        if (*refusal) return done(Failure(**refusal));
        const auto* record = state_.find(full_id);
        if (record != nullptr) return done(shown(*record));
        done(fail(ErrorKind::kNotFound, fmt::format("There is no task '{}' any more", full_id)));
      });
}

Result<control::TaskRecord> LocalEngine::resize(const Caller& caller, const std::string& id,
                                                const workload::Share& share) {
  DROVER_TRY(const auto* found, find_task(state(), caller, id));
  const auto full_id = found->task.id;
  DROVER_CHECK_OK(change(control::event::ResizeRequested{full_id, share}));
  return shown(state().tasks.at(full_id));
}

void LocalEngine::mps_restarted(const std::string& group) {
  std::vector<control::event::Noted> lost;
  for (const auto& id : state_.active) {
    const auto& record = state_.tasks.at(id);
    if (record.state != control::TaskState::kRunning || control::mps_group_of(record.task) != group) continue;
    lost.push_back(
        {"mps_restarted", id,
         fmt::format("the MPS daemon of its group '{}' had ended and was started again: what it had "
                     "on its GPUs is lost",
                     record.task.resources.group)});
  }
  for (auto& noted : lost) happened(std::move(noted));
}

Status LocalEngine::remove(const Caller& caller, const std::string& id) {
  DROVER_TRY(const auto* record, find_task(state_, caller, id));
  const control::event::RemoveRequested request{record->task.id};
  DROVER_CHECK_OK(loop_.change(request));
  return {};
}

void LocalEngine::cdi(std::function<void(Result<std::string>)> done) {
  ports_.pool(0, [this, done = std::move(done)] {
    auto answer = std::make_shared<Result<std::string>>(ports_.cdi_specification());
    ports_.post([done, answer] { done(std::move(*answer)); });
  });
}

}  // namespace drover::engine
