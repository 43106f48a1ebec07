#include "engine/telling.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "control/jobs.h"

namespace drover::engine {
namespace {

const std::string& whole_of(const workload::Task& task) {
  return task.gang || task.batch.array ? control::submission_id(task) : task.origin.name;
}

/// What it had, and how it ended: for who asks when its record is gone.
std::string facts_of(const control::TaskRecord& record) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  if (control::is_final(record.state)) {
    writer.field("cause", control::to_string(record.cause));
    if (record.exit_status) writer.field("exit_status", *record.exit_status);
  }
  if (record.finished_at) writer.field("finished_at", format_time(*record.finished_at));
  writer.field("gpus", control::uuids_of(record));
  if (record.started_at) writer.field("started_at", format_time(*record.started_at));
  writer.end_object();
  return text;
}

EventView event_of_task(std::string kind, const control::TaskRecord& record, std::string_view message) {
  EventView event;
  event.kind = std::move(kind);
  event.owner = record.task.owner;
  event.task_id = record.task.id;
  event.name = record.task.name;
  event.user = record.task.user.name;
  event.part_of = whole_of(record.task);
  event.message = fmt::format("{}{}", record.task.name, message);
  event.facts = facts_of(record);
  return event;
}

EventView event_of(const control::notice::TaskMoved& moved) {
  const auto state = control::to_string(moved.record.state);
  const auto& reason = moved.record.reason;
  return event_of_task(fmt::format("task_{}", state), moved.record,
                       fmt::format(" is {}{}{}", state, reason.empty() ? "" : ": ", reason));
}

EventView event_of(const control::notice::Noted& noted) {
  if (noted.record) return event_of_task(noted.kind, *noted.record, ": " + noted.message);
  EventView event;
  event.kind = noted.kind;
  event.message = noted.message;
  return event;
}

}  // namespace

std::vector<EventView> events_of(const control::Outcome& outcome, Moment now) {
  std::vector<EventView> events;
  for (const auto& notice : outcome.notices) {
    if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice))
      events.push_back(event_of(*moved));
    else if (const auto* noted = std::get_if<control::notice::Noted>(&notice))
      events.push_back(event_of(*noted));
    else
      continue;
    events.back().at = now.wall;
    events.back().steady = now.steady;
  }
  return events;
}

}  // namespace drover::engine
