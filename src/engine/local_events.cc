// How LocalEngine takes an event: it is decided, journaled, and then it counts; and what becomes of what the
// journal cannot take.

#include <algorithm>
#include <utility>

#include "control/deadlines.h"
#include "control/jobs.h"
#include "control/journal.h"
#include "engine/local.h"

namespace drover::engine {
namespace {

constexpr std::chrono::seconds kRetry{1};
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
  auto machine = state_.machine();
  machine.foreign_ports = std::move(foreign);
  // When it cannot be kept, the next look sees the same.
  (void)process(control::event::NodeChanged{std::move(machine)});
}

Status LocalEngine::has_room_for(const control::Event& event) const {
  if (!makes_work(event) || !disk_room_.is_full()) return {};
  return Failure(disk_room_.full());
}

Result<std::string> LocalEngine::process(const control::Event& event) {
  DROVER_CHECK_OK(has_room_for(event));
  const Moment now(ports_.now(), steady());
  DROVER_TRY(auto outcome, decide(event, now));
  return carry_out(event, outcome, now);
}

/// Instances of services are never refused: those of images that are not known yet wait until they are.
Result<std::string> LocalEngine::change(const control::Event& event) {
  ImageInspector::Wanted images;
  if (const auto* services = std::get_if<control::event::ServicesChanged>(&event))
    for (const auto& service : services->put) ImageInspector::add(images, service.task);
  control::apply(state_, images_.hold(images));
  auto made = process(event);
  images_.inspect_each(images);
  return made;
}

Result<control::Outcome> LocalEngine::decide(const control::Event& event, Moment now) {
  // Checks are many, and start nothing that needs a port.
  if (!std::holds_alternative<control::event::Checked>(event)) refresh_ports();
  auto outcome = control::decide(state_, event, now);
  if (outcome && outcome->broken && outcome->broken != broken_) {
    broken_ = outcome->broken;
    ports_.log(to_string(*broken_));
  }
  return outcome;
}

Result<std::string> LocalEngine::carry_out(const control::Event& event, control::Outcome& outcome,
                                           Moment now) {
  auto [put, removed] = control::changes_of(outcome);
  // What is not kept, findings about health for instance, costs no write.
  if (!put.empty() || !removed.empty()) {
    for (const auto& id : gone_) removed.push_back(control::forgotten_key(id));
    const store::Changes changes{std::move(put), std::move(removed)};
    DROVER_CHECK_OK(commits_.time([&] { return journal_.commit(changes); }));
    gone_.clear();
  }
  control::apply(state_, outcome);
  for (const auto& notice : outcome.notices) {
    if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice)) publish(moved->record);
    notices_.notify(notice);
  }
  for (const auto& action : outcome.actions) executor_.perform(action);
  if (ports_.check)
    for (const auto& id : tasks_to_check(state_, outcome)) ports_.check(id, targets_of(state_, id));
  const bool is_tick = std::holds_alternative<control::event::Tick>(event);
  if (const auto deadline =
          is_tick ? control::next_deadline(state_, now) : control::next_deadline(outcome, now))
    ports_.wake_at(*deadline);
  return outcome.made;
}

Status LocalEngine::ask(const control::Event& event) {
  const Moment now(ports_.now(), steady());
  auto outcome = decide(event, now);
  if (!outcome) return {};
  const auto done = carry_out(event, *outcome, now);
  if (done) return {};
  if (const auto* request = std::get_if<control::event::StopRequested>(&event)) happened(*request);
  return Failure(done.error());
}

void LocalEngine::happened(control::Event event) {
  const auto* stop = std::get_if<control::event::StopRequested>(&event);
  // Whoever asks again because it could not be kept says nothing new.
  const bool waits = stop != nullptr && std::ranges::any_of(unsaved_, [&](const auto& earlier) {
                       const auto* other = std::get_if<control::event::StopRequested>(&earlier);
                       return other != nullptr && *other == *stop;
                     });
  if (waits) return retry_unsaved();
  // Of what comes ever again while nothing can be kept, the last one says it all.
  if (std::holds_alternative<control::event::Tick>(event) ||
      std::holds_alternative<control::event::NodeChanged>(event))
    std::erase_if(unsaved_, [&](const auto& earlier) { return earlier.index() == event.index(); });
  // Order matters: nothing overtakes an event that the journal could not take.
  unsaved_.push_back(std::move(event));
  retry_unsaved();
  if (unsaved_.empty()) return;
  // It may be the one that fills the disk: it is ended first, and the journal hears of it when it can.
  if (const auto* request = std::get_if<control::event::StopRequested>(&unsaved_.back())) end_first(*request);
}

void LocalEngine::end_first(const control::event::StopRequested& request) {
  const auto* named = state_.find(request.id);
  const auto members = named != nullptr ? control::members_of(named->task, state_.finder())
                                        : control::members_of_job(request.id, state_.finder());
  for (const auto* record : members)
    if (control::owns_resources(record->state))
      executor_.perform(control::action::Stop{record->task.id, request.force});
}

void LocalEngine::retry_unsaved() {
  if (std::exchange(retrying_, true)) return;  // what comes of one of them waits for its turn
  while (!unsaved_.empty()) {
    auto event = std::move(unsaved_.front());
    unsaved_.pop_front();
    // A tick or a check that cannot be saved need not be kept: another one comes.
    const bool passes = std::holds_alternative<control::event::Tick>(event) ||
                        std::holds_alternative<control::event::Checked>(event);
    const Moment now(ports_.now(), steady());
    auto outcome = decide(event, now);
    if (!outcome) continue;  // the state has gone on, and would refuse it again
    const auto done = carry_out(event, *outcome, now);
    if (done) continue;
    ports_.wake_at(steady() + kRetry);
    if (passes) continue;
    unsaved_.push_front(std::move(event));
    unsaved_trouble_.report(
        Failure(context(done.error(), "Failed to record what happened, and will try again")));
    retrying_ = false;
    return;
  }
  retrying_ = false;
  unsaved_trouble_.report({});
}

}  // namespace drover::engine
