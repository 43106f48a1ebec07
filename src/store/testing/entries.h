#pragma once

// All that a journal holds, for tests.

#include <map>
#include <string>

#include "store/journal.h"

namespace drover::store::testing {

using Entries = std::map<std::string, std::string>;

inline Result<Entries> entries_of(const Journal& journal) {
  Entries entries;
  DROVER_CHECK_OK(journal.load([&](const auto& key, const auto& text) -> Status {
    entries.emplace(key, text);
    return {};
  }));
  return entries;
}

}  // namespace drover::store::testing
