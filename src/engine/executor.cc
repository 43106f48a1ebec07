#include "engine/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "control/environment.h"
#include "control/group_name.h"
#include "control/journal.h"
#include "engine/image_inspector.h"
#include "gpu/share_tier.h"

namespace drover::engine {
namespace {

constexpr std::chrono::seconds kTryAgain{5};  // what could not be done about a task
constexpr std::string_view kFindFailed = "Failed to find again";
constexpr std::string_view kStopFailed = "Failed to stop";
constexpr std::string_view kUndoFailed = "Failed to put back the GPUs of";
constexpr std::string_view kResizeFailed = "Failed to set the driver's limit of";

/// What a member of a gang is told of the others: all of them are on this machine, whose network they share.
std::optional<container::GangPlace> place_of(const control::TaskRecord& record, const std::string& host) {
  const auto& gang = record.task.gang;
  if (!gang) return std::nullopt;
  const std::vector<std::string> hosts(static_cast<std::size_t>(gang->size), host);
  return container::GangPlace{gang->id, gang->rank, hosts, "127.0.0.1", record.gang_port};
}

container::Launch launch_of(const control::TaskRecord& record, const LaunchFacts& facts) {
  container::Launch launch;
  launch.task = record.task;
  launch.record = control::text_of(record);
  launch.task.environment = control::environment_of(record, facts.node, facts.journal_id);
  launch.attempt = control::attempt_of(record);
  launch.preemptions = record.preemptions;
  launch.gpu_uuids = control::uuids_of(record);
  for (const auto& grant : record.gpus)
    if (grant.mig) launch.parts.push_back({grant.uuid, grant.mig->profile_id, grant.mig->placement});
  if (launch.parts.empty() && !record.task.resources.share.whole())
    for (const auto& grant : record.gpus) launch.gpu_shares.push_back({grant.milli, grant.memory_bytes});
  launch.mps_group = control::mps_group_of(record.task);
  launch.host_ports = record.ports;
  launch.processes = record.task.processes.value_or(
      static_cast<int>(std::min<std::uint64_t>(facts.processes, workload::kMaxProcesses)));
  launch.cpus = record.cpus;
  launch.nics = record.nics;
  launch.node_rules = facts.node_rules;
  launch.gang = place_of(record, facts.node);
  return launch;
}

/// What the guard, which goes before the driver, holds the task to.
std::vector<share::Limit> limits_of(const container::Launch& launch) {
  const auto& wanted = launch.task.resources;
  if (launch.task.driver != workload::DriverSource::kHost || wanted.share_by == workload::ShareBy::kNone)
    return {};
  const bool insists = wanted.share_by == workload::ShareBy::kLimits;
  std::vector<share::Limit> limits;
  for (std::size_t i = 0; i < launch.gpu_shares.size(); ++i) {
    const auto bytes = launch.gpu_shares[i].memory_bytes;
    if (bytes < workload::kMinGuarded && !insists) return {};
    limits.push_back({launch.gpu_uuids.at(i), bytes, launch.gpu_shares[i].milli});
  }
  return limits;
}

/// Empty where the driver is not to do it, or cannot and need not. It limits control groups, of which a group
/// of tasks has several.
Result<container::MemoryLimiter> memory_limiter(const Ports& ports, const container::Launch& launch) {
  const auto& wanted = launch.task.resources;
  const bool insists = wanted.share_by == workload::ShareBy::kKernel;
  if (launch.gpu_shares.empty() || !wanted.group.empty()) return {};
  if (!insists && (wanted.share_by != workload::ShareBy::kAuto || !ports.memory_limiter)) return {};
  std::vector<share::KernelLimit> limits;
  for (std::size_t i = 0; i < launch.gpu_shares.size(); ++i)
    limits.push_back({launch.gpu_uuids.at(i), launch.gpu_shares[i].memory_bytes});
  auto limiter = ports.memory_limiter
                     ? ports.memory_limiter(limits)
                     : fail(ErrorKind::kUnsupported, "The driver limits nobody's memory here");
  if (limiter) return limiter;
  if (!insists) return {};
  return Failure(context(limiter.error(), "The driver cannot hold it to its share of a GPU's memory"));
}

Result<container::DriverSupply> guarded_supply(const Ports& ports, const container::Launch& launch) {
  auto supply = ports.driver_supply(true);
  if (supply && !launch.task.image && supply->on_host.empty())
    return fail(
        ErrorKind::kUnsupported,
        "a task without an image does not see the files of this driver, which the guard would lie over",
        "name an image, or ask for a share that nothing enforces: --share-by none");
  return supply;
}

/// Whether a launch does something to its GPUs that outlives it: makes parts of them, or has MPS there.
bool changes_gpus(const control::TaskRecord& record) {
  return record.task.resources.by_mps() ||
         std::ranges::any_of(record.gpus, [](const auto& grant) { return grant.mig.has_value(); });
}

/// What comes over the network: files, and images that registries have.
bool may_take_hours(const workload::Task& task) {
  return !task.fetch.empty() || may_be_pulled(task.image.value_or("/"));
}

}  // namespace

void Executor::start(std::unique_ptr<container::Containerizer> containerizer) {
  containerizer_ = std::move(containerizer);
}

void Executor::perform(const control::Action& action) {
  if (containerizer_) std::visit([this](const auto& specific) { carry_out(specific); }, action);
}

void Executor::moved(const control::TaskRecord& record) {
  if (record.state != control::TaskState::kStarting) preparing_.erase(record.task.id);
}

void Executor::prepares(const std::string& id, const std::string& step) {
  const auto found = state_.tasks.find(id);
  if (found == state_.tasks.end() || found->second.state != control::TaskState::kStarting) return;
  preparing_[id] = step;
  hooks_.happened(control::event::Noted{"task_preparing", id, step});
}

void Executor::carry_out(const control::action::Launch& action) {
  const auto& record = state_.tasks.at(action.id);
  const auto& node = state_.machine();
  const auto& inventory = node.inventory;
  LaunchFacts facts{state_.node, state_.journal_id, state_.limits.processes, {}, action.node_rules};
  auto& machine = facts.machine = {inventory.driver_version, inventory.cuda_version, {}, node.cpu};
  for (const auto& uuid : control::uuids_of(record))
    for (const auto& device : inventory.devices)
      if (device.uuid == uuid) machine.devices.push_back(device);
  if (!record.task.resources.group.empty()) share_groups_.update(state_);
  const std::stop_source source;
  launching_.insert_or_assign(action.id, source);
  const auto in_use = std::make_shared<std::optional<Error>>();
  const auto none_else = hooks_.check_before_start(machine.devices);
  run_serially(
      action.id, record.task.owner,
      [this, record, facts, source, in_use, none_else] {
        return launch(record, facts, source.get_token(), [in_use, none_else]() -> Status {
          *in_use = none_else();
          return *in_use ? Status(Failure(**in_use)) : Status();
        });
      },
      [this, id = action.id, attempt = control::attempt_of(record), source, task = record.task,
       in_use](Status launched) {
        if (const auto own = launching_.find(id); own != launching_.end() && own->second == source)
          launching_.erase(own);
        if (*in_use)
          tell_when_undone(id, control::event::PutBack{id, **in_use, attempt});
        else if (!launched)
          tell_when_undone(id, control::event::LaunchFailed{id, launched.error(), attempt});
        hooks_.launched(task);
      },
      may_take_hours(record.task) ? Pace::kSlow : Pace::kUsual);
}

Status Executor::launch(const control::TaskRecord& record, const LaunchFacts& facts,
                        const std::stop_token& stop, std::function<Status()> may_start) {
  if (stop.stop_requested()) return fail(ErrorKind::kConflict, "It was stopped before it was started");
  auto launch = launch_of(record, facts);
  launch.stop = stop;
  launch.may_start = std::move(may_start);
  launch.progress = [this, id = record.task.id](const std::string& step) {
    ports_.post([this, id, step] { prepares(id, step); });
  };
  launch.machine = facts.machine;
  add_secrets(launch);
  const auto& devices = facts.machine.devices;
  if (devices.size() != record.gpus.size())
    return fail(ErrorKind::kUnavailable, "A GPU that the task was given is no longer there");
  if (!devices.empty()) {
    if (launch.parts.empty()) {
      DROVER_TRY(launch.gpu_devices, ports_.gpu_nodes(devices));
    }
    DROVER_CHECK_OK(add_driver(launch));
  }
  DROVER_TRY(launch.devices, devices_of(record.task));
  return containerizer_->launch(launch);
}

void Executor::tell_when_undone(const std::string& id, control::Event told) {
  const auto* record = state_.find(id);
  if (record == nullptr || !changes_gpus(*record)) return hooks_.happened(std::move(told));
  run_serially(
      id, record->task.owner, [this, id] { return containerizer_->clean(id); },
      [this, id, told = std::move(told)](Status undone) {
        if (undone) {
          const auto earlier = retries_.find(id);
          if (earlier != retries_.end() && earlier->second.failure == kUndoFailed) retries_.erase(earlier);
          return hooks_.happened(told);
        }
        prepares(id, "it did not start, and its GPUs are its own until they are as they were: " +
                         undone.error().message);
        try_later(id, kUndoFailed, undone.error(), [this, id, told] { tell_when_undone(id, told); });
      });
}

/// By the driver itself, where it can, and by the guard in front of it, which limits time too. Where neither
/// can, a share is counted, unless the task insists.
Status Executor::add_driver(container::Launch& launch) const {
  DROVER_TRY(launch.limit_memory, memory_limiter(ports_, launch));
  launch.limits = limits_of(launch);
  if (!launch.task.resources.group.empty())
    launch.together = [this, group = control::group_of(launch.task)] { return share_groups_.members(group); };
  auto supply = launch.limits.empty() ? ports_.driver_supply(false) : guarded_supply(ports_, launch);
  if (!supply && !launch.limits.empty() && launch.task.resources.share_by != workload::ShareBy::kLimits) {
    launch.limits.clear();
    supply = ports_.driver_supply(false);
  }
  if (!supply) return Failure(supply.error());
  launch.driver = *std::move(supply);
  return {};
}

void Executor::exec(uid_t asker, const std::string& id, ExecRequest request,
                    std::function<void(Result<std::shared_ptr<ExecProcess>>)> done) {
  ports_.pool(asker, [this, id, request = std::move(request), done = std::move(done)] {
    auto started = containerizer_->exec(id, request);
    auto answer = std::make_shared<Result<std::shared_ptr<ExecProcess>>>(
        started ? Result<std::shared_ptr<ExecProcess>>(std::move(*started)) : Failure(started.error()));
    ports_.post([done, answer] { done(std::move(*answer)); });
  });
}

void Executor::connect_input(uid_t asker, const std::string& id,
                             std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
  ports_.pool(asker, [this, id, done = std::move(done)] {
    const auto answer =
        std::make_shared<Result<std::shared_ptr<UniqueFd>>>(containerizer_->connect_input(id).map(
            [](UniqueFd socket) { return std::make_shared<UniqueFd>(std::move(socket)); }));
    ports_.post([done, answer] { done(std::move(*answer)); });
  });
}

void Executor::add_secrets(container::Launch& launch) const {
  if (!ports_.secret) return;
  auto& task = launch.task;
  const auto given = task.environment;
  for (const auto& [name, value] : given)
    if (auto secret = value.empty() ? ports_.secret(task.id, name) : std::nullopt) {
      task.environment.edit()[name] = std::move(*secret);
      launch.secrets.insert(name);
    }
}

Result<cdi::Edits> Executor::devices_of(const workload::Task& task) const {
  if (task.devices.empty()) return cdi::Edits();
  if (ports_.devices) return ports_.devices(task);
  return fail(ErrorKind::kUnsupported, "This daemon gives no devices of other vendors");
}

void Executor::abandon_launches() {
  for (auto& [id, source] : launching_) source.request_stop();
}

void Executor::run_command(const std::string& task_id, const std::vector<std::string>& command,
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

void Executor::carry_out(const control::action::Stop& action) {
  const auto record = state_.tasks.find(action.id);
  if (record == state_.tasks.end()) return;
  if (const auto launching = launching_.find(action.id); launching != launching_.end()) {
    launching->second.request_stop();
    // A launch that still waits for a thread among fetches that take hours gives up on another.
    const auto& step = serial_queues_.at(action.id).front();
    ports_.pool(step.owner, step.step);
  }
  run_serially(
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
        // Once it is found again, it is stopped; and what did not start ends when that is undone.
        if (failed == kFindFailed || failed == kUndoFailed) return;
        try_later(action.id, kStopFailed, stopped.error(), [this, action] {
          const auto* one = state_.find(action.id);
          if (one != nullptr && one->state == control::TaskState::kStopping) perform(action);
        });
      });
}

void Executor::carry_out(const control::action::Resize& action) {
  const auto* record = state_.find(action.id);
  if (record == nullptr || !control::owns_resources(record->state) || !ports_.change_memory_limits) return;
  if (record->tier != gpu::kHard || !record->task.resources.part.empty()) return;
  if (const auto [running, is_first] = resizing_.emplace(action.id, false); !is_first) {
    running->second = true;
    return;
  }
  std::vector<share::KernelLimit> limits;
  for (const auto& grant : record->gpus) limits.push_back({grant.uuid, grant.memory_bytes});
  run_serially(
      action.id, record->task.owner,
      [this, action, limits] {
        return containerizer_->change_memory_limit(action.id, [this, limits](const std::string& group) {
          return ports_.change_memory_limits(group, limits);
        });
      },
      [this, action](Status changed) {
        const bool again = resizing_.extract(action.id).mapped();
        const auto* one = state_.find(action.id);
        if (one == nullptr || !control::owns_resources(one->state)) return;
        if (again) return perform(action);
        const auto earlier = retries_.find(action.id);
        if (changed && earlier != retries_.end() && earlier->second.failure == kResizeFailed)
          retries_.erase(earlier);
        if (!changed && (earlier == retries_.end() || earlier->second.failure == kResizeFailed))
          try_later(action.id, kResizeFailed, changed.error(), [this, action] { perform(action); });
      });
}

void Executor::carry_out(const control::action::Clean& action) {
  const auto record = state_.tasks.find(action.id);
  // The same event may have it forgotten, which cleans up too.
  if (record == state_.tasks.end()) return;
  run_serially(
      action.id, record->second.task.owner, [this, id = action.id] { return containerizer_->clean(id); },
      [this, action](Status cleaned) {
        if (cleaned)
          retries_.erase(action.id);
        else
          try_later(action.id, "Failed to clean up after", cleaned.error(), [this, action] {
            const auto* record = state_.find(action.id);  // another attempt cleans up before it begins
            if (record != nullptr && !control::is_under_way(*record)) perform(action);
          });
      });
}

void Executor::carry_out(const control::action::Forget& action) {
  run_serially(
      action.id, action.owner, [this, id = action.id] { return containerizer_->forget(id); },
      [this, action](Status forgotten) {
        if (!forgotten)
          return try_later(action.id, "Failed to remove the sandbox of", forgotten.error(),
                           [this, action] { perform(action); });
        retries_.erase(action.id);
        hooks_.folder_gone(action.id);
      });
}

void Executor::recover(const std::string& id) {
  auto found = std::make_shared<container::Found>(container::Found::kAlive);
  run_serially(
      id, state_.tasks.at(id).task.owner,
      [this, id, found, attempt = control::attempt_of(state_.tasks.at(id))]() -> Status {
        DROVER_TRY(*found, containerizer_->recover(id, attempt));
        return {};
      },
      [this, id, found](Status recovered) {
        // Its GPUs stay its own: better a GPU idle than one given twice.
        if (!recovered)
          return try_later(id, kFindFailed, recovered.error(), [this, id] {
            const auto* record = state_.find(id);
            if (record != nullptr && control::is_under_way(*record)) recover(id);
          });
        retries_.erase(id);
        if (*found == container::Found::kNever) hooks_.happened(control::event::NeverStarted{id});
        if (*found != container::Found::kAlive) return;
        hooks_.happened(control::event::StillAlive{id});
        perform(control::action::Resize{id});  // the daemon before may not have come to it
      });
}

void Executor::try_later(const std::string& id, std::string_view failure, const Error& why, Work work) {
  auto& retry = retries_[id];
  if (retry.failure != failure)
    ports_.log(fmt::format("{} task '{}', and will try again: {}", failure, id, to_string(why)));
  retry = {failure, ports_.steady() + kTryAgain, std::move(work)};
  ports_.wake_at(retry.at);
}

void Executor::try_again() {
  for (auto retry = retries_.begin(); retry != retries_.end();) {
    const auto& [id, again] = *retry++;
    if (ports_.steady() < again.at || serial_queues_.contains(id)) continue;
    Work(again.work)();
    if (!serial_queues_.contains(id)) retries_.erase(std::string(id));  // it is needed no more
  }
}

void Executor::run_serially(const std::string& id, uid_t owner, std::function<Status()> work,
                            std::function<void(Status)> then, Pace pace) {
  auto& queue = serial_queues_[id];
  const auto begun = std::make_shared<std::atomic_flag>();
  auto step = [this, id, begun, work = std::move(work), then = std::move(then)] {
    if (begun->test_and_set()) return;
    auto status = std::make_shared<Status>(work());
    ports_.post([this, id, then, status] {
      then(std::move(*status));
      auto& rest = serial_queues_[id];
      rest.pop_front();
      if (rest.empty())
        serial_queues_.erase(id);
      else
        rest.front().send();
    });
  };
  queue.push_back({std::move(step), owner, pace == Pace::kSlow ? &ports_.slow_pool : &ports_.pool});
  if (queue.size() == 1) queue.front().send();
}

}  // namespace drover::engine
