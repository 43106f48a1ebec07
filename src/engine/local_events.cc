// What LocalEngine does about events: before they are decided, and when they count.

#include <algorithm>
#include <utility>

#include "control/deadlines.h"
#include "control/jobs.h"
#include "control/node_rules.h"
#include "engine/local.h"
#include "engine/telling.h"

namespace drover::engine {
namespace {

constexpr std::chrono::milliseconds kPortsPause{250};  ///< no more often: the kernel writes a long table

/// Whether it asks for something that was not there before.
bool makes_work(const control::Event& event) {
  namespace e = control::event;
  const auto* services = std::get_if<e::ServicesChanged>(&event);
  return std::holds_alternative<e::Submitted>(event) || std::holds_alternative<e::FrameworkLaunched>(event) ||
         std::holds_alternative<e::ExecutorLaunched>(event) ||
         std::holds_alternative<e::ScheduleDefined>(event) ||
         std::holds_alternative<e::ScheduleRunRequested>(event) ||
         (services != nullptr && !services->put.empty());
}

}  // namespace

EventHooks LocalEngine::event_hooks() {
  return {
      [this](const control::Event& event) {
        // Checks are many, and start nothing that needs a port.
        if (!std::holds_alternative<control::event::Checked>(event)) refresh_ports();
      },
      [this](const Error& broken) {
        if (broken_ == broken) return;
        broken_ = broken;
        ports_.log(to_string(broken));
      },
      [this](const control::Outcome& outcome, bool is_tick) { carry_out(outcome, is_tick); },
      [this](const control::Outcome& outcome) { return events_of(outcome, Moment(ports_.now(), steady())); },
      [this](std::vector<store::Event> events) {
        kept_events_.added(events, disk_room_.is_full());
        feed_.add(std::move(events));
      },
      [this](const control::event::StopRequested& request) { end_first(request); }};
}

void LocalEngine::refresh_ports() {
  const auto now = steady();
  if (!ports_.listening || now < ports_seen_ + kPortsPause) return;
  ports_seen_ = now;
  auto foreign = ports_.listening();
  for (const auto& id : state_.active) {
    const auto& record = state_.tasks.at(id);
    for (const int port : record.ports) foreign.erase(port);
    foreign.erase(record.gang_port);
  }
  if (foreign == state_.machine().foreign_ports) return;
  (void)loop_.change(control::event::ForeignPortsSeen{std::move(foreign)});
}

void LocalEngine::found(control::Event event) {
  transact([this, event = std::move(event)] { (void)loop_.change(event); }, {});
}

/// What can never run here is refused before anybody relies on it. What was there already stays.
Status LocalEngine::check_work(const control::Event& event) const {
  namespace e = control::event;
  if (!ports_.check_task) return {};
  if (const auto* submitted = std::get_if<e::Submitted>(&event)) {
    for (const auto& task : submitted->tasks) {
      DROVER_CHECK_OK(ports_.check_task(task, {}));
      if (task.batch.array) break;  // all of an array are alike
    }
  } else if (const auto* launched = std::get_if<e::FrameworkLaunched>(&event)) {
    for (const auto& launch : launched->launches) DROVER_CHECK_OK(ports_.check_task(launch.task, {}));
  } else if (const auto* executor = std::get_if<e::ExecutorLaunched>(&event)) {
    DROVER_CHECK_OK(ports_.check_task(executor->launch.container, {}));
  } else if (const auto* defined = std::get_if<e::ScheduleDefined>(&event)) {
    DROVER_CHECK_OK(ports_.check_task(defined->schedule.task, {}));
  } else if (const auto* services = std::get_if<e::ServicesChanged>(&event)) {
    for (const auto& service : services->put) {
      const auto known = state_.services.find(service.id);
      if (known != state_.services.end() && known->second.target.task == service.task &&
          known->second.target.constraints == service.constraints)
        continue;
      auto instance = service.task;
      instance.origin = {workload::OriginKind::kService, service.id, "", ""};
      DROVER_CHECK_OK(ports_.check_task(instance, control::node_rules(service.constraints, {}, 0)));
    }
  }
  return {};
}

/// Instances of services are never refused: those of images that are not known yet wait until they are.
Result<control::Made> LocalEngine::change(const control::Event& event) {
  if (makes_work(event) && disk_room_.is_full()) return Failure(disk_room_.full());
  DROVER_CHECK_OK(check_work(event));
  ImageInspector::Wanted images;
  if (const auto* services = std::get_if<control::event::ServicesChanged>(&event))
    for (const auto& service : services->put) ImageInspector::add(images, service.task);
  if (!images.empty()) loop_.note(images_.hold(images));
  auto made = loop_.change(event);
  if (!images.empty()) loop_.then([this, images] { images_.inspect_each(images); });
  return made;
}

void LocalEngine::carry_out(const control::Outcome& outcome, bool is_tick) {
  for (const auto& notice : outcome.notices) {
    if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice)) {
      executor_.moved(moved->record);
      lingering_.moved(moved->record);
    }
    notices_.notify(notice);
  }
  for (const auto& action : outcome.actions) executor_.perform(action);
  if (outcome.node && variant_facts(state_.machine()) == variant_facts(offered_machine_))
    images_.inspect_each(std::exchange(machine_images_, {}));
  if (share_watch_.concerns(outcome)) share_watch_.inspect();
  if (outcome.rules && ports_.keep_rules) ports_.keep_rules(state_.rules);
  if (ports_.check)
    for (const auto& id : tasks_to_check(state_, outcome)) ports_.check(id, targets_of(state_, id));
  const Moment now(ports_.now(), steady());
  if (const auto deadline =
          is_tick ? control::next_deadline(state_, now) : control::next_deadline(outcome, now))
    ports_.wake_at(*deadline);
}

void LocalEngine::end_first(const control::event::StopRequested& request) {
  const auto* named = state_.find(request.id);
  const auto members =
      named != nullptr ? control::members_of(named->task, state_.finder()) : state_.tasks_under(request.id);
  for (const auto* record : members)
    if (control::is_under_way(*record))
      executor_.perform(control::action::Stop{record->task.id, request.force});
}

}  // namespace drover::engine
