#include "store/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fd.h"
#include "store/statement.h"

namespace drover::store {
namespace {

// "DROV": marks the file as ours, so that no other SQLite file is taken for a journal.
constexpr int kApplicationId = 0x44524f56;
constexpr int kFormat = 1;
// The log is written anew from its start when it has come so far, and all of it is in the file.
constexpr int kLogPages = 256;
constexpr off_t kLogReserve = 2 << 20;
constexpr int kFileReserve = 1 << 20;

ErrorKind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ErrorKind::kExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorKind::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorKind::kConflict;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return ErrorKind::kPermissionDenied;
    default:
      return ErrorKind::kInternal;
  }
}

std::string hint_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kExhausted:
      return "free some space on that file system";
    case ErrorKind::kCorrupt:
      return kDamagedHint;
    case ErrorKind::kConflict:
      return "stop it, or choose another folder with --state";
    case ErrorKind::kPermissionDenied:
      return "check who owns the file and its folder";
    default:
      return "";
  }
}

std::int64_t pragma(sqlite3* database, const char* sql) {
  const auto statement = prepare(database, sql);
  return statement && sqlite3_step(statement.get()) == SQLITE_ROW ? sqlite3_column_int64(statement.get(), 0)
                                                                  : -1;
}

}  // namespace

void Journal::Closer::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);  // a copy that is under way goes first
}

Error Journal::error(const char* what) const {
  const int code = sqlite3_extended_errcode(database_.get());
  // A full disk shows as an I/O error where SQLite extends the file's shared memory or log.
  const bool no_space = sqlite3_system_errno(database_.get()) == ENOSPC && (code & 0xff) == SQLITE_IOERR;
  const auto kind = no_space ? ErrorKind::kExhausted : kind_of(code);
  if (kind == ErrorKind::kConflict)
    return Error{kind, fmt::format("Another daemon uses the state file '{}'", shown_), hint_for(kind), ""};
  return Error{kind, fmt::format("{} '{}': {}", what, shown_, sqlite3_errmsg(database_.get())),
               hint_for(kind), ""};
}

Status Journal::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return Failure(error("Failed to use the state file"));
}

Result<Journal> Journal::open(const std::string& path) {
  {
    UniqueFd created(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!created.valid()) return fail_errno(fmt::format("Failed to open the state file '{}'", path), errno);
  }
  return open_database(path, path, Begin::kNew);
}

Result<Journal> Journal::open_existing(const std::string& path, const std::string& shown) {
  {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info{};
    if (!file.valid() || ::fstat(file.get(), &info) != 0)
      return fail_errno(fmt::format("Failed to open '{}'", shown), errno);
    if (info.st_size == 0)
      return fail(ErrorKind::kCorrupt, fmt::format("'{}' is empty", shown), "choose another backup");
  }
  return open_database(path, shown, Begin::kExisting);
}

Result<Journal> Journal::open_database(const std::string& path, const std::string& shown, Begin begin) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Journal journal(Database(raw), path, shown);
  if (code != SQLITE_OK) return Failure(journal.error("Failed to open the state file"));
  sqlite3_extended_result_codes(raw, 1);
  // What turns out to be damaged is left as it was found, with its log.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // The lock is taken before anything is read or written, and is the process's until it ends.
  DROVER_CHECK_OK(journal.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT;"));
  const auto id = pragma(raw, "PRAGMA application_id");
  const auto tables = pragma(raw, "SELECT count(*) FROM sqlite_master");
  if (id != kApplicationId && (begin == Begin::kExisting || id != 0 || tables != 0))
    return fail(ErrorKind::kCorrupt, fmt::format("The state file '{}' is not one of Drover's", shown),
                hint_for(ErrorKind::kCorrupt));
  if (const auto format = pragma(raw, "PRAGMA user_version"); format > kFormat)
    return fail(ErrorKind::kUnsupported,
                fmt::format("The state file '{}' has format {}, newer than this program's {}", shown, format,
                            kFormat),
                "use the newer drover");
  DROVER_CHECK_OK(journal.execute(
      fmt::format("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint={};",
                  kLogPages)
          .c_str()));
  int reserve = kFileReserve;
  sqlite3_file_control(raw, "main", SQLITE_FCNTL_CHUNK_SIZE, &reserve);
  if (tables == 0)
    DROVER_CHECK_OK(journal.execute(
        fmt::format(
            "BEGIN; CREATE TABLE entry (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;"
            "PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;",
            kApplicationId, kFormat)
            .c_str()));
  // Not a part of the format: older daemons do not look there.
  constexpr const char* kNotes =
      "CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID, STRICT;";
  if (id == 0 ||
      pragma(raw, "SELECT count(*) FROM sqlite_master WHERE name IN ('note', 'event', 'allocation')") < 3)
    for (const auto& added :
         {journal.execute(kNotes), journal.add_event_table(), journal.add_allocation_table()})
      if (!added && added.error().kind != ErrorKind::kExhausted) return Failure(added.error());
  journal.reserve_log();
  const auto check = prepare(raw, "PRAGMA quick_check(1)");
  if (!check || sqlite3_step(check.get()) != SQLITE_ROW || column(check, 0) != "ok")
    return fail(ErrorKind::kCorrupt, fmt::format("The state file '{}' is damaged", shown),
                hint_for(ErrorKind::kCorrupt));
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return journal;
}

