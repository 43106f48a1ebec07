#include "engine/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "control/deadlines.h"
#include "control/environment.h"
#include "control/jobs.h"
#include "control/journal.h"
#include "engine/image_fits.h"
#include "gpu/recognise.h"
#include "image/reference.h"

namespace drover::engine {
namespace {

constexpr std::chrono::seconds kTryAgain{5};  // what could not be done about a task
constexpr std::chrono::seconds kTidy{30};
constexpr std::string_view kFindFailed = "Failed to find again";
constexpr std::string_view kStopFailed = "Failed to stop";

/// What a member of a gang is told of the others: all of them are on this machine, whose network they share.
std::optional<container::GangPlace> place_of(const control::TaskRecord& record, const std::string& host) {
  const auto& gang = record.task.gang;
  if (!gang) return std::nullopt;
  const std::vector<std::string> hosts(static_cast<std::size_t>(gang->size), host);
  return container::GangPlace{gang->id, gang->rank, hosts, "127.0.0.1", record.gang_port};
}

/// Reads nothing of the state but what stays as it is.
container::Launch launch_of(const control::TaskRecord& record, const control::State& state) {
  container::Launch launch;
  launch.task = record.task;
  launch.record = control::text_of(record);
  launch.task.environment = control::environment_of(record, state.node, state.journal_id);
  launch.attempt = record.preemptions;
  launch.gpu_uuids = control::uuids_of(record);
  if (!record.task.resources.share.whole())
    for (const auto& grant : record.gpus) launch.gpu_shares.push_back({grant.milli, grant.memory_bytes});
  launch.host_ports = record.ports;
  launch.processes = record.task.processes.value_or(
      static_cast<int>(std::min<std::uint64_t>(state.limits.processes, workload::kMaxProcesses)));
  launch.cpus = record.cpus;
  launch.nics = record.nics;
  launch.gang = place_of(record, state.node);
  return launch;
}

}  // namespace

LocalEngine::LocalEngine(Ports ports, store::Journal journal, control::State state, NodeView view)
    : ports_(std::move(ports)),
      journal_(std::move(journal)),
      state_(std::move(state)),
      view_(std::move(view)),
      told_machine_(state_.machine()),
      feed_(static_cast<std::uint64_t>(ports_.now().time_since_epoch().count())) {}

container::Watcher LocalEngine::watcher() {
  return {[this](const std::string& id, container::Running running) {
            ports_.post([this, id, running] {
              first_processes_[id] = running.pid;
              happened(control::event::Started{id, running.started_at, std::nullopt, running.containerizer});
              look_at_space();
            });
          },
          [this](const std::string& id, workload::Ending ending) {
            ports_.post([this, id, ending] {
              first_processes_.erase(id);
              happened(control::event::Ended{id, ending});
            });
          },
          [this](const std::string& line) { ports_.post([this, line] { ports_.log(line); }); }};
}

Status LocalEngine::start(std::unique_ptr<container::Containerizer> containerizer, std::string runtime) {
  containerizer_ = std::move(containerizer);
  view_.runtime = std::move(runtime);
  // GPUs of a task that the journal does not know are nobody else's: so this is waited for.
  DROVER_TRY(auto found, look_for_strays());
  const auto images = images_of_work();
  hold(images);
  if (!found.empty())
    DROVER_CHECK_OK(process(control::event::Adopted{std::move(found)}).map([](const auto&) {}));
  for (const auto& [id, record] : state_.tasks) {
    if (record.state == control::TaskState::kStopping) is_to_end(record);
    if (control::owns_resources(record.state))
      recover(id);
    else if (control::is_final(record.state) || record.preemptions > 0)
      perform(control::action::Clean{id});
  }
  if (ports_.check)
    for (const auto& id : state_.active) ports_.check(id, targets_of(state_, id));
  // One by one: a file system that does not answer holds up its own images alone.
  for (const auto& image : images) look_at({image});
  tick();
  return {};
}

void LocalEngine::tick() {
  try_again();
  if (steady() >= tidy_at_) {
    tidy_at_ = steady() + kTidy;
    if (const auto tidied = journal_.tidy(); !tidied && !disk_is_full())
      ports_.log(to_string(tidied.error()));
  }
  happened(control::event::Tick{});
  if (!strangers_.empty()) look_for_strangers();
  look_at_space();
  make_room();
  look_at_lingering();
}

void LocalEngine::set_machine(placement::Node machine) {
  look_at_ports();
  machine.inventory = gpu::recognise(std::move(machine.inventory), state_.machine().inventory);
  told_machine_ = std::move(machine);
  offer_machine();
  look_for_strangers();
}

void LocalEngine::offer_machine() {
  const auto& before = state_.machine();
  auto machine = told_machine_;
  for (auto& device : machine.inventory.devices)
    if (const auto found = strangers_.find(device.uuid); device.unfit.empty() && found != strangers_.end())
      device.unfit = found->second;
  machine.strange_ports = before.strange_ports;
  if (machine == before) return;
  for (const auto& device : machine.inventory.devices) {
    const auto& old = before.inventory.devices;
    const auto known =
        std::find_if(old.begin(), old.end(), [&](const auto& other) { return other.uuid == device.uuid; });
    if (known != old.end() && known->unfit == device.unfit) continue;
    const auto message = device.unfit.empty()
                             ? fmt::format("GPU {} ({}) is fit", device.index, device.uuid)
                             : fmt::format("GPU {} ({}): {}", device.index, device.uuid, device.unfit);
    if (!device.unfit.empty())
      ports_.log(message);
    else if (ports_.info)
      ports_.info(message);
    feed_.add({0, ports_.now(), device.unfit.empty() ? "gpu_fit" : "gpu_unfit", "", 0, message});
  }
  ImagesToSee images;
  if (variant_facts(machine) != variant_facts(before)) images = images_of_work();
  hold(images);
  happened(control::event::NodeChanged{std::move(machine)});
  for (const auto& image : images) look_at({image});
}

void LocalEngine::prepares(const std::string& id, const std::string& step) {
  const auto found = state_.tasks.find(id);
  if (found == state_.tasks.end() || found->second.state != control::TaskState::kStarting) return;
  preparing_[id] = step;
  const auto& task = found->second.task;
  feed_.add({0, ports_.now(), "task_preparing", id, task.owner, fmt::format("{}: {}", task.name, step)});
}

void LocalEngine::publish(const control::TaskRecord& record) {
  if (record.state != control::TaskState::kStarting) preparing_.erase(record.task.id);
  if (record.state == control::TaskState::kStopping)
    is_to_end(record);
  else
    lingering_.erase(record.task.id);
  auto message = fmt::format("{} is {}", record.task.name, control::to_string(record.state));
  if (!record.reason.empty()) message += ": " + record.reason;
  feed_.add({0, ports_.now(), fmt::format("task_{}", control::to_string(record.state)), record.task.id,
             record.task.owner, message});
}

/// A list may name what registries have.
bool LocalEngine::may_be_pulled(const std::string& image) {
  using Kind = image::Reference::Kind;
  const auto reference = image::parse_reference(image);
  return reference && (reference->kind == Kind::kName || reference->kind == Kind::kVariantList);
}

/// What comes over the network: files, and images that registries have.
bool LocalEngine::may_take_hours(const workload::Task& task) {
  return !task.fetch.empty() || may_be_pulled(task.image.value_or("/"));
}

void LocalEngine::perform(const control::action::Launch& action) {
  if (!containerizer_) return;
  const auto& record = state_.tasks.at(action.id);
  const auto& node = state_.machine();
  const auto& inventory = node.inventory;
  gpu::MachineFacts machine{inventory.driver_version, inventory.cuda_version, {}, node.cpu};
  for (const auto& uuid : control::uuids_of(record))
    for (const auto& device : inventory.devices)
      if (device.uuid == uuid) machine.devices.push_back(device);
  ImagesToSee image;
  add(image, record.task);
  const std::stop_source source;
  launching_.insert_or_assign(action.id, source);
  const auto in_use = std::make_shared<std::optional<Error>>();
  const auto none_else = look_before_start(machine.devices);
  in_order(
      action.id, record.task.owner,
      [this, record, machine, source, in_use, none_else] {
        return launch(record, machine, source.get_token(), [in_use, none_else]() -> Status {
          *in_use = none_else();
          return *in_use ? Status(Failure(**in_use)) : Status();
        });
      },
      [this, id = action.id, attempt = record.preemptions, source, image, in_use](Status launched) {
        if (const auto own = launching_.find(id); own != launching_.end() && own->second == source)
          launching_.erase(own);
        if (*in_use)
          happened(control::event::PutBack{id, **in_use, attempt});
        else if (!launched)
          happened(control::event::LaunchFailed{id, launched.error(), attempt});
        look_at(image);  // it may have come, or have changed, since it was looked at
      },
      may_take_hours(record.task) ? Pace::kSlow : Pace::kUsual);
}

void LocalEngine::abandon_launches() {
  for (auto& [id, source] : launching_) source.request_stop();
  looking_.request_stop();
}

Status LocalEngine::launch(const control::TaskRecord& record, const gpu::MachineFacts& machine,
                           const std::stop_token& stop, std::function<Status()> may_start) {
  if (stop.stop_requested()) return fail(ErrorKind::kConflict, "It was stopped before it was started");
  auto launch = launch_of(record, state_);
  launch.stop = stop;
  launch.may_start = std::move(may_start);
  launch.progress = [this, id = record.task.id](const std::string& step) {
    ports_.post([this, id, step] { prepares(id, step); });
  };
  launch.machine = machine;
  const auto& devices = machine.devices;
  if (devices.size() != record.gpus.size())
    return fail(ErrorKind::kUnavailable, "A GPU that the task was given is no longer there");
  if (!devices.empty()) {
    DROVER_TRY(launch.gpu_devices, ports_.gpu_nodes(devices));
    DROVER_TRY(launch.driver, ports_.driver_supply());
  }
  DROVER_TRY(launch.devices, devices_of(record.task));
  return containerizer_->launch(launch);
}

Result<cdi::Edits> LocalEngine::devices_of(const workload::Task& task) const {
  if (task.devices.empty()) return cdi::Edits();
  if (ports_.devices) return ports_.devices(task);
  return fail(ErrorKind::kUnsupported, "This daemon gives no devices of other vendors");
}

void LocalEngine::checked(const CheckResult& result) {
  // It need not wait behind what cannot be saved: another one comes.
  if (!unsaved_.empty()) return;
  happened(control::event::Checked{result_of(result, ports_.now())});
}

void LocalEngine::run_command(const std::string& task_id, const std::vector<std::string>& command,
                              std::chrono::milliseconds timeout,
                              std::function<void(Result<CheckPorts::CommandOutcome>)> done) {
  const auto* record = state_.find(task_id);
  const auto owner = record == nullptr ? 0 : record->task.owner;
  ports_.pool(owner, [this, task_id, command, timeout, done = std::move(done)] {
    auto process = containerizer_->exec(task_id, {.command = command});
    if (!process) return done(Failure(process.error()));
    done(container::await_command(**process, timeout).map([](container::CommandOutcome outcome) {
      return CheckPorts::CommandOutcome{outcome.exit_status, std::move(outcome.output)};
    }));
  });
}

void LocalEngine::perform(const control::action::Stop& action) {
  const auto record = state_.tasks.find(action.id);
  if (!containerizer_ || record == state_.tasks.end()) return;
  if (const auto launching = launching_.find(action.id); launching != launching_.end()) {
    launching->second.request_stop();
    // A launch that still waits for a thread among fetches that take hours gives up on another.
    const auto& step = chains_.at(action.id).front();
    ports_.pool(step.owner, step.step);
  }
  in_order(
      action.id, record->second.task.owner,
      [this, action] { return containerizer_->stop(action.id, action.force); },
      [this, action](Status stopped) {
        const auto earlier = retries_.find(action.id);
        const auto failed = earlier == retries_.end() ? std::string_view() : earlier->second.failure;
        const auto* record = state_.find(action.id);
        if (stopped || record == nullptr || record->state != control::TaskState::kStopping) {
          if (failed == kStopFailed) retries_.erase(earlier);
          return;
        }
        if (failed == kFindFailed) return;  // once it is found again, it is stopped
        try_later(action.id, kStopFailed, stopped.error(), [this, action] {
          const auto* one = state_.find(action.id);
          if (one != nullptr && one->state == control::TaskState::kStopping) perform(action);
        });
      });
}

void LocalEngine::perform(const control::action::Clean& action) {
  const auto record = state_.tasks.find(action.id);
  // The same event may have it forgotten, which cleans up too.
  if (!containerizer_ || record == state_.tasks.end()) return;
  in_order(
      action.id, record->second.task.owner, [this, id = action.id] { return containerizer_->clean(id); },
      [this, action](Status cleaned) {
        if (cleaned)
          retries_.erase(action.id);
        else
          try_later(action.id, "Failed to clean up after", cleaned.error(), [this, action] {
            const auto* record = state_.find(action.id);  // another attempt cleans up before it begins
            if (record != nullptr && !control::owns_resources(record->state)) perform(action);
          });
      });
}

void LocalEngine::perform(const control::action::Forget& action) {
  if (!containerizer_) return;
  in_order(
      action.id, action.owner, [this, id = action.id] { return containerizer_->forget(id); },
      [this, action](Status forgotten) {
        if (!forgotten)
          return try_later(action.id, "Failed to remove the sandbox of", forgotten.error(),
                           [this, action] { perform(action); });
        retries_.erase(action.id);
        gone_.push_back(action.id);
      });
}

void LocalEngine::recover(const std::string& id) {
  auto found = std::make_shared<container::Found>(container::Found::kAlive);
  in_order(
      id, state_.tasks.at(id).task.owner,
      [this, id, found, attempt = state_.tasks.at(id).preemptions]() -> Status {
        DROVER_TRY(*found, containerizer_->recover(id, attempt));
        return {};
      },
      [this, id, found](Status recovered) {
        // Its GPUs stay its own: better a GPU idle than one given twice.
        if (!recovered)
          return try_later(id, kFindFailed, recovered.error(), [this, id] {
            const auto* record = state_.find(id);
            if (record != nullptr && control::owns_resources(record->state)) recover(id);
          });
        retries_.erase(id);
        if (*found == container::Found::kNever) happened(control::event::NeverStarted{id});
        if (*found == container::Found::kAlive) happened(control::event::StillAlive{id});
      });
}

void LocalEngine::try_later(const std::string& id, std::string_view failure, const Error& why,
                            std::function<void()> work) {
  auto& retry = retries_[id];
  if (retry.failure != failure)
    ports_.log(fmt::format("{} task '{}', and will try again: {}", failure, id, to_string(why)));
  retry = {failure, steady() + kTryAgain, std::move(work)};
  ports_.wake_at(retry.at);
}

void LocalEngine::try_again() {
  for (auto retry = retries_.begin(); retry != retries_.end();) {
    const auto& [id, again] = *retry++;
    if (steady() < again.at || chains_.contains(id)) continue;
    std::function<void()>(again.work)();
    if (!chains_.contains(id)) retries_.erase(std::string(id));  // it is needed no more
  }
}

void LocalEngine::in_order(const std::string& id, uid_t owner, std::function<Status()> work,
                           std::function<void(Status)> then, Pace pace) {
  auto& chain = chains_[id];
  const auto begun = std::make_shared<std::atomic_flag>();
  auto step = [this, id, begun, work = std::move(work), then = std::move(then)] {
    if (begun->test_and_set()) return;
    auto status = std::make_shared<Status>(work());
    ports_.post([this, id, then, status] {
      then(std::move(*status));
      auto& rest = chains_[id];
      rest.pop_front();
      if (rest.empty())
        chains_.erase(id);
      else
        rest.front().send();
    });
  };
  chain.push_back({std::move(step), owner, pace == Pace::kSlow ? &ports_.slow_pool : &ports_.pool});
  if (chain.size() == 1) chain.front().send();
}

void LocalEngine::stop(const Caller& caller, const std::string& id, bool force,
                       std::function<void(Result<control::TaskRecord>)> done) {
  const auto found = find_job(caller, id);
  if (!found) return done(Failure(found.error()));
  const auto& task = (*found)->task;
  const auto full_id = task.id;
  const bool whole_gang = task.gang && id != full_id;
  const auto named = whole_gang ? task.gang->id : full_id;
  const control::event::StopRequested wish{named, force};
  if (auto stopped = process(wish); !stopped) {
    if (stopped.error().kind != ErrorKind::kExhausted) return done(Failure(stopped.error()));
    happened(wish);
  }
  done(shown(state_.tasks.at(full_id)));
}

void LocalEngine::remove(const Caller& caller, const std::string& id, std::function<void(Status)> done) {
  const auto found = find_one(caller, id);
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
