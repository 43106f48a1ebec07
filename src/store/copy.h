#pragma once

// A copy of a journal while it is used, made piece by piece between commits: it holds all that was committed
// before it was complete. Used on the journal's own thread; the journal outlives it. What is not taken is
// removed.

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_backup;

namespace drover::store {

class Copy {
 public:
  /// Into a new file (0600) whose path begins with `path`.
  static Result<Copy> begin(sqlite3* journal, const std::string& path);
  Copy(Copy&& other) noexcept = default;
  Copy& operator=(Copy&&) = delete;
  ~Copy();

  /// Copies about one MiB; true when the copy is complete. After an error nothing is left of it.
  Result<bool> step();
  /// The complete copy, open for reading; it has no name any more.
  Result<UniqueFd> take();

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_backup* backup) const;
  };
  Copy() = default;
  Error error(const char* what) const;
  /// The file has no name any more.
  void unlink() noexcept;

  std::unique_ptr<std::string> path_;  ///< null: nothing is to be removed
  std::unique_ptr<sqlite3, Closer> file_;
  std::unique_ptr<sqlite3_backup, Closer> backup_;
};

}  // namespace drover::store