Result<std::string> Journal::note(const std::string& name) const {
  const auto statement = prepare(database_.get(), "SELECT text FROM note WHERE name = ?");
  if (!statement) return std::string();  // on a full disk there was no room for the table
  set_value(statement, 1, name);
  return sqlite3_step(statement.get()) == SQLITE_ROW ? column(statement, 0) : std::string();
}

Status Journal::set_note(const std::string& name, const std::string& text) {
  const auto statement = prepare(database_.get(), "INSERT OR REPLACE INTO note (name, text) VALUES (?, ?)");
  if (!statement) return Failure(error("Failed to write the state file"));
  set_value(statement, 1, name);
  set_value(statement, 2, text);
  if (sqlite3_step(statement.get()) != SQLITE_DONE) return Failure(error("Failed to write the state file"));
  tidy_ = false;
  return {};
}

Status Journal::load(
    const std::function<Status(const std::string& key, const std::string& text)>& visit) const {
  const auto statement = prepare(database_.get(), "SELECT key, value FROM entry ORDER BY key");
  if (!statement) return Failure(error("Failed to read the state file"));
  int code = 0;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW)
    DROVER_CHECK_OK(visit(column(statement, 0), column(statement, 1)));
  if (code != SQLITE_DONE) return Failure(error("Failed to read the state file"));
  return {};
}

Status Journal::put(const Changes& changes) {
  const auto put = prepare(database_.get(), "INSERT OR REPLACE INTO entry (key, value) VALUES (?, ?)");
  const auto remove = prepare(database_.get(), "DELETE FROM entry WHERE key = ?");
  if (!put || !remove) return Failure(error("Failed to write the state file"));
  for (const auto& [key, value] : changes.put) {
    set_value(put, 1, key);
    set_value(put, 2, value);
    if (sqlite3_step(put.get()) != SQLITE_DONE) return Failure(error("Failed to write the state file"));
    sqlite3_reset(put.get());
  }
  for (const auto& key : changes.removed) {
    set_value(remove, 1, key);
    if (sqlite3_step(remove.get()) != SQLITE_DONE) return Failure(error("Failed to write the state file"));
    sqlite3_reset(remove.get());
  }
  return {};
}

Status Journal::commit(const Changes& changes, std::span<const Event> events,
                       std::span<const Allocation> allocations) {
  if (changes.put.empty() && changes.removed.empty() && events.empty() && allocations.empty()) return {};
  DROVER_CHECK_OK(execute("BEGIN IMMEDIATE"));
  auto written = put(changes);
  if (written) written = put_events(events);
  if (written) written = put_allocations(allocations);
  if (written && sqlite3_exec(database_.get(), "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK)
    written = Failure(error("Failed to write the state file"));
  if (!written) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    return written;
  }
  tidy_ = false;
  return {};
}

Status Journal::tidy() {
  reserve_log();
  if (tidy_) return {};
  // Not the kind that cuts the log off: its room would be anybody's.
  if (sqlite3_wal_checkpoint_v2(database_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr) !=
      SQLITE_OK)
    return Failure(error("Failed to tidy the state file"));
  tidy_ = true;
  return {};
}

void Journal::reserve_log() const {
  const UniqueFd log(::open((path_ + "-wal").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  constexpr off_t kBlock = 512;  // of st_blocks, whatever the file system's
  if (!log.valid() || ::fstat(log.get(), &info) != 0 || info.st_blocks * kBlock >= kLogReserve) return;
  (void)::fallocate(log.get(), FALLOC_FL_KEEP_SIZE, 0, kLogReserve);
}

}  // namespace drover::store
