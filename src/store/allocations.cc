// The allocations that a journal keeps. Not a part of its format: older daemons do not look there.

#include "store/journal.h"
#include "store/statement.h"

namespace drover::store {
namespace {

constexpr const char* kAllocationTable =
    "CREATE TABLE IF NOT EXISTS allocation (number INTEGER PRIMARY KEY, owner INTEGER NOT NULL, user TEXT "
    "NOT NULL, queue TEXT NOT NULL, task TEXT NOT NULL, attempt INTEGER NOT NULL, begin INTEGER NOT NULL, "
    "until INTEGER NOT NULL, steady INTEGER NOT NULL, started INTEGER, waited INTEGER, used INTEGER, gpus "
    "TEXT NOT NULL, ending TEXT NOT NULL, cause TEXT NOT NULL) STRICT;"
    "CREATE INDEX IF NOT EXISTS allocation_owner ON allocation (owner);";
constexpr const char* kPutAllocation =
    "INSERT INTO allocation VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

std::int64_t milliseconds_of(TimePoint time) {
  return time.time_since_epoch().count();
}

void set_or_null(const Statement& statement, int position, std::optional<std::int64_t> number) {
  if (number)
    set_value(statement, position, *number);
  else
    sqlite3_bind_null(statement.get(), position);
}

std::int64_t number_column(const Statement& row, int position) {
  return sqlite3_column_int64(row.get(), position);
}

std::optional<std::chrono::milliseconds> milliseconds_column(const Statement& row, int position) {
  if (sqlite3_column_type(row.get(), position) == SQLITE_NULL) return std::nullopt;
  return std::chrono::milliseconds(number_column(row, position));
}

/// Takes over the memory that `allocation` has.
void read_allocation(const Statement& row, Allocation& allocation) {
  allocation.number = static_cast<std::uint64_t>(number_column(row, 0));
  allocation.owner = number_column(row, 1);
  take_column(row, 2, allocation.user);
  take_column(row, 3, allocation.queue);
  take_column(row, 4, allocation.task_id);
  allocation.attempt = static_cast<int>(number_column(row, 5));
  allocation.from = TimePoint(std::chrono::milliseconds(number_column(row, 6)));
  allocation.until = TimePoint(std::chrono::milliseconds(number_column(row, 7)));
  allocation.steady = TimePoint(std::chrono::milliseconds(number_column(row, 8)));
  const auto started = milliseconds_column(row, 9);
  allocation.started = started ? std::optional(TimePoint(*started)) : std::nullopt;
  allocation.waited = milliseconds_column(row, 10);
  allocation.used = milliseconds_column(row, 11);
  take_column(row, 12, allocation.gpus);
  take_column(row, 13, allocation.ending);
  take_column(row, 14, allocation.cause);
}

}  // namespace

Status Journal::put_allocations(std::span<const Allocation> allocations) {
  if (allocations.empty()) return {};
  auto put = prepare(database_.get(), kPutAllocation);
  if (!put) {  // there was no room for the table when the journal was opened
    DROVER_CHECK_OK(add_allocation_table());
    put = prepare(database_.get(), kPutAllocation);
  }
  if (!put) return Failure(error("Failed to write the state file"));
  for (const auto& one : allocations) {
    set_value(put, 1, one.owner);
    set_value(put, 2, one.user);
    set_value(put, 3, one.queue);
    set_value(put, 4, one.task_id);
    set_value(put, 5, static_cast<std::int64_t>(one.attempt));
    set_value(put, 6, milliseconds_of(one.from));
    set_value(put, 7, milliseconds_of(one.until));
    set_value(put, 8, milliseconds_of(one.steady));
    set_or_null(put, 9, one.started ? std::optional(milliseconds_of(*one.started)) : std::nullopt);
    set_or_null(put, 10, one.waited ? std::optional(one.waited->count()) : std::nullopt);
    set_or_null(put, 11, one.used ? std::optional(one.used->count()) : std::nullopt);
    set_value(put, 12, one.gpus);
    set_value(put, 13, one.ending);
    set_value(put, 14, one.cause);
    if (sqlite3_step(put.get()) != SQLITE_DONE) return Failure(error("Failed to write the state file"));
    sqlite3_reset(put.get());
  }
  return {};
}

Status Journal::add_allocation_table() {
  return execute(kAllocationTable);
}

bool Journal::has_allocation_table() const {
  const auto found = prepare(database_.get(), "SELECT 1 FROM sqlite_master WHERE name = 'allocation'");
  return found && sqlite3_step(found.get()) == SQLITE_ROW;
}

Result<std::size_t> Journal::visit_allocations(std::uint64_t after, std::size_t most,
                                               const std::function<void(const Allocation&)>& visit) const {
  if (!has_allocation_table()) return 0;
  const auto rows =
      prepare(database_.get(), "SELECT * FROM allocation WHERE number > ? ORDER BY number LIMIT ?");
  if (!rows) return Failure(error("Failed to read the state file"));
  set_value(rows, 1, static_cast<std::int64_t>(after));
  set_value(rows, 2, static_cast<std::int64_t>(most));
  Allocation allocation;
  std::size_t visited = 0;
  int code = 0;
  while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
    read_allocation(rows, allocation);
    visit(allocation);
    ++visited;
  }
  if (code != SQLITE_DONE) return Failure(error("Failed to read the state file"));
  return visited;
}

Result<std::int64_t> Journal::trim_allocations(TimePoint before, std::int64_t limit, std::int64_t at_once) {
  if (!has_allocation_table()) return 0;
  const auto remove = [&](const char* sql, std::int64_t value, std::int64_t most) -> Result<std::int64_t> {
    const auto statement = prepare(database_.get(), sql);
    if (!statement) return Failure(error("Failed to write the state file"));
    set_value(statement, 1, value);
    set_value(statement, 2, most);
    if (sqlite3_step(statement.get()) != SQLITE_DONE) return Failure(error("Failed to write the state file"));
    if (sqlite3_changes(database_.get()) > 0) tidy_ = false;
    return sqlite3_changes(database_.get());
  };
  DROVER_TRY(
      const auto old,
      remove("DELETE FROM allocation WHERE steady < ? AND number IN (SELECT number FROM allocation ORDER BY "
             "number LIMIT ?)",
             milliseconds_of(before), at_once));
  const auto count = prepare(database_.get(), "SELECT count(*) FROM allocation");
  if (!count || sqlite3_step(count.get()) != SQLITE_ROW)
    return Failure(error("Failed to read the state file"));
  const auto over = number_column(count, 0) - limit;
  if (over <= 0) return old;
  const auto whose = prepare(
      database_.get(), "SELECT owner FROM allocation GROUP BY owner ORDER BY count(*) DESC, owner LIMIT 1");
  if (!whose || sqlite3_step(whose.get()) != SQLITE_ROW)
    return Failure(error("Failed to read the state file"));
  DROVER_TRY(
      const auto many,
      remove("DELETE FROM allocation WHERE number IN (SELECT number FROM allocation WHERE owner = ? ORDER "
             "BY number LIMIT ?)",
             number_column(whose, 0), std::min(over, at_once)));
  return old + many;
}

}  // namespace drover::store
