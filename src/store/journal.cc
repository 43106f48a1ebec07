#include "store/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fd.h"

namespace drover::store {
namespace {

// "DROV": marks the file as ours, so that no other SQLite file is taken for a journal.
constexpr int kApplicationId = 0x44524f56;
constexpr int kFormat = 1;

using Statement = std::unique_ptr<sqlite3_stmt, decltype([](sqlite3_stmt* s) { sqlite3_finalize(s); })>;

Statement prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return Statement(statement);
}

void bind(const Statement& statement, int position, const std::string& text) {
  sqlite3_bind_text64(statement.get(), position, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::string column(const Statement& statement, int position) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), position));
  return text == nullptr
             ? ""
             : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), position)));
}

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
      return "restore it from a backup, or move it aside to start with no tasks";
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
  sqlite3_close(database);
}

Error Journal::error(const char* what) const {
  const int code = sqlite3_extended_errcode(database_.get());
  // A full disk shows as an I/O error where SQLite extends the file's shared memory or log.
  const bool no_space = sqlite3_system_errno(database_.get()) == ENOSPC && (code & 0xff) == SQLITE_IOERR;
  const auto kind = no_space ? ErrorKind::kExhausted : kind_of(code);
  if (kind == ErrorKind::kConflict)
    return Error{kind, fmt::format("Another daemon uses the state file '{}'", path_), hint_for(kind), ""};
  return Error{kind, fmt::format("{} '{}': {}", what, path_, sqlite3_errmsg(database_.get())), hint_for(kind),
               ""};
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
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Journal journal(Database(raw), path);
  if (code != SQLITE_OK) return Failure(journal.error("Failed to open the state file"));
  sqlite3_extended_result_codes(raw, 1);
  // The lock is taken before anything is read or written, and is the process's until it ends.
  DROVER_CHECK_OK(journal.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; COMMIT;"));
  const auto id = pragma(raw, "PRAGMA application_id");
  const auto tables = pragma(raw, "SELECT count(*) FROM sqlite_master");
  if (id != kApplicationId && (id != 0 || tables != 0))
    return fail(ErrorKind::kCorrupt, fmt::format("The state file '{}' is not one of Drover's", path),
                hint_for(ErrorKind::kCorrupt));
  if (const auto format = pragma(raw, "PRAGMA user_version"); format > kFormat)
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("The state file '{}' has format {}, newer than this program's {}", path, format, kFormat),
        "use the newer drover");
  DROVER_CHECK_OK(journal.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"));
  if (tables == 0)
    DROVER_CHECK_OK(journal.execute(
        fmt::format(
            "BEGIN; CREATE TABLE entry (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;"
            "PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;",
            kApplicationId, kFormat)
            .c_str()));
  const auto check = prepare(raw, "PRAGMA quick_check(1)");
  if (!check || sqlite3_step(check.get()) != SQLITE_ROW || column(check, 0) != "ok")
    return fail(ErrorKind::kCorrupt, fmt::format("The state file '{}' is damaged", path),
                hint_for(ErrorKind::kCorrupt));
  return journal;
}

Result<std::map<std::string, std::string>> Journal::load() {
  std::map<std::string, std::string> entries;
  const auto statement = prepare(database_.get(), "SELECT key, value FROM entry");
  if (!statement) return Failure(error("Failed to read the state file"));
  int code = 0;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW)
    entries[column(statement, 0)] = column(statement, 1);
  if (code != SQLITE_DONE) return Failure(error("Failed to read the state file"));
  return entries;
}

Status Journal::commit(const Changes& changes) {
  if (changes.put.empty() && changes.removed.empty()) return {};
  DROVER_CHECK_OK(execute("BEGIN IMMEDIATE"));
  const auto abandon = [&](Error reason) {
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    return Failure(std::move(reason));
  };
  const auto put = prepare(database_.get(), "INSERT OR REPLACE INTO entry (key, value) VALUES (?, ?)");
  const auto remove = prepare(database_.get(), "DELETE FROM entry WHERE key = ?");
  if (!put || !remove) return abandon(error("Failed to write the state file"));
  for (const auto& [key, value] : changes.put) {
    bind(put, 1, key);
    bind(put, 2, value);
    if (sqlite3_step(put.get()) != SQLITE_DONE) return abandon(error("Failed to write the state file"));
    sqlite3_reset(put.get());
  }
  for (const auto& key : changes.removed) {
    bind(remove, 1, key);
    if (sqlite3_step(remove.get()) != SQLITE_DONE) return abandon(error("Failed to write the state file"));
    sqlite3_reset(remove.get());
  }
  if (sqlite3_exec(database_.get(), "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK)
    return abandon(error("Failed to write the state file"));
  return {};
}

}  // namespace drover::store
