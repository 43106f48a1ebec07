// The events that a journal keeps. Not a part of its format: older daemons do not look there.

#include <algorithm>

#include "store/journal.h"
#include "store/statement.h"

namespace drover::store {
namespace {

constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS event (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, steady INTEGER NOT "
    "NULL, kind TEXT NOT NULL, owner INTEGER NOT NULL, task TEXT NOT NULL, name TEXT NOT NULL, user TEXT NOT "
    "NULL, part_of TEXT NOT NULL, message TEXT NOT NULL, facts TEXT NOT NULL) STRICT";
constexpr const char* kInsert = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

std::int64_t stored(TimePoint time) {
  return time.time_since_epoch().count();
}

TimePoint time_column(const Statement& row, int position) {
  return TimePoint(TimePoint::duration(sqlite3_column_int64(row.get(), position)));
}

/// Takes over the memory that `event` has.
void read_row(const Statement& row, Event& event) {
  event.number = static_cast<std::uint64_t>(sqlite3_column_int64(row.get(), 0));
  event.at = time_column(row, 1);
  event.steady = time_column(row, 2);
  event.owner = sqlite3_column_int64(row.get(), 4);
  int position = 5;
  take_column(row, 3, event.kind);
  for (auto* text : {&event.task_id, &event.name, &event.user, &event.part_of, &event.message, &event.facts})
    take_column(row, position++, *text);
}

}  // namespace

Status Journal::add_event_table() {
  DROVER_CHECK_OK(execute(kTable));
  return {};
}

bool Journal::has_event_table() const {
  const auto found = prepare(database_.get(), "SELECT 1 FROM sqlite_master WHERE name = 'event'");
  return found && sqlite3_step(found.get()) == SQLITE_ROW;
}

Status Journal::put_events(std::span<const Event> events) {
  if (events.empty()) return {};
  auto put = prepare(database_.get(), kInsert);
  if (!put) {  // there was no room for the table when the journal was opened
    DROVER_CHECK_OK(add_event_table());
    put = prepare(database_.get(), kInsert);
  }
  if (!put) return Failure(error("Failed to write the state file"));
  for (const auto& event : events) {
    set_value(put, 1, static_cast<std::int64_t>(event.number));
    set_value(put, 2, stored(event.at));
    set_value(put, 3, stored(event.steady));
    set_value(put, 4, event.kind);
    set_value(put, 5, event.owner);
    int position = 6;
    for (const auto* text :
         {&event.task_id, &event.name, &event.user, &event.part_of, &event.message, &event.facts})
      set_value(put, position++, *text);
    if (sqlite3_step(put.get()) != SQLITE_DONE) return Failure(error("Failed to write the state file"));
    sqlite3_reset(put.get());
  }
  return {};
}

Result<std::uint64_t> Journal::last_event() const {
  if (!has_event_table()) return 0;
  const auto last = prepare(database_.get(), "SELECT max(number) FROM event");
  if (!last || sqlite3_step(last.get()) != SQLITE_ROW) return Failure(error("Failed to read the state file"));
  return static_cast<std::uint64_t>(sqlite3_column_int64(last.get(), 0));
}

Result<std::size_t> Journal::visit_events(const EventRange& range, std::size_t most,
                                          const std::function<bool(const Event&)>& visit) const {
  if (!has_event_table()) return 0;
  const auto rows = prepare(
      database_.get(),
      range.newest_first ? "SELECT * FROM event WHERE number > ? AND number < ? ORDER BY number DESC LIMIT ?"
                         : "SELECT * FROM event WHERE number > ? AND number < ? ORDER BY number LIMIT ?");
  if (!rows) return Failure(error("Failed to read the state file"));
  set_value(rows, 1, static_cast<std::int64_t>(std::min(range.after, EventRange::kNoEnd)));
  set_value(rows, 2, static_cast<std::int64_t>(std::min(range.before, EventRange::kNoEnd)));
  set_value(rows, 3, static_cast<std::int64_t>(most));
  Event event;
  std::size_t visited = 0;
  int code = 0;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    read_row(rows, event);
    ++visited;
    if (!visit(event)) return visited;
  }
  if (code != SQLITE_DONE) return Failure(error("Failed to read the state file"));
  return visited;
}

Result<EventCounts> Journal::remove_events_of(std::int64_t owner, std::size_t most) {
  return remove_events(
      "DELETE FROM event WHERE number IN (SELECT number FROM event WHERE owner = ? ORDER BY number LIMIT ?) "
      "RETURNING owner",
      owner, most);
}

Result<EventCounts> Journal::remove_events_before(TimePoint steady, std::size_t most) {
  // The last one stays: the numbers go on behind it.
  return remove_events(
      "DELETE FROM event WHERE steady < ? AND number IN (SELECT number FROM event ORDER BY number LIMIT ?) "
      "AND number < (SELECT max(number) FROM event) RETURNING owner",
      stored(steady), most);
}

Result<EventCounts> Journal::remove_events(const char* sql, std::int64_t whose, std::size_t most) {
  EventCounts removed;
  if (!has_event_table()) return removed;
  const auto rows = prepare(database_.get(), sql);
  if (!rows) return Failure(error("Failed to write the state file"));
  set_value(rows, 1, whose);
  set_value(rows, 2, static_cast<std::int64_t>(most));
  int code = 0;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) ++removed[sqlite3_column_int64(rows.get(), 0)];
  if (code != SQLITE_DONE) return Failure(error("Failed to write the state file"));
  if (!removed.empty()) tidy_ = false;
  return removed;
}

}  // namespace drover::store
