#pragma once

// Statements of SQLite. For `.cc` files.

#include <sqlite3.h>

#include <memory>
#include <string>

namespace drover::store {

struct Finalizer {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalizer>;

/// Null when it is none.
inline Statement prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return Statement(statement);
}

/// `text` outlives the statement's next step.
inline void set_value(const Statement& statement, int position, const std::string& text) {
  sqlite3_bind_text64(statement.get(), position, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

inline void set_value(const Statement& statement, int position, std::int64_t number) {
  sqlite3_bind_int64(statement.get(), position, number);
}

inline void take_column(const Statement& statement, int position, std::string& into) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), position));
  if (text == nullptr)
    into.clear();
  else
    into.assign(text, static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), position)));
}

inline std::string column(const Statement& statement, int position) {
  std::string text;
  take_column(statement, position, text);
  return text;
}

}  // namespace drover::store
