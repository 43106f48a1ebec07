#include "engine/local.h"

#include <fmt/format.h>

#include <algorithm>

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
      journal_(std::move(journal)),
      state_(std::move(state)),
      view_(std::move(view)),
      feed_(static_cast<std::uint64_t>(ports_.now().time_since_epoch().count())),
      reported_machine_(state_.machine()),
      executor_(ports_, state_, feed_, executor_hooks()),
      images_(ports_, state_, [this](auto known) { (void)process(std::move(known)); }),
      processes_(state_),
      ended_sizes_(state_),
      strangers_(ports_, ports_.strangers, processes_, [this] { offer_machine(); }),
      lingering_(ports_, ports_.what_still_runs, state_, processes_, feed_),
      disk_use_(ports_, ports_.task_space, state_, processes_, ended_sizes_,
                [this](auto overdrawn) { happened(std::move(overdrawn)); }),
      // When it cannot be kept, the next look sees the same.
      disk_room_(ports_, state_, processes_, ended_sizes_, feed_,
                 [this](const std::string& id) { (void)process(control::event::RemoveRequested{id}); }) {}

ExecutorHooks LocalEngine::executor_hooks() {
  return {[this](control::Event event) { happened(std::move(event)); },
          [this](const auto& devices) { return strangers_.check_before_start(devices); },
          // Its image may have come, or have changed, since it was looked at.
          [this](const workload::Task& task) {
            ImageInspector::Wanted image;
            ImageInspector::add(image, task);
            images_.inspect(std::move(image));
          },
          [this](const std::string& id) { gone_.push_back(id); }};
}

container::Watcher LocalEngine::watcher() {
  return {[this](const std::string& id, container::Running running) {
            ports_.post([this, id, running] {
              processes_.started(id, running.pid);
              happened(control::event::Started{id, running.started_at, std::nullopt, running.containerizer});
              disk_use_.inspect();
            });
          },
          [this](const std::string& id, workload::Ending ending) {
            ports_.post([this, id, ending] {
              processes_.ended(id);
              happened(control::event::Ended{id, ending});
            });
          },
          [this](const std::string& line) { ports_.post([this, line] { ports_.log(line); }); }};
}

Status LocalEngine::start(std::unique_ptr<container::Containerizer> containerizer, std::string runtime) {
  executor_.start(std::move(containerizer));
  view_.runtime = std::move(runtime);
  // GPUs of a task that the journal does not know are nobody else's: so this is waited for.
  DROVER_TRY(auto strays, find_strays(*executor_.containerizer(), state_, ports_.log));
  gone_ = std::move(strays.gone);
  for (const auto& id : strays.forgotten) executor_.perform(control::action::Forget{id});
  for (const auto& problem : problems()) ports_.log(to_string(problem));
  const auto images = images_.of_work();
  control::apply(state_, images_.hold(images));
  if (!strays.running.empty())
    DROVER_CHECK_OK(process(control::event::Adopted{std::move(strays.running)}).map([](const auto&) {}));
  for (const auto& [id, record] : control::Rows<control::TaskRecord>(state_.tasks)) {
    lingering_.moved(record);
    if (control::owns_resources(record.state))
      executor_.recover(id);
    else if (control::is_final(record.state) || record.preemptions > 0)
      executor_.perform(control::action::Clean{id});
  }
  if (ports_.check)
    for (const auto& id : state_.active) ports_.check(id, targets_of(state_, id));
  images_.inspect_each(images);
  tick();
  return {};
}

void LocalEngine::tick() {
  executor_.try_again();
  if (steady() >= tidy_at_) {
    tidy_at_ = steady() + kTidy;
    if (const auto tidied = journal_.tidy(); !tidied && !disk_room_.is_full())
      ports_.log(to_string(tidied.error()));
  }
  happened(control::event::Tick{});
  if (!strangers_.found().empty()) strangers_.inspect(reported_machine_.inventory.devices);
  disk_use_.inspect();
  disk_room_.make();
  lingering_.inspect();
}

void LocalEngine::set_machine(placement::Node machine) {
  refresh_ports();
  machine.inventory = gpu::recognise(std::move(machine.inventory), state_.machine().inventory);
  reported_machine_ = std::move(machine);
  offer_machine();
  strangers_.inspect(reported_machine_.inventory.devices);
}

