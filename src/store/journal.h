#pragma once

// The journal: what survives a crash, in one SQLite file (write-ahead log, synchronous=FULL: a commit that
// returned is on the disk). It keeps text by key and does not know what the text means. One process at a
// time: the file is locked exclusively. Not thread safe: the control strand owns it.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace drover::store {

struct Changes {
  std::vector<std::pair<std::string, std::string>> put;  ///< key, text; replaces what was there
  std::vector<std::string> removed;                      ///< keys; absent is fine
};

class Journal {
 public:
  /// Creates the file (0600) when it is absent. kCorrupt when the file is damaged or not ours, kConflict when
  /// another daemon holds it.
  static Result<Journal> open(const std::string& path);

  Result<std::map<std::string, std::string>> load();
  /// All or nothing, and durable. kExhausted when the disk is full: then nothing has changed.
  Status commit(const Changes& changes);

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };
  using Database = std::unique_ptr<sqlite3, Closer>;

  Journal(Database database, std::string path) : database_(std::move(database)), path_(std::move(path)) {}
  Status execute(const char* sql);
  Error error(const char* what) const;

  Database database_;
  std::string path_;
};

}  // namespace drover::store
