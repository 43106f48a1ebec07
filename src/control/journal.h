#pragma once

// How the journal keeps the state: a task's record by its id, everything else by a key that begins with a
// slash, which no task's id does. Texts only; the store writes them. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "control/state.h"

namespace drover::control {

/// Takes the entries of a journal one by one. What cannot be read of tasks, services and the like is in
/// `unread`, and stays in the journal as it is.
class JournalReader {
 public:
  /// By ascending key: templates stand before the tasks that have them. An error for rules that cannot be
  /// read: nobody may be let past a quota because it is damaged.
  Status read(const std::string& key, const std::string& text);
  Journaled take() && { return std::move(journaled_); }

 private:
  Status read_entry(const std::string& key, const nlohmann::json& value);

  Journaled journaled_;
  Templates templates_;
};

struct JournalChanges {
  std::vector<std::pair<std::string, std::string>> put;  ///< keys and texts
  std::vector<std::string> removed;                      ///< keys
};
/// Also on another thread than that of the state.
JournalChanges changes_of(const Outcome& outcome);
/// Whether there is anything to keep, if only that it is told: findings about health, for instance, are not.
bool is_kept(const Outcome& outcome);
/// Where it is written that a task was removed: until its folder is gone.
std::string forgotten_key(const std::string& id);

}  // namespace drover::control