void LocalEngine::offer_machine() {
  const auto& before = state_.machine();
  auto machine = reported_machine_;
  for (auto& device : machine.inventory.devices)
    if (const auto found = strangers_.found().find(device.uuid);
        device.unhealthy.empty() && found != strangers_.found().end())
      device.unhealthy = found->second;
  machine.foreign_ports = before.foreign_ports;
  if (machine == before) return;
  for (const auto& device : machine.inventory.devices) {
    const auto& old = before.inventory.devices;
    const auto known =
        std::find_if(old.begin(), old.end(), [&](const auto& other) { return other.uuid == device.uuid; });
    if (known != old.end() && known->unhealthy == device.unhealthy) continue;
    const auto message = device.unhealthy.empty()
                             ? fmt::format("GPU {} ({}) is fit", device.index, device.uuid)
                             : fmt::format("GPU {} ({}): {}", device.index, device.uuid, device.unhealthy);
    if (!device.unhealthy.empty())
      ports_.log(message);
    else if (ports_.info)
      ports_.info(message);
    feed_.add({0, ports_.now(), device.unhealthy.empty() ? "gpu_fit" : "gpu_unfit", "", 0, message});
  }
  ImageInspector::Wanted images;
  if (variant_facts(machine) != variant_facts(before)) images = images_.of_work();
  control::apply(state_, images_.hold(images));
  happened(control::event::NodeChanged{std::move(machine)});
  images_.inspect_each(images);
}

void LocalEngine::publish(const control::TaskRecord& record) {
  executor_.moved(record);
  lingering_.moved(record);
  auto message = fmt::format("{} is {}", record.task.name, control::to_string(record.state));
  if (!record.reason.empty()) message += ": " + record.reason;
  feed_.add({0, ports_.now(), fmt::format("task_{}", control::to_string(record.state)), record.task.id,
             record.task.owner, message});
}

std::vector<Error> LocalEngine::problems() const {
  auto problems = ports_.problems ? ports_.problems() : std::vector<Error>{};
  if (auto problem = disk_room_.problem()) problems.push_back(std::move(*problem));
  if (broken_) problems.push_back(*broken_);
  if (!state_.unread.empty()) problems.push_back(unread_entries(state_.unread));
  if (executor_.containerizer() == nullptr) return problems;
  if (auto problem = quarantine_problem(*executor_.containerizer())) problems.push_back(std::move(*problem));
  return problems;
}

void LocalEngine::abandon_launches() {
  executor_.abandon_launches();
  images_.stop();
}

void LocalEngine::checked(const CheckResult& result) {
  // It need not wait behind what cannot be saved: another one comes.
  if (!unsaved_.empty()) return;
  happened(control::event::Checked{result_of(result, ports_.now())});
}

void LocalEngine::stop(const Caller& caller, const std::string& id, bool force,
                       std::function<void(Result<control::TaskRecord>)> done) {
  const auto found = find_job(state_, caller, id);
  if (!found) return done(Failure(found.error()));
  const auto& task = (*found)->task;
  const auto full_id = task.id;
  const bool whole_gang = task.gang && id != full_id;
  const auto named = whole_gang ? task.gang->id : full_id;
  const control::event::StopRequested request{named, force};
  if (auto stopped = process(request); !stopped) {
    if (stopped.error().kind != ErrorKind::kExhausted) return done(Failure(stopped.error()));
    happened(request);
  }
  done(shown(state_.tasks.at(full_id)));
}

void LocalEngine::remove(const Caller& caller, const std::string& id, std::function<void(Status)> done) {
  const auto found = find_task(state_, caller, id);
  if (!found) return done(Failure(found.error()));
  done(process(control::event::RemoveRequested{(*found)->task.id}).map([](const std::string&) {}));
}

void LocalEngine::cdi(std::function<void(Result<std::string>)> done) {
  ports_.pool(0, [this, done = std::move(done)] {
    auto answer = std::make_shared<Result<std::string>>(ports_.cdi_specification());
    ports_.post([done, answer] { done(std::move(*answer)); });
  });
}

}  // namespace drover::engine
