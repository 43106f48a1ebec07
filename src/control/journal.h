#pragma once

// How the journal keeps the state: a record by its task's id, the rules by a key that no task can have. Texts
// only; the store writes them. Pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/state.h"

namespace drover::control {

struct Journaled {
  std::vector<TaskRecord> records;
  placement::Rules rules;
};

/// An error names the entry that is damaged.
Result<Journaled> decode_journal(const std::map<std::string, std::string>& entries);

/// Keys and texts of what the outcome changes.
std::vector<std::pair<std::string, std::string>> entries_of(const Outcome& outcome);

}  // namespace drover::control
