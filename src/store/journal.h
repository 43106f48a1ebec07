#pragma once

// The journal: what survives a crash, in one SQLite file (write-ahead log, synchronous=FULL: a commit that
// returned is on the disk). It keeps text by key and does not know what the text means. One process at a
// time: the file is locked exclusively. Not thread safe: the control strand owns it.
//
// Some MiB of the disk are taken ahead for what will be written, in the journal's own files, so that nobody
// who fills the disk can take them: what ends tasks can be written then, too. File systems that copy on write
// do not keep such promises.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/allocation.h"
#include "store/copy.h"
#include "store/event.h"

struct sqlite3;

namespace drover::store {

/// What to do about a journal that cannot be read.
inline constexpr const char* kDamagedHint =
    "put a backup in its place with 'drover restore FILE'; without one, move it aside: tasks that run are "
    "taken "
    "up again";

struct Changes {
  std::vector<std::pair<std::string, std::string>> put;  ///< key, text; replaces what was there
  std::vector<std::string> removed;                      ///< keys; absent is fine
};

class Journal {
 public:
  /// Creates the file (0600) when it is absent. kCorrupt when the file is damaged or not ours, kConflict when
  /// another daemon holds it.
  static Result<Journal> open(const std::string& path);
  /// The same for a file that must be there and be a journal already; `shown` names it in messages.
  static Result<Journal> open_existing(const std::string& path, const std::string& shown);

  /// Calls visit(key, text) for every entry, by ascending key, until one is refused.
  Status load(const std::function<Status(const std::string& key, const std::string& text)>& visit) const;
  /// All or nothing, and durable. kExhausted when the disk is full: then nothing has changed. The events have
  /// greater numbers than all before.
  Status commit(const Changes& changes, std::span<const Event> events = {},
                std::span<const Allocation> allocations = {});
  /// Moves the log into the file itself, so that a copy of the file alone has what was committed, and takes
  /// what it can of the room ahead. To be called now and then. Nothing is lost when it fails.
  Status tidy();

  /// What is known about the journal itself; "" when it was not set.
  Result<std::string> note(const std::string& name) const;
  Status set_note(const std::string& name, const std::string& text);

  /// The number of the last event; 0 when there is none.
  Result<std::uint64_t> last_event() const;
  /// Visits `most` events of the range, until `visit` says false. How many it visited.
  Result<std::size_t> visit_events(const EventRange& range, std::size_t most,
                                   const std::function<bool(const Event&)>& visit) const;
  /// Removes the oldest `most` of this owner.
  Result<EventCounts> remove_events_of(std::int64_t owner, std::size_t most);
  /// Of the oldest `most`, those that are older; never the last one.
  Result<EventCounts> remove_events_before(TimePoint steady, std::size_t most);

  /// Visits `most` of those with greater numbers, in their order. How many it visited.
  Result<std::size_t> visit_allocations(std::uint64_t after, std::size_t most,
                                        const std::function<void(const Allocation&)>& visit) const;
  /// Of the oldest `at_once` those go that ended before, by the clock that nobody sets; and where there are
  /// more than `limit`, `at_once` of who has most. How many went.
  Result<std::int64_t> trim_allocations(TimePoint before, std::int64_t limit, std::int64_t at_once);

  Result<Copy> copy() const { return Copy::begin(database_.get(), path_ + ".copy"); }

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };
  using Database = std::unique_ptr<sqlite3, Closer>;

  Journal(Database database, std::string path, std::string shown)
      : database_(std::move(database)), path_(std::move(path)), shown_(std::move(shown)) {}
  enum class Begin { kNew, kExisting };
  static Result<Journal> open_database(const std::string& path, const std::string& shown, Begin begin);
  Status execute(const char* sql);
  Error error(const char* what) const;
  void reserve_log() const;
  Status put(const Changes& changes);
  Status put_events(std::span<const Event> events);
  Result<EventCounts> remove_events(const char* sql, std::int64_t whose, std::size_t most);
  Status add_event_table();
  bool has_event_table() const;
  Status put_allocations(std::span<const Allocation> allocations);
  Status add_allocation_table();
  bool has_allocation_table() const;

  Database database_;
  std::string path_;
  std::string shown_;
  bool tidy_ = false;  ///< nothing was committed since the last time
};

}  // namespace drover::store
